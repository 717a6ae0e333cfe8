from __future__ import annotations

import numpy as np
import pytest

from ranges import assert_range
from unpoison import Radar
from unpoison.algorithms.mincut import min_cut
from unpoison.core.answers import Reply, Weights
from unpoison.defenses.radar import _reason, posterior
from unpoison.models import FakeEncoder, FakeNLI, ScriptedGenerator
from unpoison.models.prompts import Prompt

QUESTION = "Who wrote it?"


def reader(answers: dict[str, str]) -> ScriptedGenerator:
    """Reads a passage as the given answer; its final answer is what it was shown."""
    return ScriptedGenerator(
        lambda prompt: answers[prompt.passages[0]] if prompt.task == "atomic" else " | ".join(prompt.passages)
    )


def judged_by(matrix: np.ndarray, conflict: np.ndarray, names: str) -> FakeNLI:
    """An NLI model whose entailment and contradiction between single-letter answers are given."""

    def judge(premise: str, hypothesis: str) -> tuple[float, float, float]:
        i, j = (names.index(text[-1]) for text in (premise, hypothesis))
        return matrix[i, j], 1 - matrix[i, j] - conflict[i, j], conflict[i, j]

    return FakeNLI(judge)


def alike(*_: str) -> FakeEncoder:
    return FakeEncoder({name: [1.0, 0.0] for name in "abcdefghij"})


def square(values: dict[tuple[int, int], float], n: int = 4) -> np.ndarray:
    matrix = np.zeros((n, n))
    for (i, j), value in values.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


AGREE = square({(0, 1): 0.9, (0, 2): 0.8, (1, 2): 0.85, (0, 3): 0.05, (1, 3): 0.05, (2, 3): 0.05})
CONFLICT = square({(0, 1): 0.02, (0, 2): 0.02, (1, 2): 0.02, (0, 3): 0.7, (1, 3): 0.7, (2, 3): 0.7})
DOCUMENTS = ["first", "second", "third", "fourth"]


def four(order: str = "abcd", mode: str = "paper") -> Radar:
    generator = reader(dict(zip(DOCUMENTS, order, strict=True)))
    return Radar(generator, judged_by(AGREE, CONFLICT, "abcd"), mode=mode, encoder=alike())


def test_the_worked_example_in_paper_mode() -> None:
    screening = four().screen(QUESTION, DOCUMENTS)
    assert screening.evidence["centrality"] == pytest.approx([0.9798, 1, 0.9580, 0], abs=1e-4)
    assert screening.evidence["source"] == pytest.approx([0.7631, 0.6065, 0.4525, 0], abs=1e-4)
    assert screening.evidence["sink"] == pytest.approx([0.02, 0.02, 0.02, 0.7], abs=1e-4)
    assert screening.kept_indices == (0, 1, 2)


def test_a_reason_names_the_strongest_conflict() -> None:
    reasons = [verdict.reason for verdict in four().screen(QUESTION, DOCUMENTS).verdicts]
    assert [reason.code for reason in (reasons[0], reasons[3])] == ["radar.trusted", "radar.contradicted"]
    assert "conflict 0.70 with passage 3" in str(reasons[0])
    assert "conflict 0.70 with passage 0" in str(reasons[3])


def test_the_worked_example_in_reference_mode() -> None:
    screening = four(mode="reference").screen(QUESTION, DOCUMENTS)
    assert screening.evidence["source"] == pytest.approx([0.99, 0.7949, 0.5930, 0.01], abs=1e-4)
    assert screening.evidence["sink"] == pytest.approx([0.01, 0.01, 0.01, 0.99], abs=1e-4)
    assert screening.kept_indices == (0, 1, 2)


@pytest.mark.parametrize("mode", ["paper", "reference"])
def test_an_attacker_at_the_first_rank_is_still_dropped(mode: str) -> None:
    assert four("dabc", mode).screen(QUESTION, DOCUMENTS).dropped_indices == (0,)


def test_the_majority_wins_whichever_bloc_is_true() -> None:
    inside = square(dict.fromkeys([(0, 1), (0, 2), (1, 2), (3, 4)], 0.9), 5)
    across = square({(i, j): 0.95 for i in range(3) for j in (3, 4)}, 5)
    texts = [*DOCUMENTS, "fifth"]
    radar = Radar(reader(dict(zip(texts, "abcde", strict=True))), judged_by(inside, across, "abcde"), encoder=alike())
    assert radar.screen(QUESTION, texts).kept_indices == (0, 1, 2)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_unanimity_keeps_all(count: int) -> None:
    texts = [f"document {i}" for i in range(count)]
    screening = Radar(reader(dict.fromkeys(texts, "Paris"))).screen(QUESTION, texts)
    assert screening.kept_indices == tuple(range(count))
    assert "equally central" in screening.evidence.notes[0]


