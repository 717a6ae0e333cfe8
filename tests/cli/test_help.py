"""How help looks: groups, and the ways to reach the program."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from unpoison.cli import COMMANDS, app

ROOT = get_command(app)


def leaves(command, name=""):
    """Every command that does something, by its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for part, below in inner.items():
        yield from leaves(below, f"{name} {part}".strip())


LEAVES = dict(leaves(ROOT))


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    for name in ("COLUMNS", "TERMINAL_WIDTH"):
        monkeypatch.setenv(name, "80")


def test_the_first_page_fits_a_terminal(run):
    lines = run("--help").stdout.splitlines()
    assert len(lines) <= 44
    assert max(map(len, lines)) <= 80
    assert "..." not in "".join(line for line in lines if not line.startswith("Usage"))
    headings = [line.removesuffix(":") for line in lines if line.endswith(":")]
    assert headings == ["Options", *COMMANDS]


def test_python_m_has_the_name_of_the_program():
    command = [sys.executable, "-m", "unpoison", "screen", "--help"]
    usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert usage.startswith("Usage: unpoison screen ")


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_shows_an_example_of_itself(run, name):
    examples = run(*name.split(), "--help").stdout.partition("Examples:")[2]
    assert f"unpoison {name.removesuffix(' run')} " in examples.replace("\n", " ")
