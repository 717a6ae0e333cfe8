"""ReliabilityRAG: the worked examples, calls, ties, and the sampled variant."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ranges import MAX, assert_range
from unpoison import Query
from unpoison.core.passages import as_passages
from unpoison.core.reasons import Reason
from unpoison.models import FakeNLI, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison_lab.baselines.reliabilityrag import (
    INEXACT,
    ReliabilityRag,
    SampledReliabilityRag,
    maximum_independent_set,
    rank_weights,
)


def scripted(*answers: str, final: str = "final") -> ScriptedGenerator:
    def reply(prompt: Prompt) -> str:
        return answers[int(prompt.passages[0][1:])] if prompt.task == "atomic" else final

    return ScriptedGenerator(reply)


def clashing(*pairs: str) -> FakeNLI:
    """Contradiction between the answers that each pair of letters names, in both directions."""
    both = {frozenset(pair) for pair in pairs}

    def judge(premise: str, hypothesis: str) -> str:
        return "contradiction" if frozenset((premise[-1], hypothesis[-1])) in both else "neutral"

    return FakeNLI(judge)


def passages_of(count: int) -> list[str]:
    return [f"p{i}" for i in range(count)]


@pytest.mark.parametrize(
    ("answers", "clashes", "kept"),
    [
        ("ABAA", ["AB"], (0, 2, 3)),
        ("AB", ["AB"], (0,)),
        ("ABCD", ["AB", "CD"], (0, 2)),
        ("?AB", ["AB"], (1,)),
        ("ABBB", ["AB"], (1, 2, 3)),
        ("ABC", [], (0, 1, 2)),
    ],
)
def test_the_worked_examples(answers: str, clashes: list[str], kept: tuple[int, ...]) -> None:
    answers_given = ["I don't know" if letter == "?" else f"answer {letter}" for letter in answers]
    generator = scripted(*answers_given)
    answer = ReliabilityRag(generator, clashing(*clashes)).answer("q", passages_of(len(answers_given)))
    assert answer.screening.kept_indices == kept
    assert len(generator.prompts) == len(answers_given) + 1
    assert generator.prompts[-1].passages == tuple(f"p{i}" for i in kept), "the documents, in rank order"
    assert answer.text == "final"


def test_ten_different_answers_are_judged_in_one_direction() -> None:
    nli = clashing()
    ReliabilityRag(scripted(*(f"answer {i}" for i in range(10))), nli).screen("q", passages_of(10))
    assert sum(map(len, nli.calls)) == 10 * 9 // 2
    nli = clashing()
    ReliabilityRag(scripted("A.", "a", "A"), nli).screen("q", passages_of(3))
    assert sum(map(len, nli.calls)) == 0, "equal answers do not contradict"


def test_the_threshold_belongs_to_the_contradictions() -> None:
    nli = FakeNLI(lambda premise, hypothesis: (0.2, 0.3, 0.5))
    assert ReliabilityRag(scripted("A", "B"), nli).screen("q", passages_of(2)).kept_indices == (0,)
    assert ReliabilityRag(scripted("A", "B"), nli, contradiction=0.51).screen("q", passages_of(2)).kept_indices == (
        0,
        1,
    )


@pytest.mark.parametrize(
    ("fallback", "kept", "task"), [("all", (0, 1), "answer"), ("memory", (), "answer-alone"), ("abstain", (), None)]
)
def test_without_an_informative_answer(fallback: str, kept: tuple[int, ...], task: str | None) -> None:
    generator = scripted("unknown", "I don't know")
    answer = ReliabilityRag(generator, fallback=fallback).answer("q", passages_of(2))  # type: ignore[arg-type]
    assert answer.screening.kept_indices == kept
    assert "no informative answer" in answer.screening.evidence.notes[0]
    assert len(generator.prompts) == (2 if task is None else 3)
    assert answer.abstained == (task is None)
    if task is not None:
        assert generator.prompts[-1].task == task


def test_without_passages_the_model_answers_from_memory() -> None:
    generator = scripted()
    assert ReliabilityRag(generator).answer("q", []).text == "final"
    assert [prompt.task for prompt in generator.prompts] == ["answer-alone"]


def test_weights_of_the_worked_example() -> None:
    assert rank_weights(4, 0.9) == pytest.approx([0.2908, 0.2617, 0.2355, 0.2120], abs=5e-5)
    assert rank_weights(4, 0.0) == pytest.approx([0.4, 0.3, 0.2, 0.1])
    assert rank_weights(0, 0.9).shape == (0,)


def test_samples_are_read_best_last_and_asked_for_together() -> None:
    generator = ScriptedGenerator("A")
    (together,) = next(SampledReliabilityRag(generator, clashing()).answering(Query("q"), as_passages(passages_of(50))))
    assert len(together.prompts) == 20
    answer = SampledReliabilityRag(generator, clashing()).answer("q", passages_of(50))
    drawn = answer.screening.evidence["samples"].tolist()
    assert len(drawn) == 20
    assert all(left <= right for left, right in drawn)
    prompts_seen = {prompt.passages for prompt in generator.prompts[:-1]}
    assert prompts_seen == {(f"p{right}", f"p{left}") for left, right in drawn}
    assert len(generator.prompts) == len(prompts_seen) + 1 <= 21


def test_samples_that_contradict_the_largest_set_are_left_out() -> None:
    texts = [*passages_of(4), "poison"]
    generator = ScriptedGenerator(
        lambda prompt: "final" if len(prompt.passages) > 2 else "B" if "poison" in prompt.passages else "A"
    )
    answer = SampledReliabilityRag(generator, clashing("AB"), gamma=1).answer("q", texts)
    assert 4 in answer.screening.dropped_indices
    assert "poison" not in generator.prompts[-1].passages
    assert len(generator.prompts[-1].passages) > len(set(generator.prompts[-1].passages)), "members repeat, as released"


def test_the_seed_decides_the_draw() -> None:
    draws = [
        SampledReliabilityRag(ScriptedGenerator("A"), seed=seed)
        .screen("q", passages_of(9))
        .evidence["samples"]
        .tolist()
        for seed in (1, 1, 2)
    ]
    assert draws[0] == draws[1] != draws[2]


def test_uninformative_samples_lead_to_memory_as_released() -> None:
    generator = ScriptedGenerator("I don't know")
    answer = SampledReliabilityRag(generator).answer("q", passages_of(3))
    assert generator.prompts[-1].task == "answer-alone"
    assert answer.screening.kept == ()
    assert SampledReliabilityRag(generator, fallback="abstain").answer("q", passages_of(3)).abstained


def graph(size: int, *edges: tuple[int, int]) -> NDArray[np.bool_]:
    matrix = np.zeros((size, size), bool)
    for left, right in edges:
        matrix[left, right] = matrix[right, left] = True
    return matrix


def by_trying_all(edges: NDArray[np.bool_]) -> list[int]:
    """The first of the largest: `combinations` yields in lexicographic order."""
    size = len(edges)
    for count in range(size, -1, -1):
        for chosen in combinations(range(size), count):
            if not edges[np.ix_(chosen, chosen)].any():
                return list(chosen)
    return []


@pytest.mark.parametrize(
    ("edges", "members"),
    [
        (graph(4, (0, 1), (1, 2), (1, 3)), [0, 2, 3]),
        (graph(2, (0, 1)), [0]),
        (graph(4, (0, 1), (2, 3)), [0, 2]),
        (graph(5, (0, 1), (1, 2), (2, 3), (3, 4), (4, 0)), [0, 2]),
        (graph(4, (0, 1), (0, 2), (0, 3)), [1, 2, 3]),
        (graph(3), [0, 1, 2]),
        (graph(1), [0]),
        (graph(0), []),
    ],
)
def test_the_sets_of_the_worked_examples(edges: NDArray[np.bool_], members: list[int]) -> None:
    chosen = maximum_independent_set(edges)
    assert (chosen.members.tolist(), chosen.exact) == (members, True)


@given(size=st.integers(0, 12), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_it_finds_what_trying_all_finds(size: int, share: float, seed: int) -> None:
    upper = np.triu(np.random.default_rng(seed).random((size, size)) < share, 1)
    chosen = maximum_independent_set(upper | upper.T)
    assert chosen.exact
    assert chosen.members.tolist() == by_trying_all(upper | upper.T)


@given(
    groups=st.lists(st.integers(0, 3), max_size=12), clashes=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))
)
def test_equal_answers_stand_and_fall_together(groups: list[int], clashes: set[tuple[int, int]]) -> None:
    edges = np.array([[a != b and bool({(a, b), (b, a)} & clashes) for b in groups] for a in groups], bool)
    edges = edges.reshape(len(groups), len(groups))
    assert maximum_independent_set(edges).members.tolist() == by_trying_all(edges)


def test_when_the_work_is_used_up_a_large_set_remains_and_says_so() -> None:
    upper = np.triu(np.random.default_rng(0).random((200, 200)) < 0.05, 1)
    edges = upper | upper.T
    greedy: list[int] = []
    for vertex in range(200):
        if not edges[vertex, greedy].any():
            greedy.append(vertex)
    hurried = maximum_independent_set(edges, work=0)
    longer = maximum_independent_set(edges, work=100_000)
    assert not hurried.exact
    assert not longer.exact
    assert hurried.members.tolist() == greedy
    assert len(longer.members) >= len(greedy)
    for search in (hurried, longer):
        assert not edges[np.ix_(search.members, search.members)].any()


def test_the_diagonal_does_not_count_and_the_rest_must_be_symmetric() -> None:
    assert maximum_independent_set(np.eye(3)).members.tolist() == [0, 1, 2]
    for wrong in (np.triu(np.ones((2, 2)), 1), np.ones((2, 3)), np.ones(3)):
        with pytest.raises(ValueError, match="symmetric"):
            maximum_independent_set(wrong)


def test_options_have_ranges() -> None:
    assert_range(ReliabilityRag, "contradiction", 0.0, 1.0)
    for name, least, most in (("samples", 1, 10_000), ("size", 1, MAX), ("seed", 0, MAX), ("gamma", 0.0, 1.0)):
        assert_range(SampledReliabilityRag, name, least, most)


def test_the_search_ends_when_its_work_is_spent_and_not_before() -> None:
    """A path of three: the first visit spends four, the whole search more."""
    edges = graph(3, (0, 1), (1, 2))
    spent = next(work for work in range(100) if maximum_independent_set(edges, work=work).exact)
    assert spent > 0
    assert not maximum_independent_set(edges, work=spent - 1).exact
    assert maximum_independent_set(edges).members.tolist() == [0, 2]


def test_every_passage_has_a_score_and_a_reason() -> None:
    nli = clashing(*(f"B{letter}" for letter in "ACDEFG"))
    answers = [f"answer {letter}" for letter in "ACDEFGB"]
    screening = ReliabilityRag(scripted(*answers, "unknown"), nli).screen("q", passages_of(8))
    assert [v.score for v in screening.verdicts] == [-1] * 6 + [-6, 0]
    reasons = [str(v.reason) for v in screening.verdicts]
    assert reasons[0] == "answers 'answer A': in the largest set of 6 without contradiction"
    assert reasons[6] == (
        "answers 'answer B': contradicts passage 0, 1, 2, 3, 4 of the largest set without contradiction"
    ), "five are enough"
    assert reasons[7] == str(Reason.of("answer.uninformative"))
    assert screening.notes == () and screening.evidence["contradiction"].shape == (8, 8)


def test_a_search_that_was_cut_short_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    search = partial(maximum_independent_set, work=0)
    monkeypatch.setattr("unpoison_lab.baselines.reliabilityrag.maximum_independent_set", search)
    (note,) = (
        ReliabilityRag(scripted("answer A", "answer B", "answer C"), clashing("AB")).screen("q", passages_of(3)).notes
    )
    assert note == INEXACT


@pytest.mark.parametrize(
    ("fallback", "note"),
    [("all", "all passages are kept, undefended"), ("memory", "answered from memory"), ("abstain", "abstained")],
)
@pytest.mark.parametrize("kind", [ReliabilityRag, SampledReliabilityRag])
def test_what_is_done_without_an_answer_is_noted_where_there_are_passages(kind: Any, fallback: str, note: str) -> None:
    unsure = kind(ScriptedGenerator("unknown"), fallback=fallback)
    screening = unsure.screen("q", passages_of(2))
    assert screening.notes == (f"no informative answer: {note}",)
    assert screening.kept_indices == ((0, 1) if fallback == "all" else ())
    assert unsure.screen("q", []).notes == ()


def test_a_passage_counts_its_samples_and_those_that_agree() -> None:
    def reply(prompt: Prompt) -> str:
        return "B" if "p2" in prompt.passages else "A"

    sampled = SampledReliabilityRag(ScriptedGenerator(reply), clashing("AB"), samples=9, size=2, gamma=1.0, seed=1)
    screening = sampled.screen("q", passages_of(30))
    drawn = screening.evidence["samples"].tolist()
    assert len(drawn) == 9 and drawn == sorted(drawn), "those with the better ranks first"
    agreeing = [sample for sample in drawn if 2 not in sample]
    for i, verdict in enumerate(screening.verdicts):
        among, consistent = (sum(i in sample for sample in some) for some in (drawn, agreeing))
        said = f"in {consistent} of the consistent samples, of {among} that contain it" if among else "in no sample"
        assert str(verdict.reason) == said
        assert (verdict.score, verdict.kept) == (sum(sample.count(i) for sample in agreeing), consistent > 0)


def test_the_better_a_rank_the_likelier_it_is_drawn() -> None:
    assert rank_weights(3, 0.5) == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert rank_weights(2, 1.0).tolist() == [0.5, 0.5]
    made = SampledReliabilityRag(ScriptedGenerator("A"))
    assert (made.samples, made.size, made.gamma, made.seed, made.contradiction) == (20, 2, 0.9, 0, 0.5)
    assert made.screen("q", []).evidence["samples"].shape == (0, 2)
