"""`unpoison incident`, from rows, documents and logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scan.test_incident import QUESTION as CITY
from scan.test_incident import TEXTS
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.scan.audit_log import AuditLog

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


def test_what_is_missing_is_said_before_anything_is_asked(run: Any, tmp_path: Path) -> None:
    empty = tmp_path / "rows.jsonl"
    empty.write_text(json.dumps({"question": "q", "answer": "a"}) + "\n")
    for arguments, problem in (
        ([], "give --passages, the passages that were read"),
        (["--passages", empty, "--row", "1"], "shows no passages"),
        (["--passages", empty, "--row", "2"], "no row of 1 is '2'"),
    ):
        result = run("incident", *arguments)
        assert result.exit_code == 2
        assert problem in result.stderr


def test_the_screen_and_the_exit_status(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "complaints.jsonl"
    path.write_text(json.dumps({"question": CITY, "passages": TEXTS[::2] + TEXTS[1:2], "answer": "Gothenburg"}))
    shown = run("incident", "--passages", path, "-g", "extractive")
    assert shown.exit_code == 0, shown.stderr
    assert "Without these documents the wrong answer disappears." in shown.stdout
    assert (
        "answer without them: The museum of the Vasa is in the city of Stockholm." in shown.stdout
        and "asked" in shown.stderr
    )
    shown = run("incident", "--passages", path, "--answer", "Oslo", "-g", "extractive")
    assert shown.exit_code == 1 and "does not give this answer" in shown.stdout
    assert "its answer: The museum" in shown.stdout


def test_documents_and_rows_are_ranked_without_a_system(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    others = [f"Note {i} on fish and tides." for i in range(50)]
    rows = [{"text": text, "id": f"d{i}"} for i, text in enumerate([*others, *TEXTS])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["--passages", path, "--question", CITY]
    assert json.loads(run("incident", *asked, "--answer", "Gothenburg", "--json").stdout)["guilty"] == ["d52"]
    assert run("incident", *asked, "--answer", "Helsinki").exit_code == 1
    answered = {"question": CITY, "passages": TEXTS, "answer": {"text": "Gothenburg"}}
    path.write_text(
        json.dumps({**answered, "id": "r1", "passages": TEXTS[:1]})
        + "\n"
        + json.dumps({**answered, "id": "r2", "screening": {"kept": [0, 2]}})
        + "\n"
    )
    for choice in ("2", "r2"):
        result = run("incident", "--passages", path, "--row", choice, "-g", "extractive", "--json")
        assert json.loads(result.stdout)["verdict"] == "proven", result.output
    both = run("incident", "--passages", path)
    assert (both.exit_code, "select one: --row 1" in both.stderr) == (2, True)
    path.write_text('{"text": "a"}\n{broken\n')
    assert "line 2" in run("incident", *asked, "--answer", "a").stderr


@pytest.mark.parametrize("texts", ["keep", "hash"])
def test_a_line_of_the_audit_log_will_do_where_it_has_texts(run: Any, tmp_path: Path, texts: Any) -> None:
    path = tmp_path / "audit.jsonl"
    with AuditLog(path, texts=texts) as log:
        passages = [Passage(text, id=f"d{i}") for i, text in enumerate([*TEXTS, f"Gothenburg {EVIL}"])]
        log.record(
            Screening.decided("t", Query(CITY), passages, kept=[2, 0, 3], scores=[1, 1, 1, 1], reasons=["r"] * 4),
            request={"id": "4f1c-rest"},
        )
    result = run("incident", "--passages", path, "--row", "4f1c", "--question", CITY, "--answer", "Gothenburg")
    assert result.exit_code == (0 if texts == "keep" else 2), result.output
    assert "d2" in result.stdout if texts == "keep" else "texts=" in result.stderr
    assert "\x1b" not in result.stdout and "\u202e" not in result.stdout
