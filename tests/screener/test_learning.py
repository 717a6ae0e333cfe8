"""What an answer teaches about the sources behind it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from unpoison import Passage, Query, Screening, Sources
from unpoison.core.answers import Answer
from unpoison.core.verdicts import Claim, Status
from unpoison.screener.screener import outcomes_of

NAMES = ("a.example", "b.example", "c.example", "d.example")
PASSAGES = [Passage("text", source=f"https://{name}/") for name in NAMES]


def screening(kept: Sequence[int] = (0, 1, 2, 3), claims: Sequence[Claim] = ()) -> Screening:
    given = {"scores": [0.0] * 4, "reasons": ["x"] * 4}
    return Screening.decided("own", Query("q"), PASSAGES, kept=kept, claims=claims, **given)  # type: ignore[arg-type]


def answer(*others: Claim, status: Status = "agreed") -> Answer:
    lead = Claim("1961", 2.0, NAMES[:2], (0, 1))
    return Answer("1961", screening(claims=(lead, *others)), status=status)


def test_a_screening_says_who_was_seen_and_whose_every_passage_was_dropped() -> None:
    assert outcomes_of(screening(kept=(0, 2)), Sources()) == dict(zip(NAMES, ["seen", "dropped", "seen", "dropped"]))


@pytest.mark.parametrize(("weight", "outcome"), [(0.4, "contested"), (0.0, "seen")])
def test_an_agreed_answer_is_contested_by_those_whose_claim_weighs_something(weight: float, outcome: str) -> None:
    found = outcomes_of(answer(Claim("1628", weight, NAMES[2:3], (2,))), Sources())
    assert found == dict(zip(NAMES, ["agreed", "agreed", outcome, "seen"]))


def test_who_says_both_agreed() -> None:
    found = outcomes_of(answer(Claim("1628", 0.4, NAMES[1:3], (1, 2))), Sources())
    assert (found["b.example"], found["c.example"]) == ("agreed", "contested")


def test_a_disputed_answer_teaches_about_nobody() -> None:
    found = outcomes_of(answer(Claim("1628", 2.0, NAMES[2:3], (2,)), status="disputed"), Sources())
    assert set(found.values()) == {"seen"}
