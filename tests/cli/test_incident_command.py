"""`unpoison incident` through a system behind HTTP: from the complaint to the page, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.incident.stand_in import (
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


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    store = write_store(tmp_path / "docs.jsonl", 1)
    with serving(StandIn(store)) as url:
        yield [
            "incident", "--target", str(configuration(tmp_path, url)), "--store", str(store),
            "--quarantine", "held.jsonl",
        ]  # fmt: skip


def test_from_a_complaint_to_the_page_and_back(run: Any, world: list[str], tmp_path: Path) -> None:
    (tmp_path / "complaints.csv").write_text(f'question,answer,right,user\n"{QUESTION}",{WRONG},{RIGHT},Ann\n')
    (tmp_path / "others.jsonl").write_text('{"question": "In which year was the town hall of Cedarham built?"}\n')
    options = ["--complaints", "complaints.csv", "--regressions", "others.jsonl", "--html", "page.html", "--json"]
    result = run(*world, *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [document["id"] for proof in found["guilty"] for document in proof["documents"]] == ["lie-0"]
    assert found["after"] == ["It was built in 1200."]
    assert found["case"]["person"] == "Ann"
    assert [one["broken"] for one in found["regressions"]] == [False]
    assert documents_of(tmp_path / "docs.jsonl") == CLEAN
    assert "lie-0" in (tmp_path / "page.html").read_text()

    result = run("incident", "--undo", "incident.journal")
    assert (result.exit_code, result.stderr) == (0, "put back 1 document\n")
    assert "lie-0" in documents_of(tmp_path / "docs.jsonl")


def test_the_screen_and_the_exit_status(run: Any, world: list[str]) -> None:
    result = run(*world, "--question", QUESTION, "--answer", WRONG, "--prove-only")
    assert result.exit_code == 0, result.stderr
    assert "lie-0" in result.stdout
    assert "answer now: It was built in 1200." in result.stdout
    result = run(*world, "--question", QUESTION, "--answer", "1999", "--journal", "other.journal")
    assert result.exit_code == 1
    assert "does not give this answer now" in result.stdout


def test_what_is_missing_is_said_before_anything_is_asked(run: Any, world: list[str], tmp_path: Path) -> None:
    for arguments, problem in (
        (["incident"], "an incident needs --target"),
        (world, "what was wrong? give --question"),
        ([*world, "--audit", "a", "--complaints", "b"], "exclude each other"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert problem in result.stderr
    Path("corpus.yaml").write_text("target: {corpus: docs.jsonl}\n")
    world[2] = "corpus.yaml"
    result = run(*world, "--question", "q", "--answer", "a")
    assert (result.exit_code, "without a store that others can change" in result.stderr) == (2, True)
