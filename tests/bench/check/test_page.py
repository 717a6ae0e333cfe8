"""The page for who decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unpoison.bench.check.page import attack_table, check_page, count_table, findings_table
from unpoison.bench.check.results import CheckResult, Origin, Outcome

HOSTILE = "<script>alert(1)</script>"


def case(*, guard: bool) -> dict[str, object]:
    return {
        "id": "q",
        "plain": True,
        "guard": guard,
        "lost": 1,
        "clean": 4,
        "question": f"How long? {HOSTILE}",
        "right": "90 days",
        "wanted": "30 days",
        "planted": f"It is 30 days. {HOSTILE}",
    }


@pytest.fixture
def result() -> CheckResult:
    rows = [
        {"attack": "lie", "owner": "one", "cases": [case(guard=False)] * 4},
        {"attack": "lie", "owner": "own", "cases": [case(guard=True), case(guard=False)] * 2},
    ]
    return CheckResult(
        source=HOSTILE,
        documents=3,
        unread=1,
        questions=4,
        reader=False,
        complete=True,
        flagged=1,
        findings=(
            {"id": HOSTILE, "suspicion": 0.9, "flagged": True, "reasons": [HOSTILE, "it reads like a planted claim"]},
        ),
        origins=(Origin(HOSTILE, 2, 0.67), Origin("", 1, 0.33)),
        new=2,
        clean_lost=None,
        outcomes=tuple(map(Outcome.of, rows)),
        policy=f"origin: domain # {HOSTILE}\n",
    )


def test_the_page_has_the_worst_case_first_and_escapes(result: CheckResult) -> None:
    page = check_page(result, f"guard = 1  # {HOSTILE}")
    assert HOSTILE not in page
    assert page.index("2 of 4 questions") < page.index("What to put in")
    assert "How long?" in page
    assert "guard = 1" in page
    assert "origin: domain" in page
    assert "it reads like a planted claim</blockquote>" in page
    assert "1 of 3 documents name no source" in page


def test_a_broken_off_check_says_so_on_the_page(result: CheckResult) -> None:
    assert "This check is incomplete" not in check_page(result, "")
    assert "This check is incomplete" in check_page(replace(result, complete=False), "")
    assert "No attack was measured." in check_page(replace(result, outcomes=(), flagged=None, findings=()), "")


def test_tables_count_and_mark_the_worst(result: CheckResult) -> None:
    table = attack_table(result)
    assert [row[1:3] for row in table.rows] == [("100 [51, 100]", "0 [0, 49]"), ("100 [51, 100]", "50 [15, 85]")]
    assert table.flagged == {1}
    first, *others = count_table(result, "plain", "guard", "").rows
    assert first[1:] == ("4 → 0 of 4", "-", "4 → 2 of 4")
    assert {cell for row in others for cell in row[1:]} == {"-"}
    assert findings_table(result).rows[0][1] == "0.90"
