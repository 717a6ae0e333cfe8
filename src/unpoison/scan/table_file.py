"""CSV and TSV files with a heading, whatever stands between their columns and whatever the text's column is called."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow
from unpoison.report.rendering import excerpt

__all__ = ["table_rows"]

MAX_CELL = 64 * 2**20
"""Characters of one cell."""

MAX_HEADING = 2**20
SEPARATORS = (",", ";", "\t", "|")
OWN = ("id", "text", "title", "source", "url")
"""Columns that are known in capital letters too."""

TEXTS = ("text", "content", "page_content", "body", "passage", "document", "chunk", "answer")
"""Names of the column that holds the text, the surest first."""


def table_rows(source: str) -> Iterator[FileRow]:
    """The rows of a file, with the text under `text`; the question of an answer is its title.

    Raises:
        InputError: No heading that names a text, or no UTF-8.
    """
    csv.field_size_limit(min(MAX_CELL, sys.maxsize))
    with Path(source).open(encoding="utf-8-sig", newline="") as stream:
        try:
            heading = stream.readline(MAX_HEADING)
        except UnicodeDecodeError as error:
            raise InputError(f"{source} cannot be read: {error}; save it as UTF-8") from None
        stream.seek(0)
        table = csv.DictReader(stream, delimiter=_separator(heading, source))
        number, names = 0, dict[str, str]()
        while True:
            try:
                row = next(table, None)
                names = names or _names(table.fieldnames or (), source)
            except (csv.Error, UnicodeDecodeError) as error:
                raise InputError(f"{source} cannot be read past row {number:,}: {error}") from None
            if row is None:
                return
            number += 1
            fields = {names[name]: value for name, value in row.items() if name is not None and value not in (None, "")}
            yield FileRow(number, fields, None, number)


def _separator(heading: str, source: str) -> str:
    """What stands most often between the columns' names; quoted names do not count."""
    if source.lower().endswith(".tsv"):
        return "\t"
    plain = "".join(heading.split('"')[::2])
    return max(SEPARATORS, key=plain.count)


def _names(heading: Sequence[str], source: str) -> dict[str, str]:
    """The columns by what they are called, and what they are for us.

    Raises:
        InputError: None of them is a text.
    """
    plain = {name: name.strip().lower() for name in heading}
    if "passages" in plain.values():  # rows of questions, of which the reader says what to do
        return {name: name for name in heading}
    text = next((name for wanted in TEXTS for name in heading if plain[name] == wanted), None)
    if text is None:
        shown = excerpt(", ".join(map(repr, heading[:20])), 300)
        raise InputError(
            f"{source} has the columns {shown} and none called text; rename the column that holds the documents' text"
        )
    names = {name: plain[name] if plain[name] in OWN else name for name in heading} | {text: "text"}
    if plain[text] == "answer":
        names |= {name: "title" for name in heading if plain[name] == "question"}
    return names
