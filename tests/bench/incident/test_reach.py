"""Guilty documents in audit logs: by id, by hash where the log has no texts, by text where the ids are others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unpoison import Guard
from unpoison.bench.incident.reach import reach_of
from unpoison.bench.incident.scope import Suspect
from unpoison.bench.incident.target import read_regressions
from unpoison.errors import InputError
from unpoison.scan.audit_log import AuditLog

LIE = "The town hall of Alderton was built in 1606, as the year above its door says."
GUILTY = [Suspect("lie", f"A title\n{LIE}", ("the author 'mallory'",), True, 1.0, 1.0)]


@pytest.mark.parametrize("texts", ["hash", "keep"])
@pytest.mark.parametrize("name", [{}, {"id": "lie"}, {"id": "another-name"}])
def test_a_document_is_known_again(tmp_path: Path, texts: str, name: dict[str, str]) -> None:
    passages = [{"text": LIE, "title": "A title", **name}, "The town hall of Birchford was built in 1203."]
    with AuditLog(tmp_path / "audit.jsonl", texts=texts) as log:  # type: ignore[arg-type]
        for client in ("10.0.0.7", "10.0.0.8", "10.0.0.7"):
            log.record(Guard().screen("a question", passages), action="monitor", request={"client": client})
    reach = reach_of(GUILTY, [str(tmp_path / "audit.jsonl")])
    assert reach.answers == 3
    assert reach.people == [("10.0.0.7", 2), ("10.0.0.8", 1)]
    assert [one.answers for one in reach.questions] == [3]


def test_what_was_dropped_reached_nobody(tmp_path: Path) -> None:
    row = {"audit": 1, "query_hash": "q", "passages": [{"id": "lie", "kept": False}]}
    (tmp_path / "log").write_text(json.dumps(row) + "\n")
    reach = reach_of(GUILTY, [str(tmp_path / "log")])
    assert (reach.answers, reach.kept_away, reach.first_time) == (0, 1, "a time that the log does not say")
    (tmp_path / "log").write_text(json.dumps({**row, "action": "monitor"}) + "\n")
    assert reach_of(GUILTY, [str(tmp_path / "log")]).answers == 1, "it was passed on all the same"


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "1969-01-01", 1e300, -1])
def test_a_time_that_no_clock_shows_is_none(tmp_path: Path, time: object) -> None:
    row = {"audit": 1, "query_hash": "q", "time": time, "passages": [{"id": "lie", "kept": True}]}
    (tmp_path / "log").write_text(json.dumps(row) + "\n")
    reach = reach_of(GUILTY, [str(tmp_path / "log")])
    assert (reach.answers, reach.to_dict()["first"]) == (1, None)


def test_more_people_than_are_named_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.bench.incident.reach.MAX_KEPT", 2)
    row = {"audit": 1, "query_hash": "q", "passages": [{"id": "lie", "kept": True}]}
    lines = (json.dumps({**row, "request": {"user": user}}) for user in "abcda")
    (tmp_path / "log").write_text("\n".join(lines))
    assert reach_of(GUILTY, [str(tmp_path / "log")]).people == [("a", 2), ("b", 1)]


def test_regression_questions_come_from_any_rows(tmp_path: Path) -> None:
    path = tmp_path / "others.jsonl"
    path.write_text('{"question": "a", "correct_answers": ["x", "y"]}\n{"query": "b"}\n')
    assert read_regressions(path) == [("a", ("x", "y")), ("b", ())]
    path.write_text('{"question": "a"}\n{"text": "b"}\n')
    with pytest.raises(InputError, match=r"others\.jsonl:2: it has no question"):
        read_regressions(path)
