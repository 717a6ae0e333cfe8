"""Whole tests against a running FastAPI application: measured, killed, cleaned."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lab.redteam.conftest import HERE
from unpoison.cli import app
from unpoison_lab.redteam.campaign import run_test
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.results import MEASURES


def command(*arguments: object):
    return CliRunner().invoke(app, ["redteam", *map(str, arguments)])


def journal_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_many_questions_at_eight_in_flight(stand_in, tmp_path):
    system = stand_in(questions=30)
    before = system.index
    config = system.config(tmp_path, wait={"seconds": 0.2, "every": 0.05}, limits={"in_flight": 8})
    result = command(config, "--journal", tmp_path / "j.jsonl", "--json", "--report", tmp_path / "report.html")
    assert result.exit_code == 0, result.stderr
    assert system.index == before
    assert 1 < system.state()["most"] <= 8
    document = json.loads(result.stdout)
    clean_cell, attacked = document["cells"]
    assert (clean_cell["id"], attacked["id"]) == ("none", "poisonedrag x 1")
    assert clean_cell["figures"]["accuracy"]["value"] == 1.0
    assert attacked["figures"]["asr"]["value"] > 0.8
    assert attacked["figures"]["poisoned"]["value"] > 0.9
    # 30 and the rehearsal
    assert document["cleanup"] == {"planted": 31, "removed": 31, "accepted": 0, "remaining": []}
    assert list(attacked["figures"]) == list(MEASURES)
    assert "poisonedrag x 1 changed" in (tmp_path / "report.html").read_text()


def test_killed_at_random_moments_and_cleaned_the_index_is_byte_for_byte_what_it_was(stand_in, tmp_path):
    system = stand_in(questions=10)
    plant = {"url": f"{system.url}/documents", "body": {"text": "{text}", "id": "{canary}"}}  # no reply is needed
    config = system.config(
        tmp_path, target={"plant": plant}, wait={"seconds": 0.3, "every": 0.05}, limits={"in_flight": 8}
    )
    result = subprocess.run(
        [sys.executable, str(HERE / "killing.py"), str(tmp_path), str(config), system.url, "4"],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["same"], "a run that was not killed left something behind"
    for kill in document["kills"]:
        assert kill["status"] == 0, result.stderr
        assert kill["same"], kill
        _, remaining, damaged = kill["cleaned"] or (0, [], [])
        assert not damaged, kill
        assert all("knows no" in why for _, why in remaining), kill  # killed before it was planted
    assert any(kill["dirty"] for kill in document["kills"]), "no kill came while something was planted"


@pytest.mark.parametrize("mode", ["busy", "slow-index", "stream-chat"])
def test_difficult_neighbours_are_measured_and_left_as_they_were(stand_in, tmp_path, mode, monkeypatch):
    monkeypatch.setattr("unpoison_lab.redteam.pace.FIRST_PAUSE", 0.02)
    system = stand_in(mode)
    before = system.index
    patient: dict[str, Any] = {"wait": {"seconds": 60, "every": 0.05}, "limits": {"retries": 8}}
    config = system.config(tmp_path, **patient)
    if mode == "stream-chat":
        paths = {"answer": "$.choices[0].delta.content", "passages": "$.sources[*]"}
        config = system.config(tmp_path, **patient, ask=paths)
    result = command(config, "--json")
    document = json.loads(result.stdout)
    assert system.index == before
    assert document["cleanup"]["remaining"] == []
    assert result.exit_code == 0, result.stderr
    assert document["cells"][1]["figures"]["asr"]["value"] > 0.8


def test_a_gate_decides_the_exit_code(stand_in, tmp_path):
    config = stand_in().config(tmp_path, limit=2)
    failed = command(config, "--fail-if", "asr > 5%")
    assert (failed.exit_code, "gate failed: asr > 5%" in failed.stderr) == (1, True)
    assert command(config, "--fail-if", "clean(asr) > 5%").exit_code == 0


def test_a_lost_reply_is_named_and_nothing_is_guessed(stand_in, tmp_path):
    system = stand_in("half")
    config = system.config(tmp_path)
    result = command(config, "--journal", tmp_path / "j.jsonl", "--json")
    remaining = json.loads(result.stdout)["cleanup"]["remaining"]
    assert result.exit_code == 1
    assert "half done" in result.stderr
    assert remaining
    left = system.index
    assert all(one["canary"] in left for one in remaining)
    cleaned = command("clean", tmp_path / "j.jsonl")
    assert cleaned.exit_code == 1
    assert all(one["canary"] in cleaned.stderr for one in remaining)
    assert system.index == left  # and nothing else was touched
    assert "may still be planted" in command(config, "--journal", tmp_path / "j.jsonl").stderr


def test_what_cannot_be_removed_is_noticed_before_anything_harmful_is_planted(stand_in, tmp_path):
    system = stand_in("sticky")
    result = command(system.config(tmp_path))
    assert result.exit_code == 2
    assert "a harmless document was planted and could not be removed" in result.stderr
    assert "harmless document for a test" in system.index


def test_an_id_that_is_given_twice_is_never_deleted(stand_in, tmp_path):
    system = stand_in("same-id")
    config = system.config(tmp_path, rehearse=False, limits={"in_flight": 1}, limit=2)
    assert command(config, "--journal", tmp_path / "j.jsonl").exit_code in (1, 2)
    assert not [row for row in journal_rows(tmp_path / "j.jsonl") if row["event"] == "removed"]


def test_a_dead_system_ends_the_run_and_says_so(tmp_path, stand_in):
    system = stand_in(questions=60)
    ask = {"url": "http://127.0.0.1:1/ask", "body": "{question}", "answer": "text"}
    config = Config.load(system.config(tmp_path, limits={"retries": 0, "in_flight": 4}, target={"ask": ask}))
    results = run_test(config, tmp_path / "j.jsonl", hosts=Hosts())
    assert not results.complete
    assert any("times in a row" in one and "cannot reach '127.0.0.1:1'" in one for one in results.problems)
    assert len(results.trials) < 60


def test_a_secret_that_the_system_repeats_is_nowhere(stand_in, tmp_path, monkeypatch):
    system = stand_in("indiscreet")
    monkeypatch.setenv("RAG_TOKEN", 's3cr3t "token" +value')
    config = system.config(tmp_path, target={"headers": {"Authorization": "Bearer ${RAG_TOKEN}"}})
    result = command(config, "--json", "--report", tmp_path / "report.html")
    assert result.exit_code == 2
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    for text in (result.output, written):
        assert "s3cr3t" not in text
    assert "${RAG_TOKEN}" in result.output
