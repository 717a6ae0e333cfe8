"""Bring the rows that pages copy from the results up to date after these were measured again.

python -m benchmarks copied_rows

A row is known by the heading of its table and by its cells up to the first number. What does not stand exactly once in
the results is named, and left for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = [DOCS / "results.md", *sorted((DOCS / "results").glob("*.md"))]
PAGES = [*sorted((DOCS / "defenses").glob("*.md")), *sorted((DOCS / "attacks").glob("*.md"))]
NUMBER = re.compile(r"^-?\d[\d.,]*(?: |$)|^-$")

Key = tuple[str, ...]


def main() -> None:
    known: dict[Key, set[str]] = {}
    every = set()
    for path in RESULTS:
        for heading, row in rows(path.read_text(encoding="utf-8")):
            known.setdefault(key(heading, row), set()).add(row)
            every.add(row)
    for page in PAGES:
        before, measured, text = page.read_text(encoding="utf-8").partition("\n## Measured\n")
        for heading, row in list(rows(text)):
            candidates = known.get(key(heading, row), set())
            if row not in every and len(candidates) == 1:
                text = text.replace(row, *candidates)
            elif row not in every and numbered(row) and not inner(row, every):
                print(f"{page.name}: look at {row}")
        page.write_text(before + measured + text, encoding="utf-8")


def rows(text: str) -> Iterator[tuple[str, str]]:
    """Rows of all tables, each with the heading of its table."""
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        heading, *lines = table.splitlines()
        yield from ((heading, line) for line in lines[1:])


def key(heading: str, row: str) -> Key:
    """What a row is about: the table's heading, and the cells up to the first number."""
    cells = row.strip("| ").split(" | ")
    first = next((i for i, cell in enumerate(cells) if NUMBER.match(cell)), len(cells))
    return (heading, *cells[:first])


def numbered(row: str) -> bool:
    return re.search(r"\d [\[(]\d", row) is not None


def inner(row: str, every: set[str]) -> bool:
    """Whether a row is one of the results with a cell put in front."""
    rest = "| " + row.strip("| ").partition(" | ")[2] + " |"
    return rest in every


if __name__ == "__main__":
    main()
