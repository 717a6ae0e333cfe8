"""Parts of a question file, sent to processes as lines of JSON, and their results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from unpoison.io.file_rows import FileRow, Source

__all__ = ["MAX_ROWS", "Finished", "Part", "cut"]

MAX_ROWS = 64
"""Rows of one part."""

MAX_BYTES = 8 * 2**20
"""Bytes after which a part ends."""


@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive rows of a file.

    Attributes:
        lines: A row each, as JSON: its number, its fields, and why it could not be read.
        position: How far the file is read at its end, in the unit of `Source.size`.
    """

    lines: tuple[bytes, ...]
    position: int

    def rows(self) -> Iterator[FileRow]:
        """The rows, as reading the whole file would give them."""
        for line in self.lines:
            number, fields, error = json.loads(line)
            yield FileRow(number, fields, error, self.position)

    def key(self, purpose: str) -> str:
        """A hash of the part and of the work on it."""
        return blake2b(b"\n".join((purpose.encode(), *self.lines)), digest_size=16).hexdigest()

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(map(len, self.lines))


def cut(source: Source, *, most: int = MAX_ROWS, limit: int | None = None) -> Iterator[Part]:
    """Cut a source into parts of at most `most` rows, and of at most `limit` rows together.

    The cuts depend on the file and these two numbers only; one part is in memory at a time.

    Raises:
        InputError: The file is damaged, or not what its name says.
    """
    lines, size, position = list[bytes](), 0, 0
    for row in islice(source, limit):
        lines.append(_line(row))
        size, position = size + len(lines[-1]), row.position
        if len(lines) == most or size >= MAX_BYTES:
            yield Part(tuple(lines), position)
            lines, size = [], 0
    if lines:
        yield Part(tuple(lines), position)


def _line(row: FileRow) -> bytes:
    try:
        return json.dumps((row.number, row.fields, row.error)).encode()
    except RecursionError:
        return json.dumps((row.number, {}, "no usable JSON: nested too deeply")).encode()


class Finished(NamedTuple):
    """The output rows of one part.

    Attributes:
        lines: The rows as JSON Lines.
        rows: Number of rows.
        failures: Line or row numbers of failed rows, each with its error.
        transient: Number of failures that may succeed later.
    """

    lines: bytes
    rows: int
    failures: Sequence[tuple[int, str]]
    transient: int
