"""Question files in, JSON Lines out, as streams: one row in memory at a time, and nothing trusted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from math import isfinite
from os import fstat
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Protocol, Self

from unpoison.errors import InputError, OptionError, shown
from unpoison.extras import require

__all__ = [
    "JsonLinesSource",
    "ParquetSource",
    "Record",
    "Source",
    "Writer",
    "arrow_rows",
    "check_output",
    "encoded",
    "line_text",
    "not_the_input",
    "open_source",
    "read_line",
]

MAX_LINE = 256 * 2**20
"""Bytes of one line: room for 5,000 passages with their embeddings; a longer one is refused unread."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a JSON Lines file or one row of a Parquet file.

    Attributes:
        number: Its line or row, from 1.
        fields: What it holds; empty where `error` is set.
        error: Why it could not be read, or None.
        position: How far the source has been read, in the unit of `Source.size`.
    """

    number: int
    fields: Mapping[str, Any]
    error: str | None
    position: int


class Source(Protocol):
    """A question file that is open.

    Attributes:
        name: What messages call it.
        size: The whole length, in bytes or rows; None where unknown.
    """

    name: str
    size: int | None

    def __iter__(self) -> Iterator[Record]: ...


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a JSON Lines file, a Parquet file (by its suffix), or standard input (`-`).

    Raises:
        OSError: The file cannot be opened.
        InputError: Not a Parquet file.
        MissingExtraError: Parquet needs an extra that is not installed.
    """
    if path == "-":
        yield JsonLinesSource(sys.stdin.buffer, "standard input", None)
        return
    with Path(path).open("rb") as stream:
        if Path(path).suffix == ".parquet":
            yield ParquetSource(stream, path)
        else:
            yield JsonLinesSource(stream, path, fstat(stream.fileno()).st_size or None)


class JsonLinesSource:
    """One JSON object per line, UTF-8; blank lines are skipped but counted."""

    def __init__(self, stream: IO[bytes], name: str, size: int | None) -> None:
        self.stream = stream
        self.name = name
        self.size = size

    def __iter__(self) -> Iterator[Record]:
        position = 0
        for number, (line, length) in enumerate(self.lines(), 1):
            position += length
            if (record := read_line(number, line, position)) is not None:
                yield record

    def lines(self) -> Iterator[tuple[bytes | None, int]]:
        """Every line as it stands, None for one that is too long, and how many bytes it has in the file."""
        while line := self.stream.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE:
                yield None, len(line) + self._skip_line()
            else:
                yield line, len(line)

    def _skip_line(self) -> int:
        """Read past the end of the line, and say how many bytes that was."""
        skipped = 0
        while part := self.stream.readline(2**20):
            skipped += len(part)
            if part.endswith(b"\n"):
                break
        return skipped


def line_text(line: bytes) -> bytes:
    """A line without its end and a byte order mark; empty for a blank one."""
    return line.removeprefix(b"\xef\xbb\xbf").strip()


def read_line(number: int, line: bytes | None, position: int = 0) -> Record | None:
    """The record of a line, None for a blank one; a line of None was too long."""
    if line is None:
        return Record(number, {}, f"the line is longer than {MAX_LINE // 2**20} MiB", position)
    text = line_text(line)
    return Record(number, *_parsed(text), position) if text else None


def _parsed(line: bytes) -> tuple[Mapping[str, Any], str | None]:
    """The object on a line, or why there is none."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse_number, parse_float=_finite)
    except UnicodeDecodeError as error:
        return {}, f"no UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
    except RecursionError:
        return {}, "no usable JSON: nested too deeply"
    except ValueError as error:
        return {}, f"no usable JSON: {error}"
    if not isinstance(value, dict):
        return {}, f"a row must be a JSON object with 'query' and 'passages', got {shown(value)}"
    return value, None


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number; use null")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{shown(text)} is larger than any float")
    return number


class ParquetSource:
    """The rows of a Parquet file, read in small batches."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        parquet = require("pyarrow.parquet", "reading Parquet files")
        try:
            self.file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=2**20)  # or it holds a whole group
        except (OSError, ValueError) as error:
            raise InputError(f"{name} is no Parquet file: {error}") from None
        self.name = name
        self.size: int | None = self.file.metadata.num_rows or None

    @property
    def schema(self) -> Any:
        """The file's Arrow schema."""
        return self.file.schema_arrow

    def __iter__(self) -> Iterator[Record]:
        number = 0
        for batch in self.batches():
            for fields in arrow_rows(batch):
                number += 1
                yield Record(number, fields, None, number)

    def batches(self) -> Iterator[Any]:
        """The rows as Arrow record batches of a few rows."""
        number = 0
        try:
            for batch in self.file.iter_batches(batch_size=32, use_threads=False):
                yield batch
                number += batch.num_rows
        except (OSError, ValueError) as error:
            raise InputError(f"{self.name} cannot be read past row {number}: {error}") from None


def arrow_rows(batch: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table or record batch, as JSON has them.

    Raises:
        InputError: A value that Python cannot hold, such as a year past 9999.
    """
    try:
        return [_json_ready(fields) for fields in batch.to_pylist()]
    except ValueError as error:
        raise InputError(f"a row cannot be read: {error}; write such values as text") from None


def _json_ready(value: Any) -> Any:
    """A Parquet value as JSON has it: moments as ISO text, NaN (pandas' missing value) as null, bytes as hex."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _json_ready(item) for name, item in value.items()}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def check_output(output: Path, source: str) -> None:
    """See early that a file can be written and is not the input.

    Raises:
        OptionError: It is the input.
        OSError: It cannot be written.
    """
    not_the_input(output, source)
    output.open("ab").close()


def not_the_input(output: Path, source: str) -> None:
    """See that a file is not the input.

    Raises:
        OptionError: It is.
    """
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise OptionError(f"{output} is the input; write to another file")


class Writer:
    """Writes JSON Lines to a file, or to standard output, or nowhere; flushed after every row.

    A file gets its name when it is whole. What was written until Ctrl-C stays beside it, as NAME.part.

    Attributes:
        active: Whether it writes anywhere.
    """

    def __init__(self, output: Path | None, source: str, *, to_stdout: bool) -> None:
        if output is not None:
            if output.suffix == ".parquet":
                raise OptionError(f"{output}: rows are written as JSON Lines; name the file .jsonl")
            check_output(output, source)
        self.active = to_stdout or output is not None
        self._draft = self._output = output
        if output is not None and (output.is_file() or not output.exists()):  # a device or a pipe is written as it is
            self._draft = output.with_name(f"{output.name}.part")
        self._file: IO[bytes] | None = None if self._draft is None else self._draft.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        broken_off = kind is not None and not issubclass(kind, Exception)
        if self._draft is not None and self._output is not None and self._draft != self._output and not broken_off:
            os.replace(self._draft, self._output)

    def write(self, record: Mapping[str, Any]) -> None:
        if self.active:
            stream = sys.stdout.buffer if self._file is None else self._file
            stream.write(encoded(record))
            stream.flush()


def encoded(record: Mapping[str, Any]) -> bytes:
    """A record as one line of JSON, readable where it can be."""
    try:
        return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can only say it escaped
        return (json.dumps(record, allow_nan=False) + "\n").encode()
