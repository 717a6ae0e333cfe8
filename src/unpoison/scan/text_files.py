"""Decodes text files by byte order mark, declared encoding, or a guess; reads CSV and TSV files with a header."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow, csv_lines, dialect, read_line
from unpoison.report.rendering import excerpt
from unpoison.utils.extras import require

__all__ = ["decode", "table_rows"]

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Longer marks first, because one begins with another."""

MAX_HEAD = 4_096
"""Maximum bytes in which a declaration is looked for."""

_DECLARED = re.compile(
    rb"<\?xml[^>]{1,200}encoding\s{0,9}=\s{0,9}[\"']([\w.:-]{1,40})"
    rb"|<meta[^>]{1,200}charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})"
    rb"|^content-type:[^\n]{1,200}charset\s{0,9}=\s{0,9}\"?([\w.:-]{1,40})",
    re.IGNORECASE | re.MULTILINE,
)
"""An XML declaration, `<meta charset>` or its older form, or a mail header."""

_AS_BROWSERS = {"iso8859-1": "cp1252", "ascii": "cp1252"}
"""Declared encodings that browsers read as another one."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, with notes about guessed or lost characters.

    In this order: the byte order mark; a valid declared encoding; valid UTF-8 without control characters; the guess of
    `charset-normalizer`; UTF-8 with replacements.

    Raises:
        MissingExtraError: A guess is needed, and charset-normalizer is not installed.
    """
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return _read(raw, encoding)
    declared = _DECLARED.search(raw[:MAX_HEAD])
    if declared is not None:
        name = next(filter(None, declared.groups())).decode("ascii")
        try:
            codec = codecs.lookup(name).name
            return raw.decode(_AS_BROWSERS.get(codec, codec)), ()
        except (LookupError, UnicodeError, ValueError):
            note = (f"it declares {name} wrongly",)
            text, more = _guess(raw)
            return text, (*note, *more)
    return _guess(raw)


def _guess(raw: bytes) -> tuple[str, tuple[str, ...]]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not _CONTROL.search(text):
        return text, ()
    found = require("charset_normalizer", "reading a file that is not UTF-8").from_bytes(raw).best()
    if found is None:
        return _read(raw, "utf-8")
    return str(found), (f"its encoding was guessed: {found.encoding}",)


def _read(raw: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    text = raw.decode(encoding, "replace")
    lost = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
    return text, (f"bytes that are not {encoding} were replaced: {lost:,}",) if lost > 0 else ()


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
