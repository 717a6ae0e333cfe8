"""Which side of a dispute is told first."""

import pytest

from unpoison import Guard, Passage, Sources
from unpoison.core.verdicts import Claim
from unpoison.defenses.guard.claims_answer import sort_by_preference
from unpoison.models import ScriptedGenerator

OLD = Passage("a", metadata={"date": "2024/01/05", "state": "draft"})
NEW = Passage("b", metadata={"date": "2026-11-01", "state": "approved"})
BARE = Passage("c")
SIDES = [Claim("new", 1.0, (), (1,)), Claim("old", 1.0, (), (0,))]


@pytest.mark.parametrize(
    ("prefer", "first"), [("", "new"), ("older", "old"), ("newer", "new"), ("field:state=approved", "new"),
                          ("field:state=draft", "old"), ("field:author=Ann", "new")],
)  # fmt: skip
def test_the_policys_side_comes_first(prefer, first):
    assert sort_by_preference(SIDES, [OLD, NEW], prefer)[0].text == first
    assert {claim.text for claim in sort_by_preference(SIDES, [OLD, NEW], prefer)} == {"new", "old"}


def test_what_has_no_date_is_neither_older_nor_newer():
    sides = [Claim("new", 1.0, (), (1,)), Claim("bare", 1.0, (), (2,))]
    assert [claim.text for claim in sort_by_preference(sides, [OLD, NEW, BARE], "older")] == ["new", "bare"]


def test_it_decides_what_is_shown_first_and_what_a_majority_says():
    pages = [
        Passage("it is 14 days", source="https://a.example/", metadata={"date": "2026-10-01"}),
        Passage("it is 30 days", source="https://b.example/", metadata={"date": "2020-10-01"}),
    ]
    policy = {"known": ["a.example", "b.example"], "prefer": "older"}
    reader = ScriptedGenerator(lambda prompt: prompt.passages[0][6:])
    shown = Guard(generator=reader, sources=Sources(policy)).answer("how long", pages)
    assert shown.text == "Sources disagree: 30 days (b.example); 14 days (a.example)"
    majority = Guard(generator=reader, sources=Sources(policy), on_dispute="majority").answer("how long", pages)
    assert (majority.status, majority.text) == ("disputed", "30 days")
