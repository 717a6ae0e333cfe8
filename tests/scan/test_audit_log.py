"""The audit log: nothing is lost or torn between processes, on a full disk, or where the file is moved away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.errors import InputError
from unpoison.io.output import is_last_line_ended
from unpoison.scan.audit import Audit
from unpoison.scan.audit_log import AuditLog
from unpoison.utils.files import lock_file


def screening(query: str) -> Screening:
    passages = [Passage("one", id="1"), Passage("two", id="2")]
    return Screening.decided("test", Query(query), passages, kept=[0], scores=[1, 0], reasons=["fine", "says so"])


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_when_what_and_who(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "log.jsonl", texts="keep") as log:
        time = datetime(2026, 3, 1, tzinfo=UTC)
        log.record(screening("q"), time=time, action="demote", request={"id": "r1", "client": "10.0.0.1"})
    (found,) = rows(tmp_path / "log.jsonl")
    assert found["time"] == "2026-03-01T00:00:00.000+00:00"
    assert (found["audit"], found["action"], found["request"]) == (1, "demote", {"id": "r1", "client": "10.0.0.1"})
    assert [(p["id"], p["kept"], p["text"]) for p in found["passages"]] == [("1", True, "one"), ("2", False, "two")]


def test_what_is_in_the_file_stays_and_it_is_its_owners_alone(tmp_path: Path) -> None:
    for _ in range(2):
        with AuditLog(tmp_path / "log.jsonl") as log:
            log.record(screening("q"))
    assert len(rows(tmp_path / "log.jsonl")) == 2
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AuditLog(path, texts="keep") as log:
        log.record(screening("before"))
        path.rename(tmp_path / "log.jsonl.1")
        log.record(screening("after"))
    assert [row["query"] for row in rows(path)] == ["after"]
    assert path.stat().st_mode & 0o777 == 0o600


WRITER = """
import sys
from unpoison.scan.audit_log import AuditLog
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
with AuditLog(sys.argv[1], texts="keep") as log:
    for number in range(100):
        query = Query(f"{sys.argv[2]}-{number}")
        log.record(Screening.decided("test", query, [Passage("one")], kept=[0], scores=[1], reasons=["fine"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes share a file by flock")
def test_processes_lose_and_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    command = [sys.executable, "-c", WRITER, str(path)]
    running = [subprocess.Popen([*command, name], env=dict(os.environ)) for name in ("a", "b", "c")]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert len({row["query"] for row in rows(path)}) == 300


def test_a_line_is_written_while_no_other_process_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the half of a line that another is writing is taken for a torn one, and an empty line ends it."""
    path, held = tmp_path / "log.jsonl", list[bool]()

    def look(descriptor: int) -> bool:
        with path.open("rb") as other:
            held.append(not lock_file(other.fileno()))
        return is_last_line_ended(descriptor)

    monkeypatch.setattr("unpoison.scan.audit_log.is_last_line_ended", look)
    with AuditLog(path) as log:
        log.record(screening("one"))
        log.record(screening("two"))
        with path.open("rb") as other:
            assert lock_file(other.fileno())
    assert held == [True, True]
    assert len(list(rows(path))) == 2


def test_the_audit_reads_what_the_log_wrote(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with AuditLog(path) as log:
        for number in range(5):
            log.record(screening(f"what is {number}"))
    with Audit() as audit:
        for row in rows(path):
            audit.add(row)
        report = audit.report()
    assert [(d.name, d.dropped, d.pairs) for d in report.counts["document"]] == [("2", 5, 5)]
    assert report.counts["document"][0].first_dropped is not None


def test_a_line_that_a_full_disk_cut_swallows_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, left = tmp_path / "log.jsonl", os.write, [10**9]

    def write(file: int, line: bytes) -> int:
        if not left[0]:
            raise OSError(28, "No space left on device")
        part = bytes(line[: left[0]])
        left[0] -= len(part)
        return real(file, part)

    with AuditLog(path, texts="keep") as log:
        log.record(screening("before"))
        monkeypatch.setattr("unpoison.scan.audit_log.os.write", write)
        left[0] = 100
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                log.record(screening("while it is full"))
        left[0] = 10**9
        log.record(screening("after"))
        log.record(screening("and on"))
    monkeypatch.undo()
    lines = path.read_text().splitlines()
    assert len(lines) == 4  # the cut one stands alone
    assert [json.loads(line)["query"] for line in (lines[0], *lines[2:])] == ["before", "after", "and on"]


def test_a_line_that_a_killed_process_cut_swallows_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"audit": 1, "ti')
    with AuditLog(path, texts="keep") as log:
        log.record(screening("after"))
    assert json.loads(path.read_text().splitlines()[1])["query"] == "after"


def test_a_folder_that_is_not_there_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give a file in a folder that exists"):
        AuditLog(tmp_path / "none" / "audit.jsonl")
