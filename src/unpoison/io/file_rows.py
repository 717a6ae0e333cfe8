"""Rows of untrusted files: lines of JSON or rows of CSV, read and written.

A row of CSV keeps its number, so that messages refer to the rows of a spreadsheet: the heading is row 1. How a cell
becomes a value is `docs/data.md`, section CSV.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isfinite
from typing import IO, Any, NoReturn, Protocol

from unpoison.errors import InputError, clip

__all__ = [
    "CHUNK", "CONTAINER", "KEY", "MAX_LINE", "FileRow", "Read", "Source", "as_row", "count_values", "csv_rows",
    "dialect", "json_line", "line_text", "looks_like_csv", "parse_json", "read_line",
]  # fmt: skip

MAX_LINE = 256 * 2**20
"""Maximum bytes of one line: room for 5,000 passages with embeddings."""


CHUNK = 1 << 16
"""Bytes that are counted at a time; other threads may run in between."""

CONTAINER = 16
"""Values that a list or an object counts for, because it takes as much memory."""

KEY, TEXT = 10, 2
"""Values that a key counts for, which is looked up, and a text, which is copied."""

DIGITS, LONG_NUMBER = b"0" * 300, 50
"""So many digits of a number count for 50 values: the time to read it grows with their square."""

_AS_DIGIT = bytes(48 if 48 <= code < 58 else 32 for code in range(256))


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of a file.

    Attributes:
        number: Its line or row, from 1.
        fields: Its content; empty if `error` is set.
        error: Why it could not be read, or None.
        position: Position in the source, in the unit of `Source.size`.
    """

    number: int
    fields: Mapping[str, Any]
    error: str | None
    position: int


class Source(Protocol):
    """A question file that is open.

    Attributes:
        name: What messages call it.
        size: Length in bytes or rows; None if unknown.
    """

    name: str
    size: int | None

    def __iter__(self) -> Iterator[FileRow]: ...


def line_text(line: bytes) -> bytes:
    """A line without its end and a byte order mark; empty for a blank one."""
    return line.removeprefix(b"\xef\xbb\xbf").strip()


Read = tuple[Mapping[str, Any], str | None]
"""The content of a row and no error, or nothing and why it could not be read."""


def read_line(line: bytes | None) -> Read | None:
    """The object on a line, None for a blank line; `line` is None if it was too long."""
    if line is None:
        return {}, f"the line is longer than {MAX_LINE // 2**20} MiB"
    text = line_text(line)
    if not text:
        return None
    try:
        return as_row(parse_json(text))
    except UnicodeDecodeError as error:
        return {}, f"no UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
    except RecursionError:
        return {}, "no usable JSON: nested too deeply"
    except ValueError as error:
        return {}, f"no usable JSON: {error}; a row is one JSON object on one line"


def as_row(value: Any) -> Read:
    """A value of JSON as a row."""
    return (value, None) if isinstance(value, dict) else ({}, f"a row must be a JSON object, got {clip(value)}")


