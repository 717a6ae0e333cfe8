"""What Guard reports as contested: near-copies, and answers that were read; nothing is dropped because of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import Grada, Guard, Screening
from unpoison.core.verdicts import Contest
from unpoison.defenses.guard.contest import MAX_CONTESTS, MAX_SHOWN_CHARS, ReadAnswers, contests, copy_frames
from unpoison.defenses.guard.statements import MAX_READ
from unpoison.errors import ModelError
from unpoison.models import ScriptedGenerator
from unpoison.models.passage_reader import Reading
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import Models
from unpoison.runtime.driver import run
from unpoison.text.answers import Relation, relation

QUESTION = "what is the refund window"
SHOP = [
    "Refunds are possible within 30 days of purchase.",
    "Our store hours are 9 to 5.",
    "The refund window is 30 days; keep your receipt.",
    "Gift cards cannot be exchanged for cash except where required by law.",
    "To start a return, sign in to your account and choose the order you would like to send back.",
]
COPY = "Refunds are possible within 14 days of purchase."
OTHER = "You may send everything back to us for 14 days, no reason needed."


class Scripted(ScriptedGenerator):
    """A reader that finds the first number of days; it counts how often it is asked how answers relate."""

    def __init__(self, related: object = None) -> None:
        super().__init__(self.reply_of)
        self.compared: list[tuple[str, str]] = []
        self.related = related
        self.seen: list[str] = []
        self.no_answer = 0.0

    def reply_of(self, prompt: Prompt) -> str:
        return self.found(prompt.passages[0]) if prompt.passages else "I don't know"

    def found(self, text: str) -> str:
        words = text.replace(";", "").replace(",", "").split()
        return next((f"{n} {unit}" for n, unit in pairwise(words) if unit == "days"), "I don't know")

    def read(self, question: str, passages: Sequence[str]) -> object:
        self.seen += passages
        return [Reading(text, 0, 1, 1.0, self.no_answer) for text in map(self.found, passages)]

    def relations(self, question: str, pairs: Sequence[tuple[str, str]]) -> object:
        self.compared += pairs
        return [relation(question, *pair) for pair in pairs] if self.related is None else self.related


def says(screening: Screening) -> list[str]:
    return list(map(str, screening.contested))


def found(
    answers: dict[int, str], texts: Sequence[str] | None = None, question: str = "q", doubtful: Sequence[int] = ()
) -> list[str]:
    texts = [f"{i} alone" for i in range(max(answers, default=0) + 1)] if texts is None else texts
    contested, _ = run(
        contests(
            question,
            texts,
            copy_frames(texts),
            ReadAnswers(answers, frozenset(doubtful)),
            np.zeros((len(texts), len(texts))),
        ),
        Models(),
    )
    return list(map(str, contested))


# Near-copies, without any model.


def test_the_shop_with_a_near_copy_is_reported_without_a_reader() -> None:
    screening = Guard().screen(QUESTION, [*SHOP, COPY])
    assert says(screening) == ["sources disagree: 30 days (1 passage), 14 days (1)"]
    assert screening.contested[0].passages == (0, 5)


def test_dropped_near_copies_are_reported_as_well() -> None:
    screening = Guard(threshold=0.0).screen(QUESTION, [*SHOP, COPY])
    assert screening.kept == ()
    assert says(screening) == ["sources disagree: 30 days (1 passage), 14 days (1)"]


def test_copies_of_one_page_are_said_to_be_copies() -> None:
    screening = Guard().screen(QUESTION, [*SHOP, COPY, COPY])
    assert says(screening) == ["sources disagree: 14 days (2 passages, 1 independent), 30 days (1)"]


def test_hidden_characters_do_not_hide_a_near_copy() -> None:
    hidden = "\u200b".join(COPY)
    assert Guard().screen(QUESTION, [*SHOP, hidden]).contested[0].passages == (0, 5)


def test_what_only_spells_an_amount_in_another_way_is_no_dispute() -> None:
    assert Guard().screen(QUESTION, [*SHOP, COPY.replace("14", "thirty")]).contested == ()


def test_other_defenses_leave_it_empty() -> None:
    assert Grada().screen(QUESTION, [*SHOP, COPY]).contested == ()


# Answers that were read.


def test_a_reader_reads_what_is_kept_and_the_user_hears_of_rivals() -> None:
    guard = Guard(generator=Scripted(), threshold=1.0)
    screening = guard.screen(QUESTION, [*SHOP, OTHER])
    assert says(screening) == ["sources disagree: 30 days (2 passages), 14 days (1)"]
    assert [rival.passages for rival in screening.contested[0].rivals] == [(0, 2), (5,)]
    answer = guard.answer(QUESTION, [*SHOP, OTHER])
    assert answer.contested == screening.contested
    assert asyncio.run(guard.ascreen(QUESTION, [*SHOP, OTHER])).contested == screening.contested


def test_only_what_is_kept_is_read() -> None:
    reader = Scripted()
    screening = Guard(generator=reader, threshold=0.03).screen(QUESTION, [*SHOP, OTHER])
    assert screening.dropped
    assert reader.seen == [p.reading for p in screening.kept]


def test_what_the_reader_is_not_sure_of_is_not_held_against_anybody() -> None:
    reader = Scripted()
    reader.no_answer = 0.3
    assert Guard(generator=reader, threshold=1.0).screen(QUESTION, [*SHOP, OTHER]).contested == ()


def test_a_question_for_yes_or_no_is_not_read() -> None:
    reader = Scripted()
    assert Guard(generator=reader, threshold=1.0).screen("is the refund window long", [*SHOP, OTHER]).contested == ()
    assert reader.seen == []


@pytest.mark.parametrize("wrong", [[], [None] * 6, "no", [Reading("a", 0, 1, 0.0, 0.0)]])
def test_a_reading_of_the_wrong_form_is_an_error(wrong: object) -> None:
    reader = Scripted()
    reader.read = lambda *_: wrong  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(ModelError, match="list of 6 Reading"):
        Guard(generator=reader, threshold=1.0).screen(QUESTION, [*SHOP, OTHER])


def test_a_language_model_is_not_asked_for_it() -> None:
    generator = ScriptedGenerator("30 days")
    assert Guard(generator=generator).screen(QUESTION, [*SHOP, COPY]).contested
    assert generator.prompts == []


def test_the_readers_own_comparison_counts() -> None:
    same = [Relation(0.9, 0.05, 0.05)] * 3
    reader = Scripted(same)
    assert Guard(generator=reader, threshold=1.0).screen(QUESTION, [*SHOP, OTHER]).contested == ()
    sides = {("30 days", "14 days"), ("within 30 days", "14 days"), ("within 30 days", "30 days")}
    assert set(map(frozenset, reader.compared)) == set(
        map(frozenset, sides)
    )  # for the contest and for the claims; a reader remembers


@pytest.mark.parametrize("wrong", [[], [0.5], "same", [Relation(1, 0, 0)] * 2])
def test_a_comparison_of_the_wrong_form_is_an_error(wrong: object) -> None:
    with pytest.raises(ModelError, match="list of 3 Relation"):
        Guard(generator=Scripted(wrong), threshold=1.0).screen(QUESTION, [*SHOP, OTHER])


def test_near_copies_that_reading_already_told_of_are_not_told_again() -> None:
    screening = Guard(generator=Scripted(), threshold=1.0).screen(QUESTION, [*SHOP, COPY])
    assert says(screening) == ["sources disagree: 30 days (2 passages), within 14 days (1)"]


def test_a_bound_on_reading_is_told() -> None:
    reader = Scripted()
    given = [f"{text} {i}" for i in range(12) for text in SHOP]
    screening = Guard(generator=reader, threshold=1.0).screen(QUESTION, given)
    assert len(reader.seen) <= MAX_READ
    assert f"the first {MAX_READ} of 60 kept passages" in " ".join(screening.evidence.notes)


# The rule.


@pytest.mark.parametrize(
    ("answers", "contested"),
    [
        (["Oslo", "Paris"], True),
        (["Oslo", "Oslo", "Paris"], True),
        (["Oslo", "Oslo", "Oslo", "Paris"], False),
        (["Oslo"] * 4 + ["Paris"] * 2, True),
        (["Oslo"] * 5 + ["Paris"] * 2, False),
        (["Oslo"] * 3 + ["Paris", "Rome"], False),
        (["Oslo", "", "I don't know"], False),
        (["Oslo", "oslo.", "Oslo"], False),
        ([], False),
    ],
)
def test_a_rival_needs_half_of_the_leading_voices(answers: list[str], contested: bool) -> None:
    assert bool(found(dict(enumerate(answers)))) == contested


def test_doubtful_answers_contest_nothing_by_themselves_but_have_a_voice() -> None:
    answers = {0: "Oslo", 1: "Paris", 2: "Oslo", 3: "Oslo"}
    assert found(answers, doubtful=(1,)) == []
    assert found(answers, doubtful=(2, 3)) == []
    assert found({0: "Oslo", 1: "Paris", 2: "Oslo"}, doubtful=(2,)) == [
        "sources disagree: Oslo (2 passages), Paris (1)"
    ]


def test_copies_share_a_voice() -> None:
    texts = ["the one that was copied"] * 4 + ["the other one"]
    assert found(dict(enumerate(["Oslo"] * 4 + ["Paris"])), texts) == [
        "sources disagree: Oslo (4 passages, 1 independent), Paris (1)"
    ]


def test_disputes_that_have_nothing_to_do_with_each_other_are_two() -> None:
    answers = dict(enumerate(["a", "b", "c", "d"]))
    related = {frozenset(("a", "b")): Relation(0, 1, 0), frozenset(("c", "d")): Relation(0, 1, 0)}
    reader = Scripted()
    reader.relations = lambda _, pairs: [related.get(frozenset(pair), Relation(0, 0, 1)) for pair in pairs]
    flow = contests("q", list("wxyz"), [], ReadAnswers(answers), np.zeros((4, 4)), asks=True)
    contested, _ = run(flow, Models(generator=reader))
    assert [contest.passages for contest in contested] == [(0, 1), (2, 3)]


def test_hostile_answers_are_bounded_and_cannot_pass_for_counts() -> None:
    (reply_of,) = found({0: 'Oslo (9 passages), "Rome', 1: "Paris"})
    assert reply_of == 'sources disagree: "Oslo (9 passages), \'Rome" (1 passage), Paris (1)'
    contested, _ = run(
        contests("q", ["a", "b"], [], ReadAnswers({0: "x" * 5000, 1: "Paris"}), np.zeros((2, 2))), Models()
    )
    assert max(len(rival.answer) for contest in contested for rival in contest.rivals) <= MAX_SHOWN_CHARS


def test_there_are_never_many() -> None:
    names = ["Oslo", "Paris"]
    given = [f"Version {i} of story {i} tells that number{i} tale{i} of {n} today" for i in range(30) for n in names]
    assert len(Guard().screen("where is it", given).contested) == MAX_CONTESTS


# Promises.


WORDS = ["Refunds", "possible", "within", "30", "14", "days", "of", "purchase", "Oslo", "Paris", "are", "the"]


@given(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=1, max_size=7))
def test_it_changes_nothing_that_is_kept_and_is_sound(texts: list[str]) -> None:
    with_reader = Guard(generator=Scripted(), threshold=0.5).screen(QUESTION, texts)
    without = Guard(threshold=0.5).screen(QUESTION, texts)
    assert with_reader.verdicts == without.verdicts
    for screening in (with_reader, without):
        assert Screening.from_dict(json.loads(json.dumps(screening.to_dict()))).contested == screening.contested
        for contest in screening.contested:
            assert isinstance(contest, Contest)
            positions = [i for rival in contest.rivals for i in rival.passages]
            assert len(positions) == len(set(positions))
            assert all(0 <= i < len(texts) for i in positions)
            assert all(1 <= rival.voices <= len(rival.passages) for rival in contest.rivals)
            if set(positions) & set(screening.dropped_indices):  # only near-copies are told of when dropped
                assert all(rival.voices == 1 for rival in contest.rivals)


@pytest.mark.needs("unpoison_reader", "onnxruntime")
def test_the_shipped_reader() -> None:
    museums = [
        "The Vasa Museum stands on the island of Djurgården in Stockholm and was built around the salvaged hull.",
        "The museum of the warship Vasa is in the city of Gothenburg, beside the harbour.",
        "Oak trees were felled for shipbuilding all over Europe in the seventeenth century.",
        "The salvaged warship is shown in the Vasa Museum in Stockholm, the most visited in Scandinavia.",
    ]
    guard = Guard(generator="reader", threshold=1.0)
    answer = guard.answer("which city has the museum of the warship Vasa", museums)
    assert list(map(str, answer.contested)) == ["sources disagree: Stockholm (2 passages), Gothenburg (1)"]
