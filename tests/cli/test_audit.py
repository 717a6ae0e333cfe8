"""`unpoison audit` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from unpoison.cli import app
from unpoison.cli.audit import _moment
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.errors import InputError
from unpoison.scan.audit_log import AuditLog

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def run(*arguments: str | Path, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)


def screened(query: str, dropped: list[str], kept: list[str], **fields: Any) -> dict[str, Any]:
    passages = [
        {"id": name, "text": f"{name} says {EVIL}", "source": f"{name}.org{EVIL}"} for name in [*dropped, *kept]
    ]
    positions = list(range(len(dropped), len(passages)))
    return {"query": query, "passages": passages, "screening": {"defense": "guard", "kept": positions}, **fields}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [screened(f"who built number {n} {EVIL}", ["bad"], [f"good {n}", f"fine {n}"]) for n in range(9)]
    rows += [screened(f"when was {n}", [], [f"x{n}", f"y{n}"]) for n in range(200)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_documents_that_tried_are_shown_and_what_they_hold_steers_no_terminal(log: Path) -> None:
    result = run("audit", log)
    assert result.exit_code == 0, result.output
    assert "209 answers: 9 of 427 documents dropped" in result.stdout
    assert "documents: 1 flagged" in result.stdout
    marked = {line.split()[3] for line in result.stdout.splitlines() if line.startswith("\u2502 !")}
    assert marked == {"bad", "source"}, "and no question"
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout


def test_an_alert_has_an_exit_status_of_its_own(log: Path, tmp_path: Path) -> None:
    assert run("audit", "--alert", log).exit_code == 3
    quiet = tmp_path / "quiet.jsonl"
    quiet.write_text(json.dumps(screened("q", ["b"], ["a"])) + "\n")
    assert "0 flagged; none was dropped for more questions than by chance" in " ".join(
        run("audit", quiet).stdout.split()
    )
    assert run("audit", "--alert", quiet).exit_code == 0


def test_json_begins_with_the_summary_and_holds_everything(log: Path) -> None:
    parsed = [json.loads(line) for line in run("audit", "--json", log).stdout.splitlines()]
    assert parsed[0]["kind"] == "summary"
    assert parsed[0]["flagged"]["document"] == 1
    assert (parsed[1]["kind"], parsed[1]["name"], parsed[1]["dropped"], parsed[1]["pairs"]) == (
        "document",
        "bad",
        9,
        9,
    )
    assert {"source", "question"} <= {row["kind"] for row in parsed}


def test_broken_rows_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    good = json.dumps(screened("q", ["bad"], ["good"]))
    path.write_bytes(f'{good}\n{{"audit": 1}}\n[1]\n{good}\n{good[:40]}'.encode() + b"\n\xff\n")
    result = run("audit", path)
    assert result.exit_code == 1
    assert "2 answers" in result.stdout
    for line in (2, 3, 5, 6):
        assert f"log.jsonl:{line}:" in result.stderr
    assert "read 2 rows; 4 failed" in result.stderr


def test_several_files_and_standard_input_are_read(tmp_path: Path) -> None:
    first, second = tmp_path / "log.jsonl", tmp_path / "log.jsonl.1"
    for path in (first, second):
        with AuditLog(path) as log:
            log.record(Screening.decided("t", Query("q"), [Passage("a")], kept=[0], scores=[1], reasons=["fine"]))
    assert "2 answers" in run("audit", first, second, first).stdout
    assert "1 answer" in run("audit", "-", input=json.dumps(screened("q", [], ["a"])) + "\n").stdout


def test_a_page_is_written_beside_the_tables_and_never_over_the_log(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "audit.html"
    assert run("audit", "--html", page, log).exit_code == 0
    assert "209 answers" in page.read_text(encoding="utf-8")
    assert EVIL not in page.read_text(encoding="utf-8")
    before = log.read_bytes()
    for place in (log, tmp_path / "audit.txt"):
        assert run("audit", "--html", place, log).exit_code == 2
    assert log.read_bytes() == before


@pytest.mark.parametrize(("text", "seconds"), [("24h", 86_400), ("7d", 604_800), ("2w", 1_209_600), ("30m", 1_800)])
def test_an_age_is_counted_back_from_now(text: str, seconds: int) -> None:
    assert _moment(text, 2e9) == 2e9 - seconds


def test_a_date_is_its_moment_and_anything_else_is_refused() -> None:
    assert _moment("2026-03-01T00:00:00Z", 0.0) == 1_772_323_200.0
    for text in ("", "d", "1.5", "20260301", "-1d", "1234567d", "\u0661d", "soon"):
        with pytest.raises(InputError, match="since must be a date such as 2026-03-01, or a time ago"):
            _moment(text, 2e9)
