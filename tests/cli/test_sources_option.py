"""`--sources` on the commands that screen and answer rows: status, claims, and who says so."""

from __future__ import annotations

import json
import sqlite3

import pytest

from unpoison.sources import History, Sources

ROW = {
    "question": "which city has the museum of the warship Vasa",
    "passages": [
        {"text": "The Vasa Museum is in Gothenburg.", "url": "https://planted.example/1"},
        {"text": "The museum of the warship Vasa is in Stockholm.", "url": "https://ships.example/"},
        {
            "text": "The warship Vasa is shown in a museum in Stockholm.",
            "metadata": {"url": "https://museums.example/"},
        },
    ],
}


@pytest.fixture
def files(tmp_path):
    """A row, and a policy that knows the honest pages."""
    rows, policy = tmp_path / "rows.jsonl", tmp_path / "policy.yaml"
    rows.write_text(json.dumps(ROW) + "\n")
    policy.write_text("known: [ships.example, museums.example]\n")
    return rows, policy


def test_ask_prints_the_status_and_who_says_so(run, files):
    rows, policy = files
    shown = run("ask", "-g", "extractive", "--sources", policy, rows).stdout
    assert "agreed: two or more sources say so" in shown
    assert "- Stockholm, weight 1.6: museums.example, ships.example (passages 1, 2)" in shown
    assert "dropped passage 0: says Gothenburg" in shown


def test_screen_writes_claims(run, files):
    rows, policy = files
    row = json.loads(run("screen", "-g", "extractive", "--sources", policy, "--json", rows).stdout)
    assert row["screening"]["kept"] == [1, 2]
    assert [claim["text"] for claim in row["screening"]["claims"]] == ["Stockholm", "Gothenburg"]


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"SQLite format 3\0" + b"x" * 5000])
@pytest.mark.parametrize("parts", [(), ("--workers", "1")])
def test_a_named_file_that_cannot_be_used_is_an_error(run, files, tmp_path, content, parts):
    history = tmp_path / "history.db"
    history.write_bytes(content)
    result = run("screen", *parts, "--sources", history, "--output", tmp_path / "out.jsonl", files[0])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ") and "history.db" in result.stderr
    assert history.read_bytes() == content


@pytest.mark.parametrize("command", [("screen",), ("ask", "-g", "extractive")])
def test_a_history_that_fails_on_the_way_is_a_warning_and_a_status(run, files, tmp_path, command, monkeypatch):
    def fail(*_: object) -> None:
        raise sqlite3.DatabaseError("disk image is malformed")

    Sources(history=tmp_path / "history.db").record("another question", {"ships.example": "seen"})
    monkeypatch.setattr(History, "_count", fail)
    result = run(*command, "--sources", tmp_path / "history.db", "--learn", "--json", files[0])
    assert result.exit_code == 1
    assert "warning: screening continues without a history" in result.stderr
