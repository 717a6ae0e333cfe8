"""Reads CSV and TSV files with a header; the text column may have several names."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow, csv_lines, dialect, read_line
from unpoison.report.rendering import excerpt
from unpoison.scan.encodings import decode

__all__ = ["table_rows"]

MAX_ROW = 64 * 2**20
"""Maximum bytes of a row."""

OWN = ("id", "text", "title", "source", "url")
"""Columns whose names are case-insensitive."""

TEXTS = ("text", "content", "page_content", "body", "passage", "document", "chunk", "answer")
"""Names of the text column, in order of preference."""


def table_rows(source: str) -> tuple[Iterator[FileRow], tuple[str, ...]]:
    """The rows of a file with the text as `text`, and notes on its encoding; the question of an answer is its title.

    Raises:
        InputError: No text column in the header, or an unclosed quote.
    """
    text, notes = decode(Path(source).read_bytes())
    return _rows(text, source), notes


def _rows(text: str, source: str) -> Iterator[FileRow]:
    raw = text.encode("utf-8", "surrogatepass")
    first = next((line for line in raw.splitlines() if line.strip()), b"")
    heading = next(csv.reader([first.decode("utf-8", "replace")], delimiter=dialect(first)), [])
    column = _text_column(heading, source)
    for number, line in enumerate(csv_lines(BytesIO(raw), source, MAX_ROW, any_columns=True), 1):
        row = read_line(number, line, number)
        if row is not None:
            yield row if row.error is not None else FileRow(number, _named(row.fields, column), None, number)


def _text_column(heading: Sequence[str], source: str) -> str:
    """The name of the text column; "" for rows of questions, which the caller reports.

    Raises:
        InputError: There is no text column.
    """
    plain = [name.strip().lower() for name in heading]
    if "passages" in plain:
        return ""
    text = next((wanted for wanted in TEXTS if wanted in plain), None)
    if text is None:
        shown = excerpt(", ".join(map(repr, heading[:20])), 300)
        raise InputError(
            f"{source} has the columns {shown} and none called text; rename the column with the documents' text"
        )
    return text


def _named(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The cells under our field names."""
    plain = {name.strip().lower(): _joined(cell) for name, cell in row.items()}
    fields = {name: _joined(cell) for name, cell in row.items()} | {n: plain[n] for n in OWN if n in plain}
    if column in plain:
        fields["text"] = plain[column]
    if column == "answer" and "question" in plain:
        fields["title"] = plain["question"]
    return fields


def _joined(cell: Any) -> Any:
    """A cell as text; lists of answers are joined."""
    return " | ".join(map(str, cell)) if isinstance(cell, list) else cell
