"""Reads untrusted question files as streams, one row in memory at a time."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time
from math import isfinite
from os import fstat
from pathlib import Path
from typing import IO, Any, cast

from unpoison.errors import InputError, clip
from unpoison.io.file_rows import (
    MAX_LINE,
    FileRow,
    Source,
    csv_lines,
    json_line,
    line_text,
    looks_like_csv,
    parse_json,
    read_line,
)
from unpoison.utils.extras import require

__all__ = ["CsvSource", "JsonLinesSource", "JsonSource", "ParquetSource", "open_source", "source_of"]

MAX_JSON = 2**30
"""Maximum bytes of one JSON file, which is held in memory."""


@contextmanager
def open_source(path: str) -> Iterator[Source]:
    """Open a question file, or standard input (`-`, JSON Lines).

    The suffix decides: `.csv`, `.tsv`, `.json` (one list), `.parquet`; anything else is JSON Lines. All but Parquet may
    be compressed (`.gz`).

    Raises:
        OSError: The file cannot be opened.
        InputError: The content does not match the suffix.
        MissingExtraError: Parquet needs an extra that is not installed.
    """
    if path == "-":
        yield JsonLinesSource(sys.stdin.buffer, "standard input", None)
        return
    with Path(path).open("rb") as stream:
        yield source_of(stream, path, fstat(stream.fileno()).st_size or None)


def source_of(stream: IO[bytes], name: str, size: int | None) -> Source:
    """The rows of an open file, by the suffix of its name.

    Raises:
        InputError, MissingExtraError: As for `open_source`.
    """
    path, packed = Path(name), None
    if path.suffix.lower() == ".gz":
        path, packed = path.with_suffix(""), stream
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=stream, mode="rb"))
    kind = path.suffix.lower()
    if kind == ".parquet" and packed is None:
        return ParquetSource(stream, name)
    of = {".csv": CsvSource, ".tsv": CsvSource, ".json": JsonSource}.get(kind, JsonLinesSource)
    return of(stream, name, size, packed)


_FIELDS = ("query", "question", "user_input", "passages", "contexts", "text")
"""Fields by which a JSON object is recognised as one row instead of rows by id."""


OTHER_KINDS = {
    b"\x1f\x8b": "gzip; give a file whose name ends in .jsonl.gz",
    b"PK\x03\x04": "a spreadsheet; save it as CSV in UTF-8",
    b"\xd0\xcf\x11\xe0": "a spreadsheet; save it as CSV in UTF-8",
    b"PAR1": "Parquet; give a file whose name ends in .parquet",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
    b"[{": "one JSON list; give a file whose name ends in .json",
}
"""Magic bytes of other formats, with advice."""

SEVERAL_LINES = (
    "JSON objects over several lines; write each on one line, or all as one list in a file whose name ends in .json"
)


class JsonLinesSource:
    """One JSON object per line, UTF-8; blank lines are skipped but counted.

    Args:
        stream: The lines.
        name: What messages call it.
        size: The file's length in bytes, None where unknown.
        packed: The compressed file if `stream` decompresses it; progress is counted in its bytes.
    """

    def __init__(self, stream: IO[bytes], name: str, size: int | None, packed: IO[bytes] | None = None) -> None:
        self.stream = stream
        self.name = name
        self.size = size
        self._packed = packed

    def __iter__(self) -> Iterator[FileRow]:
        try:
            for number, line in enumerate(self._lines(), 1):
                position = 0 if self.size is None else (self._packed or self.stream).tell()
                if (record := read_line(number, line, position)) is not None:
                    yield record
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name} is no whole gzip file: {error}; pack it again") from None

    def _lines(self) -> Iterator[bytes | None]:
        """Every line, None for one that is too long.

        Raises:
            InputError: The first line shows another format.
        """
        begun = False
        while line := self.stream.readline(MAX_LINE + 1):
            if not begun and (text := line_text(line)):
                begun = True
                if (kind := _other_kind(text)) is not None:
                    raise InputError(f"{self.name}: this looks like {kind}")
            yield None if len(line) > MAX_LINE else line
            while len(line) > MAX_LINE and not line.endswith(b"\n"):  # skip the rest of a line that is too long
                line = self.stream.readline(MAX_LINE + 1)


def _other_kind(line: bytes) -> str | None:
    """The format that a first line shows, with advice; None for JSON Lines."""
    if line == b"[":
        return OTHER_KINDS[b"[{"]
    if line.startswith(b"{"):
        return SEVERAL_LINES if line.endswith((b"{", b",", b"[")) else None
    if looks_like_csv(line):
        return f"CSV, its first line is {clip(line.decode('utf-8', 'replace'))}; give a file whose name ends in .csv"
    return next((kind for begins, kind in OTHER_KINDS.items() if line.startswith(begins)), None)


class CsvSource(JsonLinesSource):
    """A CSV table with a heading (`csv_lines`)."""

    def _lines(self) -> Iterator[bytes | None]:
        return csv_lines(self.stream, self.name, MAX_LINE)


class JsonSource(JsonLinesSource):
    """One JSON list of rows, an object of rows by id, or one row; it is read whole."""

    def _lines(self) -> Iterator[bytes | None]:
        data = self.stream.read(MAX_JSON + 1)
        if len(data) > MAX_JSON:
            raise InputError(f"{self.name} is longer than {MAX_JSON // 2**20} MiB; save it as JSON Lines")
        try:
            whole = parse_json(data)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.name} is no JSON: {error}") from None
        if isinstance(whole, Mapping) and any(isinstance(whole.get(name), (str, list)) for name in _FIELDS):
            whole = [whole]
        elif isinstance(whole, Mapping):
            whole = [{"id": key, **row} if isinstance(row, Mapping) else row for key, row in whole.items()]
        if not isinstance(whole, list):
            raise InputError(f"{self.name} must hold a list or an object of rows, got {clip(whole)}")
        yield from map(json_line, whole)


class ParquetSource:
    """The rows of a Parquet file, read in small batches."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        parquet = require("pyarrow.parquet", "reading Parquet files")
        try:
            self.file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=2**20)  # else it loads a whole group
        except (OSError, ValueError) as error:
            raise InputError(f"{name} is no Parquet file: {error}") from None
        self.name = name
        self.size: int | None = self.file.metadata.num_rows or None

    def __iter__(self) -> Iterator[FileRow]:
        number = 0
        try:
            for batch in self.file.iter_batches(batch_size=32, use_threads=False):
                for fields in batch.to_pylist():
                    number += 1
                    yield FileRow(number, _json_ready(fields), None, number)
        except (OSError, ValueError) as error:  # damaged, or a value out of Python's range
            raise InputError(f"{self.name} cannot be read past row {number}: {error}") from None


def _json_ready(value: Any) -> Any:
    """A Parquet value as JSON: times as ISO text, NaN as null, bytes as hex."""
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
