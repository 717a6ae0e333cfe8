"""Pages of the documentation that are carried out as a reader would: files written, commands run, in one folder.

A block ```LANGUAGE title="NAME" is written to NAME; a block ```sh is run, line by line, with bash. What a command exits
with is said behind it: `# exit 1`. A block ```text directly behind a block of code is what that prints, to the letter
but for white space at the ends of lines; `...` in it stands for anything, within a line or for lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
ANYTHING = "..."
SECONDS = 300


class Block(NamedTuple):
    """One fenced block: its language, the file that it is, "" for none, its text, and what it prints, "" for unsaid."""

    language: str
    title: str
    text: str
    printed: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8") + "\n")]


def prints_as_shown(printed: str, shown: str) -> bool:
    """Whether output is what a page shows; `...` stands for anything."""
    output_lines, parts = _trimmed(printed), _trimmed(shown).split(ANYTHING)
    return re.fullmatch(".*".join(map(re.escape, parts)), output_lines, re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def commands(text: str) -> list[tuple[str, int]]:
    """The commands of a block, lines that end in a backslash joined, with what each exits with."""
    lines = text.replace("\\\n", " ").splitlines()
    found = []
    for line in lines:
        command, _, code = line.partition("# exit ")
        if command.strip() and not command.lstrip().startswith("#"):
            found.append((command.strip(), int(code or 0)))
    return found


def carry_out(page: Path, folder: Path, unshown: list[str] | None = None) -> list[str]:
    """Do what a page says, in a folder; returns the commands that were run.

    `unshown` is given the blocks that print something of which the page shows nothing.
    """
    tools = folder / ".tools"
    tools.mkdir()
    tool = tools / "unpoison"
    tool.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from unpoison.cli import main; main()' \"$@\"\n")
    tool.chmod(0o755)
    python = tools / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "packages" / "unpoison-reader" / "src")])
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": path,
    }
    done = []
    for block in blocks(page):
        if block.title:
            target = folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            output = ""
            for command, code in commands(block.text):
                run = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", command],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                )
                assert run.returncode == code, f"{page.name}: {command}\n{run.stdout[-2000:]}\n{run.stderr[-3000:]}"
                done.append(command)
                output += run.stdout
            if unshown is not None and output.strip() and not block.printed:
                unshown.append(block.text)
            if block.printed:
                assert prints_as_shown(output, block.printed), f"{page.name} shows another output than\n{output}"
    return done
