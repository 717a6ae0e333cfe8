"""A red-team test as a page: what it says is what happened, and what a target answers never becomes markup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unpoison.bench.redteam.results import Results, Trial
from unpoison.bench.redteam.summary import brief_of_test, redteam_page

EVIL = "<img src=x onerror=alert(1)></script><script>alert(1)</script>"


def trial(number: int, answer: str, after: str, attack: str = "poisonedrag", **more: object) -> Trial:
    values = {"planted": 1, "read": 1, "told": True, "poisons": 1} if attack != "none" else {}
    return Trial(
        example=str(number),
        question=f"Which bird nests on cliff {number}? {EVIL}",
        attack=attack,
        correct=("puffin",),
        wanted=("condor",),
        answer=answer,
        after=after if attack != "none" else None,
        **{**values, **more},
    )


@pytest.fixture
def results() -> Results:
    clean = [trial(i, "a puffin", "", "none") for i in range(4)]
    won = [trial(0, f"the condor {EVIL}", "a puffin"), trial(1, "the condor", "still the condor")]
    lost = [trial(2, "a puffin", "a puffin"), trial(3, "", "", error=f"broken {EVIL}", stage="ask")]
    return Results(
        {"name": "my rag", "started": "2026-01-01T10:00:00+00:00"},
        "2026-01-01T10:05:00+00:00",
        4,
        (*clean, *won, *lost),
        (("none", 0), ("poisonedrag", 1)),
        planted=4,
        removed=4,
    )


def test_the_page_says_what_happened(results: Results) -> None:
    brief = brief_of_test(results)
    assert brief.verdict == "One planted document changed 2 of 3 answers; 1 after they were removed."
    assert [(figure.title, figure.share.hits, figure.share.count) for figure in brief.figures] == [
        ("Answers changed", 2, 3), ("Documents read", 3, 3), ("Still wrong afterwards", 1, 3),
    ]  # fmt: skip
    assert [case.outcome for case in brief.cases] == ["answered as the attacker wants", "still wrong after removal"]
    assert "incomplete" in brief.warning
    assert any("Clear caches" in action for action in brief.actions)
    assert brief.risks[0].finding == "tested: poisonedrag won 2 of 3 questions"


def test_what_remains_is_said_first(results: Results) -> None:
    brief = brief_of_test(replace(results, remaining=(("unpoison-1", "the search failed"),)))
    assert brief.warning.startswith("1 planted document may still be in the system")
    assert brief.actions[0].startswith("Take back what is left")


def test_hostile_answers_are_text(results: Results) -> None:
    text = redteam_page(results)
    assert EVIL not in text
    assert "<img" not in text
    assert "<script" not in text
    assert "script-src" not in text


def test_a_test_without_a_trial_has_its_page(results: Results) -> None:
    empty = replace(results, trials=(), finished=None)
    assert "it says nothing about an attack" in redteam_page(empty)
