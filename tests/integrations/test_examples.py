"""The files in examples/ run as they are, offline, and show what they claim."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

CLAIMS = {
    "langchain_guard.py": [
        "without Guard: The Sharks of San Jose play at Levi's Stadium.",
        "with Guard:    The home games of the Sharks are at the SAP Center in downtown San Jose.",
        "planted-1  drop",
        "arena      keep",
    ],
    "llamaindex_guard.py": [
        "without Guard the model reads the lie: True",
        "with Guard the model reads the lie:    False",
        "read: arena, team, history, ritual",
        "planted-2  drop",
    ],
    "haystack_guard.py": [
        "without Guard: The Sharks of San Jose play at Levi's Stadium.",
        "with Guard:    The home games of the Sharks are at the SAP Center in downtown San Jose.",
        "dropped: planted-1, planted-2",
        "kept by the loaded pipeline: arena, team, history, ritual",
    ],
    **{
        f"{framework}_tools.py": [
            "without screening: The customer list is on its way.",
            "with screening:    It was built in 1902.",
        ]
        for framework in ("langgraph", "llamaindex", "haystack", "openai_agents", "pydantic_ai")
    },
}

DEPRECATED = {"llamaindex_tools.py"}
"""LlamaIndex's agents look at every attribute of a model, deprecated ones of pydantic too."""


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_an_example_shows_what_it_claims(name: str, tmp_path: Path) -> None:
    allowed = ["-W", "ignore::DeprecationWarning"] if name in DEPRECATED else []
    command = [sys.executable, "-W", "error", *allowed, str(EXAMPLES / name)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for claim in CLAIMS[name]:
        assert claim in ran.stdout
