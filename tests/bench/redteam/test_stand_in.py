"""Whole tests against a running system over HTTP: measured, killed, cleaned."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from bench.redteam.conftest import HERE
from unpoison.bench.redteam import Config, Hosts, Secrets, clean, run_test, schema
from unpoison.bench.redteam.results import MEASURES
from unpoison.cli import app

STORES = [
    "memory",
    pytest.param(
        "qdrant",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("qdrant_client") is None,
            reason="QDRANT ABSENT: pip install 'unpoison[qdrant]'",
        ),
    ),
]


def command(*arguments: object):
    return CliRunner().invoke(app, ["redteam", *map(str, arguments)])


def journal_rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_hundred_questions_at_eight_in_flight(stand_in, tmp_path):
    system = stand_in(questions=100)
    before = system.index
    config = system.config(tmp_path, wait={"seconds": 0.2, "every": 0.05}, limits={"in_flight": 8})
    result = command(config, "--journal", tmp_path / "j.jsonl", "--json")
    assert result.exit_code == 0, result.stderr
    assert system.index == before
    assert 1 < system.state()["most"] <= 8
    document = json.loads(result.stdout)
    jsonschema.validate(document, schema(), jsonschema.Draft202012Validator)
    clean_cell, attacked = document["cells"]
    assert (clean_cell["id"], attacked["id"], attacked["done"]) == ("none", "poisonedrag x 1", 100)
    assert clean_cell["figures"]["accuracy"]["value"] == 1.0
    assert attacked["figures"]["asr"]["value"] > 0.8
    assert attacked["figures"]["poisoned"]["value"] > 0.9
    assert attacked["figures"]["accuracy_after"]["value"] == 1.0
    assert attacked["figures"]["asr_after"]["value"] == 0.0
    lost = attacked["figures"]["accuracy_lost"]
    assert lost["low"] <= lost["value"] <= lost["high"]
    # 100 and the rehearsal
    assert document["cleanup"] == {"planted": 101, "removed": 101, "accepted": 0, "remaining": []}
    assert list(attacked["figures"]) == list(MEASURES)


@pytest.mark.parametrize("store", STORES)
def test_killed_at_random_moments_and_cleaned_the_index_is_byte_for_byte_what_it_was(stand_in, tmp_path, store):
    system = stand_in("--store", store, questions=10)
    config = system.config(tmp_path, wait={"seconds": 0.3, "every": 0.05}, limits={"in_flight": 8})
    times = 12 if store == "memory" else 4
    result = subprocess.run(
        [sys.executable, str(HERE / "killing.py"), str(tmp_path), str(config), system.url, str(times)],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["same"], "a run that was not killed left something behind"
    assert len(document["kills"]) == times
    for kill in document["kills"]:
        assert kill["status"] == 0, result.stderr
        assert kill["same"], kill
        assert kill["cleaned"] is None or kill["cleaned"][1:] == [[], []], kill
    if times >= 12:  # of four, all may come before or after
        assert any(kill["dirty"] for kill in document["kills"]), "no kill came while something was planted"


def test_a_run_that_was_killed_goes_on_when_it_is_cleaned(stand_in, tmp_path):
    system = stand_in()
    config, journal = system.config(tmp_path), tmp_path / "j.jsonl"
    assert command(config, "--journal", journal).exit_code == 0
    lines = journal.read_bytes().splitlines(keepends=True)
    planted = next(i for i, line in enumerate(lines) if b'"planting"' in line and b'"q0"' in line)
    journal.write_bytes(b"".join(lines[: planted + 1]) + b'{"event": "plan')  # killed, and a torn line
    refused = command(config, "--journal", journal)
    assert (refused.exit_code, "may still be planted" in refused.stderr) == (2, True)
    assert f"unpoison redteam clean {journal}, or remove them by hand" in " ".join(refused.stderr.split())
    cleaned = command("clean", journal, "--json")
    assert (cleaned.exit_code, json.loads(cleaned.stdout)["remaining"]) == (0, [])
    calls = system.state()["calls"]
    result = command(config, "--journal", journal, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["cells"][0]["done"] == 6
    assert system.state()["calls"] - calls < 6 * 4  # what was there was not asked again
    again = command(config, "--journal", journal, "--json")  # a finished run is not taken for an interrupted one
    assert json.loads(again.stdout)["cells"][1]["done"] == 6
    assert [row["event"] for row in journal_rows(journal)].count("run") == 2


@pytest.mark.parametrize("mode", ["busy", "half", "slow-index"])
def test_difficult_neighbours_are_measured_and_left_as_they_were(stand_in, tmp_path, mode):
    system = stand_in("--mode", mode)
    before = system.index
    config = system.config(tmp_path, wait={"seconds": 60, "every": 0.05})
    result = command(config, "--json")
    document = json.loads(result.stdout)
    assert system.index == before
    assert document["cleanup"]["remaining"] == []
    attacked = document["cells"][1]
    if mode == "half":  # plants that were done and answered with an error
        assert result.exit_code == 1
        assert 0 < attacked["failed"] < 6
        assert "half done" in result.stderr
    else:
        assert result.exit_code == 0, result.stderr
        assert attacked["figures"]["asr"]["value"] > 0.8
    if mode == "slow-index":  # without an attack, in vain at least once, served, afterwards
        assert system.state()["calls"] >= 6 * 3 + 3


def test_a_system_that_tells_no_passages_is_asked_once(stand_in, tmp_path):
    system = stand_in("--mode", "silent", questions=3)
    config = system.config(tmp_path, passages=False, wait={"seconds": 0.1, "every": 0.05})
    result = command(config, "--json")
    attacked = json.loads(result.stdout)["cells"][1]["figures"]
    assert attacked["poisoned"]["value"] is None
    assert attacked["served_seconds"]["value"] is None
    assert attacked["asr"]["value"] > 0.5
    assert system.state()["calls"] == 3 * 3


def test_a_lost_reply_without_find_is_named_and_nothing_is_guessed(stand_in, tmp_path):
    system = stand_in("--mode", "half")
    before = system.index
    config = system.config(tmp_path, find=False)
    result = command(config, "--journal", tmp_path / "j.jsonl", "--json")
    remaining = json.loads(result.stdout)["cleanup"]["remaining"]
    assert result.exit_code == 1
    assert remaining
    left = system.index
    assert left != before
    assert all(one["canary"] in left for one in remaining)
    cleaned = command("clean", tmp_path / "j.jsonl")
    assert cleaned.exit_code == 1
    assert all(one["canary"] in cleaned.stderr for one in remaining)
    assert "cannot be searched for its canary" in cleaned.stderr
    assert system.index == left  # and nothing else was touched
    with_find = system.config(tmp_path)
    assert command("clean", tmp_path / "j.jsonl", "--config", with_find).exit_code == 0
    assert system.index == before


def test_what_cannot_be_removed_is_noticed_before_anything_harmful_is_planted(stand_in, tmp_path):
    system = stand_in("--mode", "sticky")
    config = system.config(tmp_path, find=False)
    result = command(config)
    assert result.exit_code == 2
    assert "a harmless document was planted and could not be removed" in result.stderr
    assert "see whether the request 'remove' is right" in result.stderr
    assert "belongs to a test" in system.index
    assert "Catalogue" not in system.index
    assert system.index.count("unpoison-") == 2  # its text and its mark


def test_an_id_that_is_given_twice_is_never_deleted(stand_in, tmp_path):
    system = stand_in("--mode", "same-id")
    config = system.config(tmp_path, find=False, rehearse=False, limits={"in_flight": 1}, limit=2)
    result = command(config, "--journal", tmp_path / "j.jsonl")
    assert result.exit_code in (1, 2)
    rows = journal_rows(tmp_path / "j.jsonl")
    deleted = [row for row in rows if row["event"] == "removed"]
    assert not deleted
    assert any("always-the-same" in row.get("reason", "") for row in rows) or any(
        "knows no" in row.get("reason", "") for row in rows
    )


def test_a_plant_that_was_done_and_redirected_or_denied_is_found_and_removed(stand_in, tmp_path):
    system = stand_in("--mode", "denied")
    before = system.index
    result = command(system.config(tmp_path, limit=2, rehearse=False), "--json")
    document = json.loads(result.stdout)
    assert document["cells"][1]["failed"] == 2
    assert "redirected (303)" in result.stderr
    assert "status 400" in result.stderr
    assert (system.index, document["cleanup"]["remaining"]) == (before, [])


def test_find_spares_a_document_whose_id_was_given_for_ours(stand_in, tmp_path):
    """A system that answers with the id of a document of its own, as one that drops duplicates does."""
    system = stand_in()
    config, journal = system.config(tmp_path), tmp_path / "j.jsonl"
    target = json.loads(config.read_text())["target"]
    before = system.index
    rows = [
        {"event": "run", "version": 1, "target": target, "wait": {"seconds": 0.1, "every": 0.05}, "config": "x"},
        {"event": "planting", "canary": "unpoison-x", "question": "q0", "attack": "poisonedrag", "handles": []},
        {"event": "planted", "canary": "unpoison-x", "handles": ["town-0"]},
    ]
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert clean(journal, secrets=Secrets({}), hosts=Hosts()).clean
    assert system.index == before


def test_a_dead_system_ends_the_run_and_says_so(tmp_path, stand_in):
    system = stand_in(questions=60)
    config = Config.load(
        system.config(
            tmp_path,
            limits={"retries": 0, "in_flight": 4},
            target={"ask": {"url": "http://127.0.0.1:1/ask", "body": "{question}", "answer": "text"}},
        )
    )
    results = run_test(config, tmp_path / "j.jsonl", secrets=Secrets({}), hosts=Hosts())
    assert not results.complete
    assert "times in a row" in results.problems[0]
    assert "cannot reach '127.0.0.1'" in results.problems[0]
    assert len(results.trials) < 60


def test_a_budget_that_cannot_suffice_is_refused_before_anything_is_sent(stand_in, tmp_path):
    system = stand_in()
    result = command(system.config(tmp_path), "--budget", 10)
    assert (result.exit_code, "need 31 requests or more" in result.stderr) == (2, True)
    assert system.state()["calls"] == 0
    short = command(system.config(tmp_path, wait={"seconds": 5, "every": 0.01}, attacks=["jamming"]), "--budget", 31)
    assert system.index.count("unpoison-") == 0
    assert short.exit_code in (0, 1)


def test_a_dry_run_sends_nothing_and_shows_no_secret(stand_in, tmp_path, monkeypatch):
    system = stand_in()
    monkeypatch.setenv("RAG_TOKEN", "s3cr3t-token-value")
    config = system.config(tmp_path, target={"headers": {"Authorization": "Bearer ${RAG_TOKEN}"}})
    result = command(config, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "Authorization: Bearer ${RAG_TOKEN}" in result.stdout
    assert "s3cr3t" not in result.output
    assert system.state()["calls"] == 0
    assert not list(tmp_path.glob("*.journal"))


def test_a_secret_that_the_system_repeats_is_nowhere(stand_in, tmp_path, monkeypatch):
    system = stand_in("--mode", "indiscreet")
    monkeypatch.setenv("RAG_TOKEN", 's3cr3t "token" +value')
    config = system.config(tmp_path, target={"headers": {"Authorization": "Bearer ${RAG_TOKEN}"}})
    result = command(config, "--json", "--junit", tmp_path / "junit.xml", "--sarif", tmp_path / "redteam.sarif")
    assert result.exit_code == 2
    written = "".join(path.read_text() for path in tmp_path.iterdir() if path.name != "stand_in")
    for text in (result.output, written):
        assert "s3cr3t" not in text
    assert "repeats ${RAG_TOKEN}" in result.output
