"""How help looks, and the ways to reach the program."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from unpoison.cli import app

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    for name in ("COLUMNS", "TERMINAL_WIDTH"):
        monkeypatch.setenv(name, "80")


def test_the_first_page_fits_a_terminal(run):
    lines = run("--help").stdout.splitlines()
    assert len(lines) <= 44
    assert max(map(len, lines)) <= 80
    assert "..." not in "".join(line for line in lines if not line.startswith("Usage"))


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_are_capitals_and_said_once(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    usage = result.stdout.partition("\n\n")[0]
    assert "[[" not in usage
    for name in re.findall(r"[{\[]([\w.]+)[}\]]", usage):
        assert name == name.upper()
    assert not re.search(r"^  \w+ <\w+", result.stdout, re.MULTILINE), "the type of an argument is noise"


def test_long_help_has_sections_and_names_variables_once(run):
    text = run("serve", "--help").stdout
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert headings[:2] == ["Options", "Where it listens"]
    assert {"How much", "Logs"} <= set(headings)
    assert "env var" not in text
    assert "UNPOISON_SERVE_ON_POISON" in text
    assert "--host 0.0.0.0 --keys" in text


def test_python_m_and_completion():
    """The shell asks the program itself, by these variables, what may stand where the cursor is."""
    environment = {**os.environ, "_UNPOISON_COMPLETE": "complete_bash", "COMP_WORDS": "unpoison sc", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "unpoison"]
    offered = subprocess.run(command, env=environment, capture_output=True, text=True).stdout.split()
    assert offered == ["screen", "schema", "scan"]
    usage = subprocess.run([*command, "screen", "--help"], capture_output=True, text=True, check=True).stdout
    assert usage.startswith("Usage: unpoison screen ")
