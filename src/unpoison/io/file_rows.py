"""Rows of untrusted files: lines of JSON or rows of CSV, read and written.

A row of CSV is converted to a line of JSON. It keeps its number, so that messages refer to the rows of a spreadsheet:
the heading is row 1. How a cell becomes a value is `docs/data.md`, section CSV.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import IO, Any, NoReturn, Protocol

from unpoison.errors import InputError, clip

__all__ = [
    "ANSWERS",
    "COLUMNS",
    "MAX_LINE",
    "FileRow",
    "Source",
    "csv_lines",
    "dialect",
    "json_line",
    "line_text",
    "looks_like_csv",
    "parse_json",
    "read_line",
]

MAX_LINE = 256 * 2**20
"""Maximum bytes of one line: room for 5,000 passages with embeddings."""


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


def read_line(number: int, line: bytes | None, position: int = 0) -> FileRow | None:
    """The row on a line, None for a blank line; `line` is None if it was too long."""
    if line is None:
        return FileRow(number, {}, f"the line is longer than {MAX_LINE // 2**20} MiB", position)
    text = line_text(line)
    return FileRow(number, *_parse_line(text), position) if text else None


def _parse_line(line: bytes) -> tuple[Mapping[str, Any], str | None]:
    """The object on a line, or an error."""
    try:
        value = parse_json(line)
    except UnicodeDecodeError as error:
        return {}, f"no UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
    except RecursionError:
        return {}, "no usable JSON: nested too deeply"
    except ValueError as error:
        return {}, f"no usable JSON: {error}; a row is one JSON object on one line"
    if isinstance(value, dict) and set(value) == {UNREADABLE}:
        return {}, str(value[UNREADABLE])
    if not isinstance(value, dict):
        return {}, f"a row must be a JSON object, got {clip(value)}"
    return value, None


def parse_json(text: bytes) -> Any:
    """Parse JSON in UTF-8; NaN and infinities are errors.

    Raises:
        ValueError: Invalid JSON or UTF-8.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text.decode("utf-8"), parse_constant=_refuse_number, parse_float=_finite)


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

UNREADABLE = "\x00unreadable"
"""The only key of a line for an unreadable row; its value is the error."""

DELIMITERS = ",;\t"
GUARDED = tuple(f"'{sign}" for sign in "=+-@\t\r")
"""Prefixes of cells that were escaped against formula injection; the quote is not part of the text."""

_NUMBERED = re.compile(r"passage[ _]?([0-9]{1,4})\Z")
_JSON_COLUMNS = ("passages", "query_embedding")


def looks_like_csv(first: bytes, second: bytes | None = None) -> bool:
    """Whether these first lines belong to a CSV file: a known heading, or two lines with equally many cells."""
    cells = _cells(first)
    if len(cells) < 2:
        return False
    if COLUMNS & {cell.strip().lower() for cell in cells} or any(_NUMBERED.match(cell.lower()) for cell in cells):
        return True
    return second is not None and not second.lstrip().startswith(b"{") and len(_cells(second)) == len(cells)


def dialect(heading: bytes) -> str:
    """The delimiter of a heading: the one of comma, semicolon and tab that occurs most."""
    text = heading.decode("utf-8", "replace")
    return max(DELIMITERS, key=text.count)


def csv_lines(stream: IO[bytes], name: str, longest: int, *, any_columns: bool = False) -> Iterator[bytes]:
    """The rows of a CSV file, each converted to a line of JSON.

    Args:
        stream: UTF-8, with or without a byte order mark.
        name: What messages call the file.
        longest: Maximum bytes of one row.
        any_columns: Accept a heading without any known column.

    Raises:
        InputError: No heading, a heading that names no column that we know, or a quote that is never closed.
    """
    taken = _Lines(stream, name, longest)
    heading = taken.peek()
    if not heading:
        raise InputError(f"{name} is empty; its first row must name the columns, such as question")
    csv.field_size_limit(max(csv.field_size_limit(), longest))  # a cell may hold all passages of a row
    rows = csv.reader(taken, delimiter=dialect(heading), strict=True)
    columns = _columns(_next(rows, taken, name) or [], name, any_columns)
    yield b"\n"
    while (row := _next(rows, taken, name)) is not None:
        yield _line(columns, row)


