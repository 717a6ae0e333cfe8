"""Every command that a page shows is one that the command line takes, with options, choices and names that exist.

Nothing is run here: each command is parsed in this process by the parser of the command line itself. Pages whose
commands are run are in `test_carried_out.py`.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks.__main__ import scripts
from unpoison.cli import app
from unpoison.core import registry
from unpoison.errors import UnpoisonError
from unpoison_lab.evaluation.presets import preset_names, stream_preset_names

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
HELP = [*sorted((ROOT / "src").glob("*/cli/*.py"))]
OTHERS = [ROOT / "deploy" / "unpoison.service", *sorted((ROOT / "examples" / "ci").glob("*.yaml"))]

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")
NUMBERS = {"N": "1", "SHARE": "0.02", "NAME=N": "passages=1"}
"""Placeholders of numbers, and a number."""


def shown_commands(page: Path) -> list[str]:
    """The commands of a page, in fenced blocks, in its text, in help or in a file; lines with a backslash joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = [block for language, block in FENCE.findall(text) if language in ("", "sh", "bash", "yaml", "text")]
    blocks = (
        [text]
        if page in OTHERS
        else ["\n".join(re.findall(r"^  (unpoison (?:\S+ ?)*)", text, re.MULTILINE))]
        if page in HELP
        else blocks
    )
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [] if page in (*HELP, *OTHERS) else INLINE.findall(FENCE.sub("", text).replace("\n", " "))
    found = []
    for line in lines:
        for part in re.split(r" +# | && | \|\|? |; ", line):
            command = re.search(
                r"(?:^|^ExecStart=\S*/|^.*then )((?:unpoison|make|python -m benchmarks) .*)", part.strip()
            )
            if part.strip().startswith(("--preset ", "-d ")):  # of a table that says for what they stand
                found.append(f"unpoison evaluate {part.strip()}".partition(", with ")[0])
            elif command and not re.match(r"unpoison ([A-Z]|\d|and |is )", command[1]):
                found.append(command[1])
    return found


def leaves(command: Any) -> Iterator[Any]:
    """The commands that do something, below a group."""
    for below in getattr(command, "commands", {}).values():
        yield from leaves(below)
    if not hasattr(command, "commands"):
        yield command


class Parser:
    """Parses commands and runs none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for leaf in leaves(get_command(app)):
            monkeypatch.setattr(leaf, "callback", self.take)

    def take(self, *_: object, **values: Any) -> None:
        self.values = values

    def refusal(self, command: str) -> str:
        """Why a command is refused; "" if it is not."""
        words = list(takewhile(lambda word: word not in ("<", ">"), shlex.split(command)))
        words = [NUMBERS.get(word, word) for word in words]
        if words[0] == "make":
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            return "" if set(words[1:]) <= set(targets) else "no such target"
        if words[0] == "python":
            return "" if words[3] in {*scripts(), "NAME"} else "no such benchmark"
        self.values = {}
        done = CliRunner().invoke(app, words[1:])
        said = done.stderr.strip().rpartition("Error: ")[2]
        cut = said.startswith(("Missing argument", "Usage: ")) or said == f"Option '{words[-1]}' requires an argument."
        if done.exit_code and not cut:  # a page may name a command or an option without the rest
            return said or repr(done.exception)
        return next(filter(None, map(self.unknown, self.values.items())), "")

    @staticmethod
    def unknown(option: tuple[str, Any]) -> str:
        """What the value of an option names that does not exist."""
        name, value = option
        specs = [] if value is None else [value] if isinstance(value, str) else value
        if name == "preset" and specs:
            return "" if specs[0] in {*preset_names(), *stream_preset_names(), "list", "NAME"} else f"no preset {value}"
        try:
            for spec in registry.split_specs(",".join(specs)) if name in ("defense", "attack") else ():
                called, texts = registry.parse(spec)
                if ":" not in called and called.islower():
                    registry.read_options(registry.find(f"{name}s", called), texts, called)
        except UnpoisonError as error:
            return str(error)
        return ""


@pytest.mark.parametrize("page", [*PAGES, *HELP, *OTHERS], ids=lambda page: page.stem)
def test_every_command_of_a_page_is_taken(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = Parser(monkeypatch)
    refused = {command: why for command in shown_commands(page) if (why := parser.refusal(command))}
    assert refused == {}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("unpoison screen -d guard --no-such retrieved.jsonl", "No such option"),
        ("unpoison evaluate --manifest run/manifest.json", "No such option"),
        ("unpoison screan retrieved.jsonl", "No such command"),
        ("unpoison screen --engine rays a.jsonl", "is not one of"),
        ("unpoison evaluate -d grada:alhpa=1 sample", "did you mean 'alpha'"),
        ("unpoison evaluate --preset grada-table-99", "no preset"),
        ("unpoison screen a.jsonl b.jsonl", "unexpected extra argument"),
        ("make everything", "no such target"),
        ("python -m benchmarks nothing", "no such benchmark"),
        ("unpoison redteam redteam.yaml --fail-if 'asr > 5%'", ""),
    ],
)
def test_what_is_not_there_is_found(command: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Parser(monkeypatch).refusal(command)
    assert why in refusal if why else not refusal


def test_there_are_many() -> None:
    assert sum(len(shown_commands(page)) for page in PAGES) > 350
    assert all(shown_commands(page) for page in OTHERS if page.name != "redteam.yaml")
    assert str(importlib.import_module("unpoison.cli.screen").__doc__).splitlines()[3].strip() in shown_commands(
        ROOT / "src" / "unpoison" / "cli" / "screen.py"
    )
