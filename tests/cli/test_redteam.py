"""`unpoison redteam init` and `run` on a FastAPI application and a chat endpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.check.rag_server import serve_rag
from lab.redteam.conftest import standing_in

Run = Callable[..., Any]


def test_init_and_run_on_a_fastapi_application(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world").mkdir()
    with standing_in(tmp_path / "world", "typed") as system:
        before = system.index
        shutil.copy("world/questions.jsonl", "mine.jsonl")
        made = run(
            "redteam", "init", f"{system.url}/ask", "--questions", "mine.jsonl", given=f"{system.url}/documents\n\n"
        )
        assert made.exit_code == 0, made.stderr
        target = yaml.safe_load(Path("redteam.yaml").read_text())["target"]
        assert (target["ask"]["answer"], target["ask"]["passages"]) == ("$.answer", "$.passages[*]")
        checked = run("redteam", "check", "redteam.yaml")
        assert (checked.exit_code, system.index) == (0, before), checked.stderr
        assert "documents planted and removed: 1, 1" in checked.stdout
        tested = run("redteam", "redteam.yaml", "--limit", 2)
        assert tested.exit_code == 0, tested.stderr
        assert system.index == before
    refused = run("redteam", "init", f"{system.url}/ask")
    assert "--force to write over it" in refused.stderr


def test_init_of_a_system_that_describes_itself_asks_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serve_rag() as rag:
        refused = run("redteam", "init", rag.url, "--questions", "mne.jsonl")
        assert (refused.exit_code, "mne.jsonl does not exist" in refused.stderr) == (2, True)
        assert not list(tmp_path.iterdir())
        made = run("redteam", "init", rag.url, "-o", "sub.yaml")
        assert (made.exit_code, "wrote sub.yaml and questions.jsonl" in made.stderr) == (0, True)
        rows = [json.loads(line) for line in Path("questions.jsonl").read_text().splitlines()]
        assert all(row["correct_answers"] and row["incorrect_answers"] for row in rows)
        assert run("redteam", "sub.yaml", "--limit", 1).exit_code == 0
        assert len(rag.documents) == 3


def test_init_of_a_chat_endpoint(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serve_rag() as rag:
        rag.openapi, rag.chats = None, True
        refused = run("redteam", "init", f"{rag.url}/v1", given="")
        assert (refused.exit_code, "Aborted" in refused.stderr) == (2, False)
        assert "the URL that adds a document was not found; answer in a terminal" in refused.stderr
        made = run("redteam", "init", f"{rag.url}/v1", given=f"{rag.url}/documents\n\n")
        assert made.exit_code == 0, made.stderr
        values = yaml.safe_load(Path("redteam.yaml").read_text())
        assert values["target"]["ask"]["body"]["model"] == "handbook"
        values["target"]["plant"]["id"] = "$.doc_id"
        Path("redteam.yaml").write_text(yaml.safe_dump(values))
        assert run("redteam", "redteam.yaml", "--limit", 1).exit_code == 0
