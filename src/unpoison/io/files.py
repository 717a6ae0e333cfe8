"""Reads untrusted question files as streams, one row in memory at a time."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime, time
from math import isfinite
from os import fstat
from pathlib import Path
from typing import IO, Any, cast

from unpoison.errors import InputError, clip
from unpoison.io.file_rows import (
    MAX_LINE,
    FileRow,
    Read,
    Source,
    as_row,
    count_values,
    csv_rows,
    line_text,
    looks_like_csv,
    parse_json,
    read_line,
)
from unpoison.utils.confined import Confined
from unpoison.utils.extras import require
from unpoison.utils.files import Closing

__all__ = ["CsvSource", "JsonLinesSource", "JsonSource", "ParquetSource", "json_rows", "open_source", "source_of"]

MAX_JSON, MAX_JSON_VALUES = 2**30, 100_000_000
"""Maximum bytes and values (`count_values`) of one JSON file, which is held in memory."""

MAX_UNPACKED, MAX_RATIO = 16 * 2**20, 100
"""Maximum bytes that a packed file may unpack to, or so many times its size, if that is more."""


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
    with Path(path).open("rb") as stream, ExitStack() as stack:
        source = source_of(stream, path, fstat(stream.fileno()).st_size or None)
        if isinstance(source, ParquetSource):
            stack.enter_context(source)
        yield source


def source_of(stream: IO[bytes], name: str, size: int | None) -> Source:
    """The rows of an open file, by the suffix of its name; a Parquet file is opened by its name again.

    Raises:
        InputError, MissingExtraError: As for `open_source`.
    """
    path, packed = Path(name), None
    if path.suffix.lower() == ".gz":
        path, packed = path.with_suffix(""), stream
        stream = cast(IO[bytes], _Unpacked(name, stream))
    kind = path.suffix.lower()
    if kind == ".parquet" and packed is None:
        return ParquetSource(name)
    of = {".csv": CsvSource, ".tsv": CsvSource, ".json": JsonSource}.get(kind, JsonLinesSource)
    return of(stream, name, size, packed)


STEP = 2**24
"""Bytes that are unpacked at a time."""


class _Unpacked(gzip.GzipFile):
    """A gzip file that unpacks to a bound."""

    def __init__(self, name: str, packed: IO[bytes]) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._name, self._packed = name, packed

    def read(self, size: int | None = -1) -> bytes:
        pieces, left = list[bytes](), sys.maxsize if size is None or size < 0 else size
        while piece := self._checked(super().read(min(left, STEP))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def readline(self, size: int | None = -1) -> bytes:
        return self._checked(super().readline(-1 if size is None else size))

    def _checked(self, data: bytes) -> bytes:
        if self.tell() > max(MAX_UNPACKED, MAX_RATIO * self._packed.tell()):
            raise InputError(expands(self._name))
        return data


def expands(name: str) -> str:
    """What is said of a file that unpacks to too much."""
    return f"{name} unpacks to more than {MAX_UNPACKED // 2**20} MiB and {MAX_RATIO} times its size; split it"


_FIELDS = ("query", "question", "user_input", "passages", "contexts", "text")
"""Fields by which a JSON object is recognised as one row instead of rows by id."""


OTHER_KINDS = {
    b"\x1f\x8b": "gzip; give a file whose name ends in .jsonl.gz",
    **dict.fromkeys((b"PK\x03\x04", b"\xd0\xcf\x11\xe0"), "a spreadsheet; save it as CSV in UTF-8"),
    b"PAR1": "Parquet; give a file whose name ends in .parquet",
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "UTF-16; save it as UTF-8"),
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
            for number, read in enumerate(self._rows(), 1):
                if read is not None:
                    position = 0 if self.size is None else (self._packed or self.stream).tell()
                    yield FileRow(number, *read, position)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{self.name} is no whole gzip file: {error}; pack it again") from None

    def _rows(self) -> Iterator[Read | None]:
        """Every row, None for a blank one."""
        return map(read_line, self._lines())

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
    """A CSV table with a heading (`csv_rows`)."""

    def _rows(self) -> Iterator[Read | None]:
        return csv_rows(self.stream, self.name, MAX_LINE)


class JsonSource(JsonLinesSource):
    """One file of JSON (`json_rows`); it is read whole."""

    def _rows(self) -> Iterator[Read | None]:
        return map(as_row, json_rows(self.stream, self.name)[1])


def json_rows(stream: IO[bytes], name: str) -> tuple[Any, list[Any]]:
    """The value in a file of JSON, and its rows: of one list, of an object of rows by id, or one row.

    Raises:
        InputError: It is too long, no JSON, or neither a list nor an object.
    """
    data = stream.read(MAX_JSON + 1)
    if len(data) > MAX_JSON:
        raise InputError(f"{name} is longer than {MAX_JSON // 2**20} MiB; save it as JSON Lines")
    if (count := count_values(data)) > MAX_JSON_VALUES:
        raise InputError(f"{name} has about {count:,} values, too many at once; save it as JSON Lines")
    try:
        whole = parse_json(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no JSON: {error}") from None
    if isinstance(whole, list):
        return whole, whole
    if not isinstance(whole, dict):
        raise InputError(f"{name} must hold a list or an object of rows, got {clip(whole)}")
    if any(isinstance(whole.get(field), (str, list)) for field in _FIELDS):
        return whole, [whole]
    return whole, [{"id": key, **row} if isinstance(row, dict) else row for key, row in whole.items()]


class ParquetSource(Closing):
    """The rows of a Parquet file, read in batches by a process with limits: a few kilobytes can hold terabytes."""

    def __init__(self, name: str) -> None:
        self._process = Confined(parquet_rows)
        self._replies = self._process.ask(str(Path(name).absolute()))
        self._most = max(MAX_UNPACKED, MAX_RATIO * Path(name).stat().st_size)
        self.name = name
        try:
            self.size: int | None = next(self._replies) or None
        except InputError as error:
            self.close()
            raise InputError(f"{name} is no Parquet file: {error}") from None

    def __iter__(self) -> Iterator[FileRow]:
        number = 0
        try:
            for rows in self._replies:
                if self._process.received > self._most:
                    raise InputError(expands("it"))
                for fields in rows:
                    number += 1
                    yield FileRow(number, fields, None, number)
        except InputError as error:
            raise InputError(f"{self.name} cannot be read past row {number}: {error}") from None
        finally:
            self.close()

    def close(self) -> None:
        """End the process."""
        self._replies.close()
        self._process.close()


BATCH_ROWS, BATCH_BYTES = 32, 2**22
"""Maximum rows of a batch, and what they may take together, if a row takes no more."""


def parquet_rows(path: str) -> Iterator[Any]:
    """In the process: the number of rows, and then lists of rows."""
    parquet = require("pyarrow.parquet", "reading Parquet files")
    try:
        file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20)  # else it loads a whole group
        rows = file.metadata.num_rows
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        most = min(max(BATCH_BYTES * rows // max(size, 1), 1), BATCH_ROWS)
        yield rows
        for batch in file.iter_batches(batch_size=most, use_threads=False):
            step = max(BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
            for start in range(0, batch.num_rows, step):
                yield [_json_ready(fields) for fields in batch.slice(start, step).to_pylist()]
    except MemoryError:
        raise
    except Exception as error:  # damaged, or a value out of Python's range
        raise InputError(str(error)) from None


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
