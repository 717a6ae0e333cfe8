"""`unpoison incident`, from rows and through a system behind HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.incident.stand_in import (
    CLEAN,
    QUESTION,
    RIGHT,
    WRONG,
    StandIn,
    configuration,
    documents_of,
    serving,
    write_store,
)
from scan.test_incident import QUESTION as CITY
from scan.test_incident import TEXTS
from unpoison.scan.audit_log import AuditLog
from unpoison.types import Passage, Query, Screening

EVIL = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    store = write_store(tmp_path / "docs.jsonl", 1)
    with serving(StandIn(store)) as url:
        yield [
            "incident", "--target", str(configuration(tmp_path, url)), "--store", str(store),
            "--quarantine", "held.jsonl",
        ]  # fmt: skip


def test_from_a_complaint_to_the_quarantine_and_back(run: Any, world: list[str], tmp_path: Path) -> None:
    (tmp_path / "complaints.csv").write_text(f'question,answer,right\n"{QUESTION}",{WRONG},{RIGHT}\n')
    result = run(*world, "--passages", "complaints.csv", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["verdict"], found["guilty"], found["after"]) == ("repaired", ["lie-0"], "It was built in 1200.")
    assert documents_of(tmp_path / "docs.jsonl") == CLEAN
    back = run("quarantine", world[4], "held.jsonl", "--journal", "incident-journal.jsonl", "--restore")
    assert back.exit_code == 0, back.stderr
    assert "lie-0" in documents_of(tmp_path / "docs.jsonl")


def test_the_screen_and_the_exit_status(run: Any, world: list[str]) -> None:
    result = run(*world, "--question", QUESTION, "--answer", WRONG, "--prove-only")
    assert result.exit_code == 0, result.stderr
    assert "lie-0" in result.stdout
    assert "answer without them: It was built in 1200." in result.stdout
    result = run(*world, "--question", QUESTION, "--answer", "1999")
    assert result.exit_code == 1
    assert "The system does not give this answer now" in result.stdout


def test_what_a_system_shows_is_ranked_without_its_store(run: Any, world: list[str]) -> None:
    result = run(*world[:3], "--question", QUESTION, "--answer", WRONG)
    assert result.exit_code == 0, result.stderr
    assert "These documents state the answer" in result.stdout
    assert "nothing was moved" in result.stderr


def test_what_is_missing_is_said_before_anything_is_asked(run: Any, world: list[str], tmp_path: Path) -> None:
    for arguments, problem in (
        (["incident"], "give --passages for the passages that were read, or --target"),
        (world, "give --question"),
        ([*world[:5], "--question", "q", "--answer", "a"], "--store and --quarantine go together"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert problem in result.stderr


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
    assert (both.exit_code, "select one, such as --row 1" in both.stderr) == (2, True)
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
