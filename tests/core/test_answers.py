"""Answers, what is promised of them, and the belief that is stored for the next step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unpoison import Vanilla
from unpoison.core.answers import MAX_ANSWER, MAX_QUERY, Answer, Belief, BeliefUpdate, Weights, guarantee_sentence
from unpoison.core.verdicts import Claim, Contest, Rival
from unpoison.errors import InputError

SCREENING = Vanilla().screen("who?", ["Ann did it.", "Ben did it."])


@pytest.mark.parametrize(
    ("guarantee", "unit", "says"),
    [
        (None, "passages", "no proof"),
        (0, "passages", "one planted passage could"),
        (0, "sources", "one source could"),
        (1, "passages", "any one of the 2 passages is planted"),
        (2, "passages", "any 2 of the 2 passages are planted"),
        (1, "sources", "any one of the sources that count is in"),
        (2, "sources", "any 2 of the sources that count are in"),
    ],
)
def test_a_guarantee_is_a_sentence(guarantee: int | None, unit: str, says: str) -> None:
    assert says in guarantee_sentence(guarantee, 2, unit)


def test_an_abstention_keeps_its_screening_and_calls_nothing() -> None:
    answer = Answer.abstention(SCREENING, {"why": "nothing"})
    assert (answer.text, answer.abstained, answer.calls, answer.details) == (
        "I don't know.",
        True,
        (),
        {"why": "nothing"},
    )
    assert answer.screening is SCREENING


def test_a_row_holds_the_promise_only_where_there_is_one() -> None:
    plain, proven = Answer("Ann", SCREENING), Answer("Ann", SCREENING, guarantee=1, proof="votes")
    assert {"promise", "guarantee_unit", "screening"}.isdisjoint(plain.to_dict())
    assert proven.to_dict()["promise"] == proven.promise
    assert Answer.from_dict(proven.to_dict(), SCREENING) == proven


def test_notes_are_added_behind_those_that_are_there() -> None:
    before = SCREENING.evidence.notes
    assert Answer("Ann", SCREENING).with_notes("a", "b").screening.evidence.notes == (*before, "a", "b")


def test_a_belief_is_one_short_line() -> None:
    belief = Belief("a\nb\0c " + "é" * MAX_ANSWER, 0.5, 1.0, "q" * (MAX_QUERY + 1))
    assert belief.answer.startswith("a b c é")
    assert belief.cut
    assert len(belief.answer.encode()) <= MAX_ANSWER
    assert len(belief.query.encode()) <= MAX_QUERY
    whole = Belief("x" * MAX_ANSWER, 0, 0, "q" * MAX_QUERY)
    assert (whole.cut, len(whole.answer), len(whole.query)) == (False, MAX_ANSWER, MAX_QUERY)
    assert belief.weights == Weights(0.5, 1.0)


@pytest.mark.parametrize(
    "options",
    [{"support": 1.1}, {"conflict": -0.1}, {"support": "x"}, {"answer": 3}, {"created": True}, {"updated": 1e12},
     {"created": -1}],
)  # fmt: skip
def test_a_belief_that_cannot_be(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"belief.{next(iter(options))}"):
        Belief(**{"answer": "Ann", "support": 0.5, "conflict": 0.5, **options})


def test_beliefs_and_their_updates_come_back_as_they_were_saved() -> None:
    belief = Belief("Ann", 0.25, 0.5, "who?", created=1.0, updated=2.0)
    assert Belief.from_dict(belief.to_dict(), version="v").version == "v"
    assert Belief.from_dict(belief.to_dict()) == belief
    update = BeliefUpdate("Ben", Weights(0.1, 0.2), None, None, False, "weaker", Belief("Ann", 0.25, 0.5), True)
    assert BeliefUpdate.from_dict(update.to_dict()) == update
    nothing = BeliefUpdate(None, None, None, None, None, "first", None)
    assert BeliefUpdate.from_dict(nothing.to_dict()) == nothing


def test_claims_and_contests_are_those_of_the_screening() -> None:
    claim = Claim("Ann", 1.0, (), (0,))
    contest = Contest((Rival("Ann", (0,), 1), Rival("Ben", (1,), 1)))
    answer = Answer("Ann", replace(SCREENING, claims=(claim,), contested=(contest,)), status="disputed")
    assert (answer.claims, answer.contested) == ((claim,), (contest,))
    assert repr(answer).startswith("Answer('Ann', status='disputed', ")
    assert "Ann (disputed)" in answer._repr_html_()
    assert "Ann (" not in replace(answer, status=None)._repr_html_().partition("<table")[0]


def test_a_text_of_exactly_the_bytes_that_fit_is_whole() -> None:
    assert Belief("é" * (MAX_ANSWER // 2), 0, 0).answer == "é" * (MAX_ANSWER // 2)
    cut = Belief("é" * (MAX_ANSWER // 2) + "x", 0, 0)
    assert cut.answer == "é" * ((MAX_ANSWER - 3) // 2) + "\u2026"  # the mark takes three bytes
    assert Belief("x" + " " * 3 * MAX_ANSWER, 0, 0).answer == "x"
    assert Belief("x" + " " * 3 * MAX_ANSWER + "y", 0, 0).answer == "x\u2026"


def test_a_row_of_an_update_says_what_is_believed_now() -> None:
    update = BeliefUpdate(None, None, None, None, None, "first", Belief("Ann", 0.25, 0.5, "who?", created=1.0))
    assert update.to_dict()["now"] == {"answer": "Ann", "support": 0.25, "conflict": 0.5}
    assert replace(update, belief=None).to_dict()["now"] is None
