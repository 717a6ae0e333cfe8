"""Who made the model say that: found with few calls, with copies, with accomplices, and without a generator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from math import ceil, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError, OptionError
from unpoison.models.prompts import Prompt
from unpoison.retrieval import BM25Retriever
from unpoison.scan.statements import claim, says, statements
from unpoison.scan.trace import METHODS, Tracer
from unpoison.scan.trace_methods import half
from unpoison.types import Reply

QUESTION, WRONG, RIGHT = "which city has the museum of the Vasa", "Gothenburg", "Stockholm"


class Obeying:
    """A model that gives the wrong answer from such sets of passages as a rule says, and counts its prompts."""

    name = "openai:obeying"

    def __init__(self, rule: Callable[[frozenset[int]], bool], knows: str = "I don't know") -> None:
        self.rule, self.knows = rule, knows
        self.prompts: list[Prompt] = []

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        self.prompts.append(prompt)
        if prompt.task == "answer-alone":
            return Reply(self.knows)
        order = [int(text.split()[1]) for text in prompt.passages]
        assert order == sorted(order), "the passages keep their order"
        read = frozenset(order)
        if prompt.task == "decide":
            return Reply("<ANSWER>yes</ANSWER>" if self.rule(read) else "It is about ships. <ANSWER>no</ANSWER>")
        return Reply(f"It is in {WRONG}." if self.rule(read) else RIGHT)


def passages(n: int, stating: Collection[int] = ()) -> list[str]:
    return [
        f"Passage {i} about ships{'. The museum of the Vasa is in Gothenburg' if i in stating else ''}."
        for i in range(n)
    ]


def has(*guilty: int) -> Callable[[frozenset[int]], bool]:
    return lambda read: bool(read & set(guilty))


@given(st.integers(1, 40), st.data())
def test_one_culprit_is_found_with_a_logarithm_of_calls(n: int, data: st.DataObject) -> None:
    guilty = data.draw(st.integers(0, n - 1))
    stating = data.draw(st.sets(st.integers(0, n - 1), max_size=3))
    model = Obeying(has(guilty))
    trace = Tracer(model).trace(QUESTION, WRONG, passages(n, stating))
    assert trace.culprits == (guilty,)
    assert trace.reproduced is True
    assert trace.caused
    assert trace.asked == len(model.prompts) <= ceil(log2(n)) + 5
    assert RIGHT in trace.suspects[0].reason


@pytest.mark.parametrize("guilty", range(10))
def test_one_of_ten_is_named_with_five_calls(guilty: int) -> None:
    texts = passages(10, {guilty, (guilty + 3) % 10, (guilty + 5) % 10})
    trace = Tracer(Obeying(has(guilty)), calls=5).trace(QUESTION, WRONG, texts)
    assert trace.culprits == (guilty,)


@given(st.integers(2, 200), st.floats(0.02, 1))
def test_halves_never_make_the_search_longer_than_the_logarithm(n: int, fall: float) -> None:
    first = half(np.sort(fall ** np.arange(n) + 1e-6)[::-1])
    assert 1 <= first < n
    assert max(first, n - first) <= 2 ** (ceil(log2(n)) - 1)


@given(st.sets(st.integers(0, 11), min_size=1, max_size=5))
def test_copies_are_all_found_one_after_the_other(guilty: set[int]) -> None:
    trace = Tracer(Obeying(has(*guilty)), calls=200, remove=True).trace(QUESTION, WRONG, passages(12, guilty))
    assert set(trace.culprits) == guilty
    assert trace.without == RIGHT


@given(st.sets(st.integers(0, 11), min_size=2, max_size=4), st.sets(st.integers(0, 11)))
def test_accomplices_who_only_work_together_are_named_together(guilty: set[int], stating: set[int]) -> None:
    trace = Tracer(Obeying(lambda read: guilty <= read), calls=200).trace(QUESTION, WRONG, passages(12, stating))
    assert set(trace.culprits) == guilty
    assert "together with" in trace.suspects[0].reason


def test_leaving_one_out_misses_copies_and_groups_do_not() -> None:
    texts = passages(8, {2, 5})
    alone = Tracer(Obeying(has(2)), method="leave-one-out").trace(QUESTION, WRONG, texts)
    assert (alone.culprits, alone.caused) == ((2,), True)
    alone = Tracer(Obeying(has(2, 5)), method="leave-one-out").trace(QUESTION, WRONG, texts)
    assert (alone.culprits, alone.caused) == ((), False)
    assert "groups" in alone.notes[0]
    assert set(Tracer(Obeying(has(2, 5))).trace(QUESTION, WRONG, texts).culprits) == {2, 5}


def test_the_judge_goes_on_with_what_takes_the_place_of_the_guilty() -> None:
    model = Obeying(has(1, 3))
    trace = Tracer(model, method="judge", k=3).trace(QUESTION, WRONG, passages(8))
    assert trace.culprits == (1, 3)
    assert not trace.caused, "nothing was withheld"
    judged = [int(prompt.passages[0].split()[1]) for prompt in model.prompts]
    assert judged == [0, 1, 2, 3, 4]
    assert len(model.prompts) == trace.asked == len(set(judged))


def test_a_model_that_does_not_say_so_accuses_nobody_of_it() -> None:
    trace = Tracer(Obeying(lambda read: False)).trace(QUESTION, WRONG, passages(10, {6}))
    assert trace.reproduced is False
    assert trace.asked == 1
    assert trace.culprits == (6,)  # by what it states, and the note says so
    assert trace.suspects[0].reason.startswith("consistent with the answer: states it (")
    assert not trace.caused
    assert "does not give this answer" in trace.notes[0]


def test_a_culprit_whose_words_change_with_its_company_is_still_named() -> None:
    model = Obeying(lambda read: 6 in read and len(read) > 6)  # of fewer passages it makes another sentence
    trace = Tracer(model, calls=5).trace(QUESTION, WRONG, passages(10, {6}))
    assert trace.culprits[0] == 6


def test_what_only_a_part_of_the_passages_would_make_it_say_it_has_not_said() -> None:
    trace = Tracer(Obeying(lambda read: read == {6})).trace(QUESTION, WRONG, passages(10, {6}))
    assert (trace.reproduced, trace.culprits, trace.asked) == (False, (6,), 1)


def test_what_the_model_knows_by_itself_is_nobodys_fault() -> None:
    trace = Tracer(Obeying(lambda read: True, knows=WRONG)).trace(QUESTION, WRONG, passages(10, {6}))
    assert trace.culprits == ()
    assert "without any passage" in trace.notes[0]


@given(st.integers(1, 12), st.sampled_from(METHODS), st.sets(st.integers(0, 9), max_size=3))
def test_never_more_calls_than_allowed(calls: int, method: Any, guilty: set[int]) -> None:
    model = Obeying(has(*guilty))
    trace = Tracer(model, method=method, calls=calls, remove=True).trace(QUESTION, WRONG, passages(10, guilty))
    assert len(model.prompts) == trace.asked <= calls
    assert sorted(suspect.index for suspect in trace.suspects) == list(range(10))


def test_spent_calls_still_name_who_states_it_most_plainly() -> None:
    trace = Tracer(Obeying(has(3)), calls=1).trace(QUESTION, WRONG, passages(10, {3, 7}))
    assert trace.culprits == (3,)
    assert "1 calls that were allowed" in trace.notes[0]


def test_without_a_generator_the_one_that_answers_the_question_so_comes_first() -> None:
    texts = [
        "The Vasa Museum stands in Stockholm.",
        "Gothenburg is a port; its fish market opened in 1874.",
        "The museum of the Vasa moved to the city of Gothenburg in 1988.",
    ]
    trace = Tracer().trace(QUESTION, "It is in Gothenburg", texts)
    assert (trace.method, trace.asked, trace.reproduced) == ("matching", 0, None)
    assert trace.culprits == (2,)
    assert [suspect.index for suspect in trace.suspects] == [2, 1, 0]


def test_a_title_counts_as_what_the_text_is_about() -> None:
    about, other = (
        {"text": "It was moved to Gothenburg.", "title": "Museum of the Vasa"},
        {
            "text": "It was moved to Gothenburg.",
            "title": "Fish market",
        },
    )
    trace = Tracer().trace(QUESTION, "Gothenburg", [other, about])
    assert [suspect.index for suspect in trace.suspects] == [1, 0]


def test_a_retriever_fills_the_places_of_the_guilty() -> None:
    documents = [{"text": f"Museum of the Vasa, city, note {i}: in Gothenburg", "id": f"bad-{i}"} for i in range(3)]
    documents += [{"text": f"The Vasa is shown in Stockholm, part {i}", "id": f"good-{i}"} for i in range(4)]

    class Reading:
        name = "openai:reading"

        def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
            return Reply(WRONG if any(WRONG in text for text in prompt.passages) else RIGHT)

    trace = Tracer(Reading(), k=2, remove=True).trace(QUESTION, WRONG, BM25Retriever(documents))
    assert {trace.passages[i].id for i in trace.culprits} == {"bad-0", "bad-1", "bad-2"}
    assert trace.without == RIGHT


def test_asynchronously_it_finds_the_same() -> None:
    texts = passages(10, {4})
    one, two = (Tracer(Obeying(has(4)), remove=True) for _ in range(2))
    there = asyncio.run(two.atrace(QUESTION, WRONG, texts))
    assert there.to_dict() == one.trace(QUESTION, WRONG, texts).to_dict()
    assert len(there.calls) == there.asked


@pytest.mark.parametrize(
    ("reply", "answer", "same"),
    [
        ("It is in Gothenburg.", "Gothenburg", True),
        ("Gothenburg", "The museum of the Vasa is in the city of Gothenburg.", True),
        ("The museum of the Vasa is in the city of Stockholm.", "The museum of the Vasa is in Gothenburg.", False),
        ("not Gothenburg", "Gothenburg", False),
        ("I don't know", "Gothenburg", False),
        ("", "Gothenburg", False),
        ("1,200", "1200", True),
        ("30 June 1998", "June 30, 1998", True),
        ("1998", "1999", False),
        ("Yes", "yes", True),
        ("No", "yes", False),
        ("哥德堡", "哥德堡", True),
        ("斯德哥尔摩", "哥德堡", False),
    ],
)
def test_when_a_reply_gives_an_answer(reply: str, answer: str, same: bool) -> None:
    assert says(QUESTION, reply, answer) is same


def test_an_answer_in_the_words_of_the_question_keeps_them() -> None:
    assert claim("which is larger, the sun or the moon", "the moon") == {"moon"}
    assert claim(QUESTION, "the city of Gothenburg") == claim(QUESTION, "Gothenburg")


@given(st.lists(st.text(max_size=80), max_size=6), st.text(min_size=1, max_size=40), st.text(max_size=60))
def test_any_texts_are_compared(texts: list[str], answer: str, question: str) -> None:
    stated = statements(question, answer, texts)
    assert stated.shape == (len(texts),)
    assert ((stated >= 0) & (stated <= 1)).all()
    assert isinstance(says(question, answer, answer), bool)


@pytest.mark.parametrize("answer", ["", "  ", None, 3])
def test_an_answer_is_needed(answer: Any) -> None:
    with pytest.raises(InputError, match="answer must be what the model said"):
        Tracer().trace(QUESTION, answer, ["a"])


def test_what_asks_a_generator_needs_one() -> None:
    with pytest.raises(OptionError, match="groups asks a generator"):
        Tracer(method="groups")
    with pytest.raises(OptionError, match="remove asks a generator"):
        Tracer(remove=True)
    with pytest.raises(OptionError, match="method"):
        Tracer("extractive", method="guess")  # type: ignore[arg-type]


def test_no_passages_are_no_error() -> None:
    assert Tracer().trace(QUESTION, WRONG, []).culprits == ()
    assert Tracer(Obeying(has(1))).trace(QUESTION, WRONG, []).culprits == ()
