"""How long the tutorial "Measure my RAG and report it" takes with a folder of 200 Markdown files in place of its three.

python -m benchmarks tutorial evaluation-data

The files are made of the passages of several data sets, five each, their titles as headings; commands and other files
are the tutorial's own. Prints the seconds of each command and of the processor behind it.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "measure-and-report.md"
SETS = ("clean_wiki_en", "clean_software_docs", "clean_faq_answers", "timeqa", "nq_retrieved", "realtimeqa_weekly")
SECTIONS = 5
"""Passages in a file."""
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--files", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words = written(folder / "docs", arguments.data, arguments.files)
        print(f"{arguments.files} Markdown files, {words:,} words.\n\n| command | s | processor s |\n|---|---|---|")
        total = [0.0, 0.0]
        for command in commands(folder):
            taken = timed(command, folder)
            total = [so_far + now for so_far, now in zip(total, taken, strict=True)]
            print(f"| `{shlex.join(command)}` | {taken[0]:.1f} | {taken[1]:.1f} |", flush=True)
        print(f"| all | {total[0]:.1f} | {total[1]:.1f} |")


def written(docs: Path, data: Path, count: int) -> int:
    """Make the folder; the number of words in it."""
    docs.mkdir()
    parts_of = files(data)
    words = 0
    for number in range(count):
        parts = next(parts_of)
        text = f"# {parts[0][0]}\n\n" + "\n\n".join(f"## {title}\n\n{body}" for title, body in parts) + "\n"
        (docs / f"{number:03}.md").write_text(text, encoding="utf-8")
        words += len(text.split())
    return words


def files(data: Path) -> Iterator[list[tuple[str, str]]]:
    """The sections of one file after the other, the data sets in turn as long as they last."""
    waiting = [sections(data / f"{name}.jsonl") for name in SETS]
    while waiting:
        source = waiting.pop(0)
        parts = list(islice(source, SECTIONS))
        if len(parts) == SECTIONS:
            waiting.append(source)
            yield parts


def sections(path: Path) -> Iterator[tuple[str, str]]:
    """Titles and texts of a file's passages, each text once."""
    seen = set()
    with path.open(encoding="utf-8") as file:
        for line in file:
            for passage in json.loads(line)["passages"]:
                if passage["text"] not in seen:
                    seen.add(passage["text"])
                    yield passage.get("title") or "Notes", passage["text"]


def commands(folder: Path) -> Iterator[list[str]]:
    """The tutorial's commands, in order; its other files are written when their turn comes, but for its documents."""
    for kind, title, body in _BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if title and not title.startswith("docs/"):
            (folder / title).write_text(body, encoding="utf-8")
        elif kind == "sh":
            yield from map(shlex.split, body.splitlines())


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of a command, and of the processor."""
    program = [sys.executable, "-c", "from unpoison.cli import main; main()", *command[1:]]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(program, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, busy


if __name__ == "__main__":
    main()
