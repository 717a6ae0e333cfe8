"""A question file in parts: some rows as they stand in the file, read where they are worked on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from unpoison.errors import OptionError, clip
from unpoison.io.file_rows import FileRow, Source, line_text, read_line
from unpoison.io.files import JsonLinesSource
from unpoison.io.parquet import ParquetSource, arrow_rows
from unpoison.utils.extras import require

__all__ = ["MAX_ROWS", "Part", "cut"]

MAX_ROWS = 64
"""Rows of one part."""

MAX_BYTES = 8 * 2**20
"""A part ends after so many bytes, however few rows they are."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of a file.

    Attributes:
        first: The number of the first line, or row, from 1.
        lines: The lines as they stand in the file, None for one that is too long; of Parquet one Arrow stream.
        arrow: Which of the two.
        rows: How many records it holds.
        position: How far the file is read at its end, in the unit of `Source.size`.
    """

    first: int
    lines: tuple[bytes | None, ...]
    arrow: bool
    rows: int
    position: int

    def records(self) -> Iterator[FileRow]:
        """The part's records, as reading the whole file would give them.

        Raises:
            InputError: A Parquet value that Python cannot hold.
        """
        if self.arrow:
            for number, fields in enumerate(arrow_rows(self.table()), self.first):
                yield FileRow(number, fields, None, number)
        else:
            for number, line in enumerate(self.lines, self.first):
                if (record := read_line(number, line)) is not None:
                    yield record

    def table(self) -> Any:
        """The rows as an Arrow table; of a Parquet file only."""
        arrow = require("pyarrow", "reading Parquet files")
        return arrow.ipc.open_stream(io.BytesIO(self.lines[0] or b"")).read_all()

    def key(self, purpose: str) -> str:
        """A hash of everything in it, and of what is to be done to it."""
        digest = blake2b(f"{self.first} {self.arrow} {len(purpose)} {purpose}".encode(), digest_size=16)
        for line in self.lines:
            digest.update(b"-" if line is None else b"%d " % len(line))
            digest.update(line or b"")
        return digest.hexdigest()

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(len(line or b"") for line in self.lines)


def cut(source: Source, *, most: int = MAX_ROWS, limit: int | None = None) -> Iterator[Part]:
    """Cut a source into parts of at most `most` rows, and of at most `limit` rows together.

    The cuts depend on the file and these two numbers only. One part is in memory at a time.

    Raises:
        OptionError: The source is neither JSON Lines nor Parquet.
        InputError: The Parquet file is damaged.
    """
    if isinstance(source, JsonLinesSource):
        return _cut_lines(source, most, limit)
    if isinstance(source, ParquetSource):
        return _cut_table(source, most, limit)
    raise OptionError(f"{clip(source)} cannot be cut into parts; open a file with open_source")


def _cut_lines(source: JsonLinesSource, most: int, limit: int | None) -> Iterator[Part]:
    first, lines, rows, size, position, left = 1, list[bytes | None](), 0, 0, 0, limit
    for line, length in source.lines():
        lines.append(line)
        rows += line is None or bool(line_text(line))
        size += len(line or b"")
        position += length
        if rows in (most, left) or size >= MAX_BYTES:
            yield Part(first, tuple(lines), False, rows, position)
            left = None if left is None else left - rows
            if left == 0:
                return
            first, lines, rows, size = first + len(lines), [], 0, 0
    if lines:
        yield Part(first, tuple(lines), False, rows, position)


def _cut_table(source: ParquetSource, most: int, limit: int | None) -> Iterator[Part]:
    arrow = require("pyarrow", "reading Parquet files")
    first, held, rows, size, left = 1, list[Any](), 0, 0, limit

    def part() -> Part:
        stream = io.BytesIO()
        with arrow.ipc.new_stream(stream, held[0].schema) as writer:
            for batch in held:
                writer.write_batch(batch)
        return Part(first, (stream.getvalue(),), True, rows, first + rows - 1)

    for batch in source.batches():
        start = 0
        while start < batch.num_rows:
            room = most - rows if left is None else min(most, left) - rows
            piece = batch.slice(start, room)
            start += piece.num_rows
            held.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
            if rows in (most, left) or size >= MAX_BYTES:
                yield part()
                left = None if left is None else left - rows
                if left == 0:
                    return
                first, held, rows, size = first + rows, [], 0, 0
    if held:
        yield part()
