"""The audit log: who was read, what was dropped, for which question; JSON Lines, rotating, for its owner alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from unpoison.io.file_rows import json_line
from unpoison.io.journal import is_last_line_ended, write_all
from unpoison.scan.audit_entry import entry
from unpoison.utils.checks import among, at_least
from unpoison.utils.locks import lock_file
from unpoison.utils.private import private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unpoison.types import Answer, Screening

__all__ = ["AuditLog", "parts_of"]

MAX_PARTS = 1000
"""Parts of a log that are looked for."""


class AuditLog:
    """Appends one line for every screening or answer.

        with AuditLog("audit.jsonl") as log:
            log.record(Guard().screen(query, passages))

    A line is written in one step, so threads and processes may share a file. One that a full disk or a killed process
    has cut is ended by the next, and the audit counts it among what it cannot read. A full file becomes NAME.1, which
    becomes NAME.2, and so on; the oldest is deleted. Files are made with mode 600. Nothing is flushed by force.

    Args:
        path: The file; what is in it stays.
        texts: `hash` writes keyed hashes in place of questions, texts, reasons and answers; ids, sources and authors
            are written as they are. `keep` writes the texts. Hashes of several machines agree where these share
            UNPOISON_FENCE_KEY.
        size: Bytes of one file.
        files: How many there are at most, the current one included; so the log takes at most size * files.

    Raises:
        OptionError: An option out of its range.
        OSError: The file cannot be written.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        texts: Literal["hash", "keep"] = "hash",
        size: int = 64 * 2**20,
        files: int = 8,
    ) -> None:
        self.path = Path(path)
        self.texts = among("texts", texts, ("hash", "keep"))
        self.size = at_least("size", size, 1)
        self.files = at_least("files", files, 1, MAX_PARTS)
        self._lock = Lock()
        self._open()

    def record(
        self,
        result: Screening | Answer,
        *,
        time: datetime | None = None,
        action: str | None = None,
        request: Mapping[str, str | None] | None = None,
    ) -> None:
        """Append a line; see `audit_entry.entry`.

        Raises:
            OSError: It could not be written.
        """
        line = json_line(entry(result, texts=self.texts == "keep", time=time, action=action, request=request))
        with self._lock:
            self._current()
            if os.fstat(self._file).st_size and os.fstat(self._file).st_size + len(line) > self.size:
                self._rotate(len(line))
            # A torn line cannot be cut off here, for another process may have written since: it is ended.
            write_all(self._file, line if is_last_line_ended(self._file) else b"\n" + line)

    def close(self) -> None:
        """Close the file; a later `record` would fail."""
        with self._lock:
            os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        private(self.path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def _current(self) -> None:
        """Follow the name: another process may have rotated the file, or an operator moved it away."""
        own = os.fstat(self._file)
        with suppress(FileNotFoundError):
            there = self.path.stat()
            if (there.st_ino, there.st_dev) == (own.st_ino, own.st_dev):
                return
        old = self._file
        self._open()
        os.close(old)

    def _rotate(self, length: int) -> None:
        """Make room for a line; of several processes the first does it, and the others go on in the new file."""
        with _alone(self.path.with_name(f"{self.path.name}.lock")):
            self._current()
            if os.fstat(self._file).st_size + length <= self.size:
                return
            for number in range(self.files - 1, 0, -1):
                with suppress(FileNotFoundError):
                    os.replace(self._part(number - 1), self._part(number))
            if self.files == 1:
                self.path.unlink(missing_ok=True)
            self._current()

    def _part(self, number: int) -> Path:
        return self.path if number == 0 else self.path.with_name(f"{self.path.name}.{number}")


def parts_of(path: str | PathLike[str]) -> list[Path]:
    """The files of a rotated log, the oldest first: NAME.2, NAME.1, NAME."""
    own = Path(path)
    older = (own.with_name(f"{own.name}.{number}") for number in range(MAX_PARTS, 0, -1))
    return [*(part for part in older if part.is_file()), own]


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock between processes, where the system has one."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        lock_file(file, wait=True)
        yield
    finally:
        os.close(file)
