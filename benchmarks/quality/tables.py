"""Run named tables of the docs again and compare them with what stands there.

    python -m benchmarks tables --list
    python -m benchmarks tables sample                          # compare; exit status 1 where a number differs
    python -m benchmarks tables --write sample                  # put the new table and this commit into the docs
    python -m benchmarks tables                                 # all of them: hours

A table stands in its document between `<!-- table NAME, commit HASH -->` and `<!-- end NAME -->`. What depends on the
machine (times, memory) is not compared. Tables that a person has put together from several runs are not in the list;
their sections name the command instead.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data_option import BUILT, evaluation_folder

ROOT = Path(__file__).resolve().parents[2]
DATA = "DATA"
"""In a command: the folder of data sets."""


@dataclass(frozen=True)
class Table:
    """A part of the docs that a command prints.

    Attributes:
        document: Where it stands, below the project's folder.
        command: What prints it, behind the interpreter; `DATA` is replaced by the folder of data sets.
        sections: Only the sections of the output whose titles begin so; all of it where there are none.
        minutes: About how long it takes on two cores.
    """

    document: str
    command: tuple[str, ...]
    sections: tuple[str, ...] = ()
    minutes: float = 1

    @property
    def needs_data(self) -> bool:
        return any(part.startswith(DATA) for part in self.command)


TABLES = {
    "sample": Table(
        "docs/results.md",
        (
            "-m",
            "benchmarks",
            "sample_table",
        ),
        minutes=0.2,
    ),
}

_MACHINE = re.compile(r"/s$|\bms\b|\bMB\b|seconds|minutes")
"""Headings of columns that depend on the machine."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables; all of them by default")
    parser.add_argument("--data", type=evaluation_folder, default=BUILT)
    parser.add_argument("--write", action="store_true", help="put the tables into the docs instead of comparing them")
    parser.add_argument("--list", action="store_true", help="list the tables")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in TABLES]
    if unknown:
        parser.error(f"no table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    if arguments.list:
        for name, table in TABLES.items():
            print(f"{name:26} {table.document:36} about {table.minutes:g} min")
        return
    changed = []
    for name in arguments.names or TABLES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        made = output(TABLES[name], arguments.data)
        if arguments.write:
            write(name, made)
            continue
        found = list(differences(standing(name)[1], made))
        print(f"{name}: {'as in the docs' if not found else f'{len(found)} lines differ'}")
        print(*found, sep="\n", end="\n" if found else "")
        changed += [name] if found else []
    sys.exit(1 if changed else 0)


def output(table: Table, data: Path) -> str:
    """What the command prints.

    Raises:
        SystemExit: It failed; its own words are on standard error.
    """
    command = [str(data) if part == DATA else part for part in table.command]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with status {done.returncode}")
    return done.stdout.strip()


def standing(name: str) -> tuple[str, str]:
    """The commit and the text of a table as they stand in the docs.

    Raises:
        SystemExit: Its document does not hold it.
    """
    text = (ROOT / TABLES[name].document).read_text(encoding="utf-8")
    found = _block(name).search(text)
    if found is None:
        sys.exit(f"{TABLES[name].document} holds no table {name} between its two comments")
    return found["commit"], found["text"].strip()


def _block(name: str) -> re.Pattern[str]:
    label = re.escape(name)
    return re.compile(
        rf"<!-- table {label}, commit (?P<commit>[0-9a-f]+) -->\n(?P<text>.*?)<!-- end {label} -->", re.DOTALL
    )


def write(name: str, made: str) -> None:
    """Put a table into its document, with the commit that it was measured at."""
    path = ROOT / TABLES[name].document
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    block = f"<!-- table {name}, commit {commit} -->\n\n{made}\n\n<!-- end {name} -->"
    text, count = _block(name).subn(lambda _: block, path.read_text(encoding="utf-8"))
    if not count:
        sys.exit(f"{path} has no place for {name}; put its two comments where it shall stand")
    path.write_text(text, encoding="utf-8")


def differences(old: str, new: str) -> Iterator[str]:
    """The lines of tables that one of two texts has and the other has not, without what depends on the machine."""
    before, after = rows(old), rows(new)
    yield from (f"- {line}" for line in before if line not in after)
    yield from (f"+ {line}" for line in after if line not in before)


def rows(text: str) -> list[str]:
    """The rows of all tables of a text, each under its table's headings."""
    found, kept = list[str](), list[int]()
    heading = ""
    for line in text.splitlines():
        if not line.startswith("|"):
            heading = ""
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if set(line) <= set("|-: "):
            continue
        if not heading:
            kept = [place for place, cell in enumerate(cells) if not _MACHINE.search(cell)]
            heading = " | ".join(cells[place] for place in kept)
            continue
        found.append(f"{heading} :: {' | '.join(cells[place] for place in kept if place < len(cells))}")
    return found


if __name__ == "__main__":
    main()
