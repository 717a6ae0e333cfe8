"""The page of an audit: every part stands on it, in figures of the report, and nothing of a log acts on it."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from scan.test_audit import HOUR, START, row, week
from unpoison.scan.audit import audit_rows
from unpoison.scan.audit_report import HEIGHT, WIDTH, audit_page

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def attacked() -> str:
    return audit_page(audit_rows(week(random.Random(0)), top=10), "log.jsonl")


def test_the_moment_and_both_rates_are_said(attacked: str) -> None:
    report = audit_rows(week(random.Random(0)), top=10)
    assert report.onset is not None
    assert f"{report.onset.after:.2%} of the documents are dropped" in attacked
    assert f"before, it was {report.onset.before:.2%}" in attacked
    quiet = audit_rows([row("when was the opera described", {"a": True}, time=START)])
    assert "No moment from which on more is dropped than before." in audit_page(quiet)


def test_the_bars_fill_the_picture_and_the_highest_is_the_worst_hour(attacked: str) -> None:
    bars = [tuple(map(float, bar)) for bar in re.findall(r'x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"', attacked)]
    points = audit_rows(week(random.Random(0)), top=10).timeline.points
    assert len(bars) == len(points) > 2
    assert bars[0][0] == 0
    assert all(x + wide <= WIDTH and abs(y + high - HEIGHT) < 0.2 for x, y, wide, high in bars)
    assert max(high for *_, high in bars) == HEIGHT
    highest = max(range(len(points)), key=lambda i: points[i].dropped / points[i].seen)
    assert bars[highest][3] == HEIGHT


def test_questions_and_sources_under_attack_are_rows(attacked: str) -> None:
    assert "where is the Vasa" in attacked
    assert "forum" in attacked
    assert attacked.count('<tr class="flagged">') >= 3  # documents, a source and questions


def test_a_false_alarm_shows_how_far_it_agrees() -> None:
    def event(query: str, suspect: str, other: str) -> dict[str, Any]:
        passages = [{"id": HOSTILE, "text": suspect}, {"id": other, "text": other}]
        return {"query": query, "passages": passages, "screening": {"defense": "test", "kept": [1], "verdicts": []}}

    rows = [
        event("how tall is Mont Blanc", "Mont Blanc has 4808 metres", "It has 4808 metres"),
        event("who painted Guernica", "Picasso painted Guernica", "Guernica is by Picasso"),
    ]
    report = audit_rows(rows)
    page = audit_page(report)
    assert "100%" in page
    assert "2 of 2" in page
    unknown = replace(report, false_alarms=tuple(replace(one, agrees=None) for one in report.false_alarms))
    assert "unknown" in audit_page(unknown)
    assert HOSTILE not in page


def test_a_log_writes_no_markup() -> None:
    events = [row(HOSTILE, {HOSTILE: False, "b": True}, time=START + i * HOUR) for i in range(30)]
    page = audit_page(audit_rows(events), HOSTILE)
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page