def _next(rows: Iterator[list[str]], taken: _Lines, name: str) -> list[str] | None:
    taken.row_bytes = 0
    try:
        return next(rows, None)
    except csv.Error as error:
        raise InputError(
            f"{name} cannot be read as CSV near line {taken.number}: {error}; put cells with quotes, commas or line "
            'breaks between "quotes", and write a quote inside them twice'
        ) from None


class _Lines:
    """Physical lines as text for the csv module, with a limit on the bytes of one row.

    Invalid UTF-8 passes as surrogate escapes, so that the error is reported for its row.
    """

    def __init__(self, stream: IO[bytes], name: str, longest: int) -> None:
        self._stream, self._name, self._longest = stream, name, longest
        self._ahead: bytes | None = None
        self.number = self.row_bytes = 0

    def peek(self) -> bytes:
        """The first line that is not blank."""
        while self._ahead is None:
            line = self._stream.readline(self._longest + 1)
            if line.strip(b"\xef\xbb\xbf \r\n") or not line:
                self._ahead = line
            else:
                self.number += 1
        return self._ahead

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._stream.readline(self._longest + 1) if self._ahead is None else self._ahead
        self._ahead = None
        if not line:
            raise StopIteration
        self.number += 1
        self.row_bytes += len(line)
        if self.row_bytes > self._longest:
            raise InputError(
                f"{self._name}: the row before line {self.number} is longer than {self._longest // 2**20} MiB; "
                "is a quote never closed?"
            )
        text = line.removeprefix(b"\xef\xbb\xbf") if self.number == 1 else line
        if b"\0" in text:
            raise InputError(f"{self._name}: line {self.number} holds a zero byte; save the file as CSV in UTF-8")
        return text.decode("utf-8", "surrogateescape")


def _columns(heading: Sequence[str], name: str, any_columns: bool) -> list[str]:
    columns = [cell.strip() for cell in heading]
    names = [column.lower() if column.lower() in COLUMNS else column for column in columns]
    while names and not names[-1]:  # spreadsheets add empty columns
        names.pop()
    doubled = next((column for i, column in enumerate(names) if column in names[:i]), None)
    if doubled is not None:
        raise InputError(f"{name} has the column {clip(doubled)} twice; give every column a name of its own")
    if not any_columns and not COLUMNS & set(names):
        raise InputError(
            f"the first row of {name} names no column that we know, got {clip(names)}; "
            "name the columns there, at least question (or text, for a collection of passages)"
        )
    return names


def _line(columns: Sequence[str], row: Sequence[str]) -> bytes:
    """A row as a line of JSON; invalid UTF-8 keeps its bytes."""
    if not any(cell.strip() for cell in row):
        return b"\n"
    if any(cell.strip() for cell in row[len(columns) :]):
        return _dump({UNREADABLE: f"the row has {len(row)} cells and the heading {len(columns)}; quote cells that "
                        "hold a comma"})  # fmt: skip
    cells = {column: cell for column, cell in zip(columns, row) if cell.strip() and column}
    try:
        return _dump(_cell_values(cells))
    except ValueError as error:
        return _dump({UNREADABLE: str(error)})


def _dump(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"


def _cell_values(cells: Mapping[str, str]) -> dict[str, Any]:
    """Cells as the values of a row.

    Raises:
        ValueError: A cell that looks like JSON and is not.
    """
    cells = {name: cell[1:] if cell[:2] in GUARDED else cell for name, cell in cells.items()}
    numbered = sorted((int(match[1]), name) for name in cells if (match := _NUMBERED.match(name.lower())))
    fields: dict[str, Any] = {}
    for name, cell in cells.items():
        if name in ANSWERS:
            fields[name] = _list(name, cell) if cell.lstrip().startswith("[") else _parts(cell)
        elif name in _JSON_COLUMNS:
            fields[name] = _list(name, cell) if cell.lstrip().startswith("[") else [cell]
        elif not _NUMBERED.match(name.lower()):
            fields[name] = cell
    if numbered:
        fields["passages"] = [*fields.get("passages", []), *(cells[name] for _, name in numbered)]
    return fields


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split("|") if part.strip()]


def _list(name: str, cell: str) -> list[Any]:
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} begins with [ and is no JSON list, got {clip(cell)}") from None
    return list(value)


def _cells(line: bytes) -> list[str]:
    text = line[:10_000].decode("utf-8", "replace").lstrip("\ufeff").strip()
    if text.startswith(("{", "[")):
        return []
    return [cell.strip().strip('"') for cell in text.split(max(DELIMITERS, key=text.count))]
