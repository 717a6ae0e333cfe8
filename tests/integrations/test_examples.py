"""The agents in examples/ run as they are, offline, and show what they claim; the tutorials run the other files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

LIBRARIES = {
    "langgraph": "langgraph",
    "openai_agents": "agents.run",
    "pydantic_ai": "pydantic_ai",
}
AGENTS = [pytest.param(f"{name}_tools.py", marks=pytest.mark.needs(library)) for name, library in LIBRARIES.items()]
CLAIMS = ("without screening: The customer list is on its way.", "with screening:    It was built in 1902.")


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_shows_what_it_claims(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for claim in CLAIMS:
        assert claim in ran.stdout