@pytest.mark.parametrize("seed", range(20))
def test_noisy_unanimity_keeps_all_in_paper_mode(seed: int) -> None:
    rng = np.random.default_rng(seed)
    entails, contradicts = rng.uniform(0.85, 0.99, (10, 10)), rng.uniform(0.001, 0.01, (10, 10))
    texts = [f"document {i}" for i in range(10)]
    generator = reader(dict(zip(texts, "abcdefghij", strict=True)))
    radar = Radar(generator, judged_by(entails, contradicts, "abcdefghij"), encoder=alike())
    assert len(radar.screen(QUESTION, texts).kept) == 10


@pytest.mark.seeded
def test_the_released_codes_collapse_on_unanimity_is_reproduced() -> None:
    texts = [f"document {i}" for i in range(3)]
    screening = Radar(reader(dict.fromkeys(texts, "Paris")), mode="reference").screen(QUESTION, texts)
    assert screening.evidence["source"] == pytest.approx([0.99, 0.4174, 0.01], abs=1e-4)
    assert screening.evidence["sink"] == pytest.approx([0.5, 0.5, 0.5])
    assert screening.kept == ()


def test_strong_conflict_switches_agreement_off_in_reference_mode() -> None:
    strong = np.where(CONFLICT > 0.5, 0.9, CONFLICT)
    generator = reader(dict(zip(DOCUMENTS, "abcd", strict=True)))
    radar = Radar(
        generator, judged_by(np.minimum(AGREE, 1 - strong), strong, "abcd"), mode="reference", encoder=alike()
    )
    screening = radar.screen(QUESTION, DOCUMENTS)
    assert screening.evidence["agreement"][3, :3].max() == 0
    assert screening.kept_indices == (0, 1, 2)


def test_only_distinct_ordered_pairs_of_distinct_answers_are_judged() -> None:
    nli = FakeNLI(lambda premise, hypothesis: (0.1, 0.2, 0.7))
    answers = dict(zip(DOCUMENTS, ["Paris", "paris.", "Lyon", "Paris"], strict=True))
    Radar(reader(answers), nli).screen(QUESTION, DOCUMENTS)
    judged_pairs = [pair for call in nli.calls for pair in call]
    assert len(judged_pairs) == len(set(judged_pairs)) == 2
    assert all(premise.startswith(f"Question: {QUESTION} Answer: ") for premise, _ in judged_pairs)


def test_a_single_informative_answer_is_kept() -> None:
    generator = reader(dict(zip(DOCUMENTS, ["I don\u2019t know", "Paris", "I DON'T KNOW.", ""], strict=True)))
    screening = Radar(generator).screen(QUESTION, DOCUMENTS)
    assert screening.kept_indices == (1,)
    assert str(screening.verdicts[0].reason) == "its atomic answer is uninformative"


def test_ranks_count_the_uninformative_ones() -> None:
    answers = dict(zip([*DOCUMENTS, "fifth"], ["a", "I don't know", "b", "c", "d"], strict=True))
    radar = Radar(reader(answers), judged_by(AGREE, CONFLICT, "abcd"), encoder=alike())
    screening = radar.screen(QUESTION, list(answers))
    assert screening.evidence["source"][:3] == pytest.approx(
        [0.9798 * np.exp(-0.2), np.exp(-0.6), 0.9580 * np.exp(-0.8)], abs=1e-4
    )