def parse_json(text: bytes) -> Any:
    """Parse JSON in UTF-8; NaN and infinities are errors.

    Raises:
        ValueError: Invalid JSON or UTF-8.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text.decode("utf-8"), parse_constant=_refuse_number, parse_float=_finite)


def count_values(body: bytes) -> int:
    """The values of a JSON text: a list or an object is `CONTAINER` of them, a key `KEY`, a text `TEXT`. O(n) time."""
    start, inside, count, quotes = 0, False, 1, 0
    while start < len(body):
        end = start + CHUNK
        if body[end - 1 : end] == b"\\":  # what it escapes belongs to it
            end += 1
        chunk = body[start:end]
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = chunk.split(b'"')
        outside = b"".join(parts[inside::2])
        count += outside.count(b",") + (KEY - TEXT + 1) * outside.count(b":")
        count += CONTAINER * (outside.count(b"[") + outside.count(b"{"))
        count += LONG_NUMBER * outside.translate(_AS_DIGIT).count(DIGITS)
        quotes += len(parts) - 1
        inside ^= len(parts) % 2 == 0
        start = end
    return count + (TEXT - 1) * (quotes // 2)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number; use null")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{clip(text)} is larger than any float")
    return number


def json_line(record: Mapping[str, Any], *, plain: bool = False) -> bytes:
    """A record as one line of JSON: with readable characters, or `plain`, in ASCII."""
    try:
        return (json.dumps(record, ensure_ascii=plain, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can only say it escaped
        return (json.dumps(record, allow_nan=False) + "\n").encode()


ANSWERS = ("correct_answers", "correct_answer", "incorrect_answers", "incorrect_answer", "answers", "answer")
"""Columns with answers; a cell may hold several, separated by |."""

COLUMNS = frozenset({"id", "query", "question", "passages", "text", "content", "page_content", *ANSWERS})
"""Column names by which a table of rows is recognised."""

MAX_COLUMNS, MAX_NAME = 10_000, 1_000
"""Maximum number of columns, and of characters of a name, which every row repeats."""

_NOT_UTF8 = re.compile("[\ud800-\udfff]")
"""What invalid bytes are read as."""

DELIMITERS = ",;\t"
GUARDED = tuple(f"'{sign}" for sign in "=+-@\t\r")
"""Prefixes of cells that were escaped against formula injection; the quote is not part of the text."""

_NUMBERED = re.compile(r"passage[ _]?([0-9]{1,4})\Z")
_JSON_COLUMNS = ("passages", "query_embedding")


def looks_like_csv(line: bytes) -> bool:
    """Whether this first line of a file is the heading of a table of rows."""
    text = line[:10_000].decode("utf-8", "replace").lower()
    cells = [cell.strip().strip('"') for cell in text.split(dialect(line))]
    return len(cells) > 1 and any(cell in COLUMNS or _NUMBERED.match(cell) for cell in cells)


def dialect(heading: bytes) -> str:
    """The delimiter of a heading: the one of comma, semicolon and tab that occurs most."""
    text = heading.decode("utf-8", "replace")
    return max(DELIMITERS, key=text.count)


def csv_rows(stream: IO[bytes], name: str, longest: int, *, any_columns: bool = False) -> Iterator[Read | None]:
    """The rows of a CSV file; None for a blank one and for the heading.

    Args:
        stream: UTF-8, with or without a byte order mark.
        name: What messages call the file.
        longest: Maximum bytes of one row.
        any_columns: Accept any heading; a column without a name of its own gets one.

    Raises:
        InputError: No heading, a heading that names no column that we know, or a quote that is never closed.
    """
    number = size = 0

    def texts() -> Iterator[str]:
        nonlocal number, size
        for number, line in enumerate(iter(partial(stream.readline, longest + 1), b""), 1):
            size += len(line)
            if size > longest:
                most = longest // 2**20
                raise InputError(f"{name}: the row before line {number} has over {most} MiB; is a quote never closed?")
            if b"\0" in line:
                raise InputError(f"{name}: line {number} holds a zero byte; save the file as CSV in UTF-8")
            # Invalid UTF-8 passes as surrogate escapes, so that the error is reported for its row.
            yield line.decode("utf-8", "surrogateescape").removeprefix("\ufeff" if number == 1 else "")

    csv.field_size_limit(max(csv.field_size_limit(), longest))  # a cell may hold all passages of a row
    lines = texts()
    heading = next((line for line in lines if line.strip()), None)
    if heading is None:
        raise InputError(f"{name} is empty; its first row must name the columns, such as question")
    rows = csv.reader(chain([heading], lines), delimiter=dialect(heading.encode("utf-8", "replace")), strict=True)
    yield from [None] * (number - 1)
    try:
        columns, size = _columns(next(rows), name, any_columns), 0
        yield None
        for row in rows:
            size = 0
            yield _read_cells(columns, row)
    except csv.Error as error:
        raise InputError(
            f"{name} cannot be read as CSV near line {number}: {error}; put cells with quotes, commas or line "
            'breaks between "quotes", and write a quote inside them twice'
        ) from None


def _columns(heading: Sequence[str], name: str, any_columns: bool) -> list[str]:
    columns = [cell.strip() for cell in heading]
    names = [column.lower() if column.lower() in COLUMNS else column for column in columns]
    while names and not (names[-1] or any_columns):  # spreadsheets add empty columns
        names.pop()
    if len(names) > MAX_COLUMNS or any(len(column) > MAX_NAME for column in names):
        raise InputError(
            f"the first row of {name} must name at most {MAX_COLUMNS:,} columns in {MAX_NAME:,} characters each, got "
            f"{len(names):,}, the longest of {max(map(len, names)):,} characters"
        )
    if any_columns:  # exports of trackers have a column for each comment
        first = {name: number for number, name in reversed([*enumerate(names)])}
        names = [name if name and first[name] == number else f"{name} column {number + 1}".lstrip()
                 for number, name in enumerate(names)]  # fmt: skip
    seen = Counter(names)
    doubled = next((column for column in names if seen[column] > 1), None)
    if doubled is not None:
        raise InputError(f"{name} has the column {clip(doubled)} twice; give every column a name of its own")
    if not any_columns and not COLUMNS & set(names):
        raise InputError(
            f"the first row of {name} names no column that we know, got {clip(names)}; "
            "name the columns there, at least question (or text, for a collection of passages)"
        )
    return names


def _read_cells(columns: Sequence[str], row: Sequence[str]) -> Read | None:
    if not any(cell.strip() for cell in row):
        return None
    if any(cell.strip() for cell in row[len(columns) :]):
        return {}, f"the row has {len(row)} cells and the heading {len(columns)}; quote cells that hold a comma"
    cells = {column: cell for column, cell in zip(columns, row) if cell.strip() and column}
    foreign = next((column for column, cell in cells.items() if _NOT_UTF8.search(column + cell)), None)
    if foreign is not None:
        return {}, f"no UTF-8 in the column {clip(foreign)}; save the file as UTF-8"
    try:
        return _cell_values(cells), None
    except ValueError as error:
        return {}, str(error)


def _cell_values(cells: Mapping[str, str]) -> dict[str, Any]:
    """Cells as the values of a row.

    Raises:
        ValueError: A cell that looks like JSON and is not.
    """
    cells = {name: cell[1:] if cell[:2] in GUARDED else cell for name, cell in cells.items()}
    numbered = sorted((int(match[1]), name) for name in cells if (match := _NUMBERED.match(name.lower())))
    fields: dict[str, Any] = {}
    for name, cell in cells.items():
        if name in ANSWERS or name in _JSON_COLUMNS:
            plain = [part.strip() for part in cell.split("|") if part.strip()] if name in ANSWERS else [cell]
            fields[name] = _list(name, cell) if cell.lstrip().startswith("[") else plain
        elif not _NUMBERED.match(name.lower()):
            fields[name] = cell
    if numbered:
        fields["passages"] = [*fields.get("passages", []), *(cells[name] for _, name in numbered)]
    return fields


def _list(name: str, cell: str) -> list[Any]:
    try:
        return list(parse_json(cell.encode()))
    except (ValueError, RecursionError):
        raise ValueError(f"{name} begins with [ and is no JSON list, got {clip(cell)}") from None
