"""A question file in parts: some rows as they stand in the file, what is done to them, and the results on the disk.

Parts are read where they are worked on, in whichever process; what is left of one is a few lines of JSON. Finished
parts stay on the disk, so that a batch that was killed goes on where it was.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Self

from unpoison import __version__
from unpoison.batch.screener import RowResults, Screener
from unpoison.core.registry import own_code
from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import FileRow, Source, json_line, line_text, read_line
from unpoison.io.files import JsonLinesSource, ParquetSource, arrow_rows
from unpoison.io.rows import with_results
from unpoison.utils.extras import require

__all__ = ["MAX_ROWS", "Finished", "Part", "PartWork", "Shards", "cut"]

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


@dataclass(frozen=True, slots=True)
class Finished:
    """The output rows of one part.

    Attributes:
        rows: How many.
        failures: Line or row numbers of those that failed, each with its error.
        transient: How many of them are not to blame themselves.
        lines: The rows as JSON Lines.
    """

    rows: int
    failures: tuple[tuple[int, str], ...]
    transient: int
    lines: bytes

    def to_bytes(self) -> bytes:
        """What a process hands over and a shard holds: a heading, and the lines."""
        heading = {"rows": self.rows, "failures": self.failures, "transient": self.transient, "bytes": len(self.lines)}
        return json.dumps(heading).encode() + b"\n" + self.lines

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            InputError: Something else, or not all of it.
        """
        heading, _, lines = content.partition(b"\n")
        try:
            values = json.loads(heading)
            failures = tuple((int(number), str(error)) for number, error in values["failures"])
            finished = cls(int(values["rows"]), failures, int(values["transient"]), lines)
            whole = values["bytes"] == len(lines)
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise InputError("not a finished part of a batch; delete it")
        return finished


@dataclass(frozen=True, slots=True)
class PartWork:
    """What every engine does with a part: screen its rows.

    Attributes:
        screener: What is done to each row.
    """

    screener: Screener

    @property
    def purpose(self) -> str:
        """All that decides the output of a given row, as text."""
        it = self.screener
        code = own_code(it.defense)
        settings: list[object] = [__version__, it.defense, it.encoder, it.generator, it.nli, it.injection_model]
        if it.sources is not None:
            settings += [it.sources, it.learn, sha256(Path(it.sources).read_bytes()).hexdigest()]
        return json.dumps([*settings, code] if code else settings)

    def per_worker(self, workers: int) -> PartWork:
        """The same work for each of several workers, which share the bound on model calls."""
        screener = self.screener
        return replace(self, screener=replace(screener, in_flight=max(1, screener.in_flight // workers)))

    def __call__(self, part: Part) -> bytes:
        """Read a part and do it.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: The defense cannot be made; no row is to blame.
        """
        lines, failures, transient = list[bytes](), list[tuple[int, str]](), 0
        for record in part.records():
            line, outcome = self._process_row(record)
            lines.append(line)
            if outcome.error is not None:
                failures.append((record.number, outcome.error))
                transient += outcome.transient
        return Finished(len(lines), tuple(failures), transient, b"".join(lines)).to_bytes()

    def _process_row(self, record: FileRow) -> tuple[bytes, RowResults]:
        line = {"line": record.number}
        if record.error is not None:
            outcome = self.screener.failure(record.error)
            return json_line(with_results(line, **outcome.results)), outcome
        outcome = self.screener.outcome(record.fields)
        try:
            return json_line(with_results(record.fields or line, **outcome.results)), outcome
        except (TypeError, ValueError, RecursionError) as error:  # a defense of somebody else's, or a bottomless row
            outcome = self.screener.failure(f"the result cannot be written as JSON: {error}")
            return json_line(with_results(line, **outcome.results)), outcome


SUFFIX = ".part"


class Shards:
    """The finished parts of one output, a file for each, named by a hash of its rows and of what was done to them.

    A file is there whole or not at all, also after a power failure. Several processes may write the same folder.

    Args:
        folder: Made where there is none.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder

    def save(self, key: str, content: bytes) -> None:
        draft = self.draft(key)
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path(key))

    def read(self, key: str) -> Finished | None:
        """A finished part, None where there is none or the file is damaged."""
        try:
            return Finished.from_bytes(self._path(key).read_bytes())
        except (FileNotFoundError, InputError):
            return None

    def draft(self, name: str) -> Path:
        """Where this process may write a file that is to be renamed."""
        return self.folder / f"{name}.{os.getpid()}.draft"

    def clear(self) -> None:
        """Delete what a batch left here; other people's files stay, and so does the folder that holds them."""
        for path in self.folder.iterdir():
            if path.suffix in (SUFFIX, ".draft"):
                path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Delete the folder if it is empty."""
        try:
            self.folder.rmdir()
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"