def test_two_answers_that_are_unlike_leave_the_better_rank() -> None:
    nli = FakeNLI(lambda premise, hypothesis: (0.0, 1.0, 0.0))
    encoder = FakeEncoder({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    radar = Radar(reader({"first": "a", "second": "b"}), nli, encoder=encoder)
    assert radar.screen(QUESTION, ["first", "second"]).kept_indices == (0,)
    reference = Radar(reader({"first": "a", "second": "b"}), nli, encoder=encoder, outlier=0.3)
    assert reference.screen(QUESTION, ["first", "second"]).verdicts[1].reason.code == "radar.outlier"


class TestAnswer:
    def final(self, **options: object) -> Prompt:
        generator = reader(dict(zip(DOCUMENTS, "abcd", strict=True)))
        radar = Radar(generator, judged_by(AGREE, CONFLICT, "abcd"), encoder=alike(), **options)  # type: ignore[arg-type]
        answer = radar.answer(QUESTION, DOCUMENTS)
        assert answer.details["atomic_answers"] == ["a", "b", "c", "d"]
        assert len([call for call in answer.calls if call.kind == "generate"]) == 5
        return generator.prompts[-1]

    def test_from_the_trusted_documents(self) -> None:
        assert self.final().passages == ("first", "second", "third")

    def test_from_the_trusted_answers(self) -> None:
        strict, lenient = self.final(final="answers"), self.final(final="answers", lenient_below=4)
        assert strict.passages == lenient.passages == ("a", "b", "c")
        assert strict.task == lenient.task == "synthesize"
        assert strict.system != lenient.system

    @pytest.mark.parametrize(
        ("fallback", "task", "shown"), [("all", "answer", 4), ("memory", "answer-alone", 0), ("abstain", None, 0)]
    )
    def test_when_nothing_is_trusted(self, fallback: str, task: str | None, shown: int) -> None:
        generator = reader(dict.fromkeys(DOCUMENTS, "I don't know"))
        answer = Radar(generator, fallback=fallback).answer(QUESTION, DOCUMENTS)
        assert answer.screening.kept == ()
        if task is None:
            assert answer.abstained
            assert len(generator.prompts) == 4
        else:
            assert generator.prompts[-1].task == task
            assert len(generator.prompts[-1].passages) == shown

    def test_no_passages_answers_from_memory(self) -> None:
        generator = ScriptedGenerator(lambda prompt: "from memory")
        assert Radar(generator).answer(QUESTION, []).text == "from memory"


def test_a_megabyte_of_answer_is_cut_before_it_is_compared() -> None:
    nli = FakeNLI(lambda premise, hypothesis: (0.5, 0.4, 0.1))
    Radar(reader({"first": "a" * 1_000_000, "second": "b" * 1_000_000}), nli, encoder=FakeEncoder()).screen(
        QUESTION, ["first", "second"]
    )
    assert max(len(text) for call in nli.calls for pair in call for text in pair) < 2_100


def test_a_refused_reading_is_no_answer() -> None:
    def reply(prompt: Prompt) -> Reply:
        refused = prompt.passages == ("first",) and prompt.task == "atomic"
        return Reply("I cannot help with that.", finish="refusal") if refused else Reply("b")

    screening = Radar(ScriptedGenerator(reply)).screen(QUESTION, DOCUMENTS[:3])
    assert screening.evidence["answering"].tolist() == [1, 2]


@pytest.mark.parametrize("outlier", [-1.0, 0.3])
def test_one_contradiction_does_not_deny_service(outlier: float) -> None:
    """Two answers that contradict are equally central: Eq. 36 gives both 0, so both are kept."""
    answers = dict(zip([*DOCUMENTS, "fifth"], ["a", "d", *["I don't know"] * 3], strict=True))
    radar = Radar(reader(answers), judged_by(AGREE, CONFLICT, "abcd"), encoder=alike(), outlier=outlier)
    screening = radar.screen(QUESTION, list(answers))
    assert screening.kept_indices == (0, 1)
    assert screening.evidence["source"].tolist() == screening.evidence["sink"].tolist() == [0, 0]
    assert "contradict" in screening.evidence.notes[0]
    assert not radar.answer(QUESTION, list(answers)).abstained


def test_two_equal_blocs_that_contradict_are_both_kept() -> None:
    across = square({(i, j): 0.9 for i in (0, 1) for j in (2, 3)})
    inside = square({(0, 1): 0.9, (2, 3): 0.9})
    generator = reader(dict(zip(DOCUMENTS, "abcd", strict=True)))
    assert (
        len(Radar(generator, judged_by(inside, across, "abcd"), encoder=alike()).screen(QUESTION, DOCUMENTS).kept) == 4
    )


def _of_distinct(agreement: np.ndarray, conflict: np.ndarray, mode: str = "paper") -> np.ndarray:
    """The labels of the cut, in the capacities that a defense gives these matrices."""
    count = len(agreement)
    graph = four(mode=mode)._graph(agreement, conflict, np.arange(count), count)
    return min_cut(graph.source, graph.sink, graph.agreement)


@pytest.mark.parametrize("tied", [0.06, 0.061, 0.1, 0.14])
def test_one_central_answer_and_others_that_tie_have_no_conflict_that_counts(tied: float) -> None:
    """Eq. 7 is 0/0 there: with the released code's 1e-8 below, the central answer has no conflict to fear."""
    agreement = square({(0, 1): 0.15, (0, 2): 0.15, (1, 2): tied}, 3) + np.eye(3)
    conflict = square({(0, 1): 0.9, (0, 2): 0.9}, 3)
    graph = four()._graph(agreement, conflict, np.arange(3), 3)
    assert sorted(graph.centrality)[:2] == pytest.approx([0, 0])
    assert (graph.sink <= conflict.max() + 1e-9).all()
    assert graph.sink[int(graph.centrality.argmax())] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("mode", ["paper", "reference"])
def test_noise_of_the_last_digit_changes_no_cut(mode: str) -> None:
    """400 graphs whose similarities are often equal, as a judge of few levels gives them."""
    rng, levels = np.random.default_rng(0), [0, 0.05, 0.06, 0.1, 0.15, 0.5, 0.9, 1.0]
    for _ in range(400):
        count = int(rng.integers(3, 7))
        agreement, conflict, noise = (np.triu(x, 1) for x in (*rng.choice(levels, (2, count, count)),
                                                              rng.normal(0, 1e-15, (count, count))))  # fmt: skip
        agreement, conflict, noise = (x + x.T for x in (agreement, conflict, noise))
        plain = _of_distinct(agreement + np.eye(count), conflict, mode)
        assert (_of_distinct(np.abs(agreement + noise) + np.eye(count), conflict, mode) == plain).all()


def test_options_have_their_range() -> None:
    models = {"generator": ScriptedGenerator("x")}
    assert_range(Radar, "outlier", -1.0, 1.0, **models)
    assert_range(Radar, "contradiction_cut", 0.0, 1.0, **models)
    assert_range(Radar, "lenient_below", 0, **models)


def test_the_defaults_are_those_of_the_mode() -> None:
    """The paper cuts no pair off and keeps nobody leniently; the released code does (`docs/defenses/radar.md`)."""
    paper, code = (Radar(ScriptedGenerator("x"), mode=mode) for mode in ("paper", "reference"))
    assert (paper.contradiction_cut, paper.lenient_below, paper.fallback) == (1.0, 0, "previous")
    assert (code.contradiction_cut, code.lenient_below) == (0.8, 3)
    assert code.fallback not in ("previous", "abstain", "all", "memory")
    assert Radar(ScriptedGenerator("x"), mode="reference", fallback="abstain").fallback == "abstain"


@pytest.mark.parametrize(
    ("prior", "likelihood", "after"),
    [(0.5, 0.5, 0.5), (0.3, 0.5, 0.3), (0.5, 0.9, 0.9), (0.8, 0.2, 0.5), (0.0, 0.5, 0.01), (1.0, 0.5, 0.99),
     (0.5, 0.0, 0.0), (0.5, 1.0, 1.0)],
)  # fmt: skip
def test_bayes_moves_a_belief_by_what_speaks_for_it(prior: float, likelihood: float, after: float) -> None:
    assert posterior(prior, likelihood) == pytest.approx(after)


@pytest.mark.parametrize(
    ("support", "informative", "in_cut", "kept", "said"),
    [
        (0.6, True, True, True, "support 0.60 against 0.40"),
        (0.4, True, True, True, "support 0.40 against 0.40"),
        (0.3, True, True, True, "support 0.30 against 0.40, but trusted passages agree with it"),
        (0.6, True, False, False, "support 0.60 against 0.40, but the passages that agree with it are cut off, and it"),
        (0.3, True, False, False, "support 0.30 against 0.40"),
        (0.6, True, True, False, "it is unlike the other trusted answers, with support 0.60 against 0.40"),
        (0.6, False, True, True, "no passage is informative, so there is no evidence against it: support 0.60"),
        (0.3, False, False, False, "support 0.30 against 0.40"),
    ],
)
def test_why_the_previous_answer_stays_or_goes(
    support: float, informative: bool, in_cut: bool, kept: bool, said: str
) -> None:
    why = _reason(Weights(support, 0.4), informative=informative, in_cut=in_cut, kept=kept)
    assert why.startswith(said)
    assert ("but" in why) is ("but" in said)
