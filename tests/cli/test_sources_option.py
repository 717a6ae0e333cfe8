"""`--sources` on the commands that screen and answer rows: status, claims, and who says so."""

from __future__ import annotations

import json

import pytest

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
