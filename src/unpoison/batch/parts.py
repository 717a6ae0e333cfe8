"""Parts of a question file: their rows, the work on them, and their results on disk.

A part is sent to a process as lines of JSON, and so is its result. Finished parts stay on disk, so that an interrupted
batch resumes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from typing import Self

from unpoison import __version__
from unpoison.batch.screener import BatchScreener, RowResults
from unpoison.core.registry import own_code
from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow, Source, json_line
from unpoison.io.rows import with_results

__all__ = ["MAX_ROWS", "Finished", "Part", "PartWork", "Shards", "cut"]

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


@dataclass(frozen=True, slots=True)
class Finished:
    """The output rows of one part.

    Attributes:
        rows: Number of rows.
        failures: Line or row numbers of failed rows, each with its error.
        transient: Number of failures that may succeed later.
        lines: The rows as JSON Lines.
    """

    rows: int
    failures: tuple[tuple[int, str], ...]
    transient: int
    lines: bytes

    def to_bytes(self) -> bytes:
        """The form for processes and shards: a heading, then the lines."""
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
    """The work of every engine: screens the rows of a part.

    Attributes:
        screener: Screens each row.
    """

    screener: BatchScreener

    @property
    def purpose(self) -> str:
        """Everything that determines the output of a row, as text."""
        it = self.screener
        code = own_code(it.defense)
        settings: list[object] = [__version__, it.defense, it.encoder, it.generator, it.nli]
        if it.sources is not None:
            settings += [it.sources, it.learn, sha256(Path(it.sources).read_bytes()).hexdigest()]
        return json.dumps([*settings, code] if code else settings)

    def per_worker(self, workers: int) -> PartWork:
        """The same work for each of several workers, which share the bound on model calls."""
        screener = self.screener
        return replace(self, screener=replace(screener, in_flight=max(1, screener.in_flight // workers)))

    def __call__(self, part: Part) -> bytes:
        """Screen the rows of a part.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: The defense cannot be made; no row is to blame.
        """
        lines, failures, transient = list[bytes](), list[tuple[int, str]](), 0
        for record in part.rows():
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
        except (TypeError, ValueError, RecursionError) as error:  # a third party's defense, or a deeply nested row
            outcome = self.screener.failure(f"the result cannot be written as JSON: {error}")
            return json_line(with_results(line, **outcome.results)), outcome


SUFFIX = ".part"


class Shards:
    """The finished parts of one output, a file each, named by a hash of the rows and the work.

    Files are written atomically, and several processes may share the folder.

    Args:
        folder: Created if it does not exist.

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
        """A finished part, None if it is missing or damaged."""
        try:
            return Finished.from_bytes(self._path(key).read_bytes())
        except (FileNotFoundError, InputError):
            return None

    def draft(self, name: str) -> Path:
        """A temporary path for this process."""
        return self.folder / f"{name}.{os.getpid()}.draft"

    def clear(self) -> None:
        """Delete the files of the batch, and the folder if nothing else is in it."""
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
