"""Writes JSON Lines: output files, which get their name when they are whole, and journals that survive a crash.

    with Journal(path) as journal:
        journal.append({"question": "q1", "answer": "blue"})
    rows = read_rows(path)

Every append to a journal writes whole lines. A partial last line is skipped by readers and removed by the next writer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import MAX_LINE, json_line
from unpoison.utils.files import Closing, lock_file, named_errors, private, write_file

__all__ = [
    "Journal", "Writer", "check_output", "check_rows_name", "check_writable", "each_row", "is_last_line_ended",
    "read_lines", "read_rows", "write_all", "write_json", "write_rows",
]  # fmt: skip

OTHERS = (".parquet", ".csv", ".tsv", ".xlsx", ".html", ".md", ".txt", ".pdf")
"""Suffixes of other formats."""


def check_output(output: Path, source: str) -> None:
    """Check that a file can be written and is not the input.

    Raises:
        OptionError: It is the input.
        OSError: It cannot be written.
    """
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise OptionError(f"{output} is the input; write to another file")
    check_writable(output)


def check_writable(output: Path) -> None:
    """Check that a file can be written, without changing or creating it.

    Raises:
        OSError: It cannot be written.
    """
    try:
        output.open("xb").close()
    except FileExistsError:
        if output.is_dir() or output.is_file():  # opening and closing a pipe would send EOF to its reader
            output.open("ab").close()
    else:
        output.unlink()


def check_rows_name(output: Path) -> None:
    """Check that the suffix is not that of another format.

    Raises:
        OptionError: It does.
    """
    if output.suffix.lower() in OTHERS:
        raise OptionError(f"{output}: rows are written as JSON Lines; name the file {output.stem}.jsonl")


class Writer:
    """Writes JSON Lines to a file, or to standard output, or nowhere; flushed after every row.

    The file is renamed when it is complete; after Ctrl-C the partial output stays as NAME.part.

    Attributes:
        active: Whether it writes anywhere.
    """

    def __init__(self, output: Path | None, source: str, *, to_stdout: bool) -> None:
        if output is not None:
            check_rows_name(output)
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
        broken_off = kind is not None and (not issubclass(kind, Exception) or issubclass(kind, OSError))
        if self._draft is not None and self._output is not None and self._draft != self._output and not broken_off:
            os.replace(self._draft, self._output)

    def write(self, record: Mapping[str, Any]) -> None:
        if self.active:
            stream = sys.stdout.buffer if self._file is None else self._file
            # A terminal would interpret control and bidirectional characters; in ASCII they are escaped.
            with named_errors(self._draft) if self._draft is not None else nullcontext():
                stream.write(json_line(record, plain=self._file is None and sys.stdout.isatty()))
                stream.flush()


class Journal(Closing):
    """Appends rows to a file; other processes see them when `append` returns. Not for several threads at once.

    Args:
        path: Created with its folder if missing. A partial last line is removed.
        private_file: Create the file with mode 600.
        exclusive: Lock the file for this process.
        default: For values that JSON does not know, as `json.dumps` takes it.
        check: Called after locking and before any change; it may raise.

    Raises:
        InputError: Another process has the file.
        OSError: It cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        private_file: bool = False,
        exclusive: bool = False,
        default: Callable[[Any], Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._default, self._fresh = path, default, not path.exists()
        if private_file:
            private(path)
        self._file = path.open("ab+", buffering=0)
        try:
            if exclusive and not lock_file(self._file.fileno()):
                raise InputError(f"another process writes {clip(str(path), 200)}; wait for it, or end it first")
            check()
            self._cut_torn_line()
        except BaseException:
            self._file.close()
            raise

    def append(self, *rows: Mapping[str, Any], sync: bool = False) -> None:
        """Append rows atomically.

        Args:
            rows: The rows.
            sync: Flush them to disk, so that they survive a power failure.

        Raises:
            OSError: They could not be written whole.
        """
        content, start = b"".join(_line(row, self._default) for row in rows), self._file.seek(0, os.SEEK_END)
        try:
            write_all(self._file.fileno(), content)
            if sync:
                os.fsync(self._file.fileno())
                if self._fresh:
                    _sync_folder(self._path.parent)
                    self._fresh = False
        except OSError as error:
            self._file.truncate(start)  # else the next line would be appended to a partial one
            error.filename = str(self._path)
            raise

    def close(self) -> None:
        self._file.close()

    def _cut_torn_line(self) -> None:
        end = self._file.seek(0, os.SEEK_END)
        if is_last_line_ended(self._file.fileno()):
            return
        while end:
            begin = max(0, end - 65_536)
            self._file.seek(begin)
            newline = self._file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                end = begin + newline + 1
                break
            end = begin
        self._file.truncate(end)


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and bytes of every complete line. A line of more than 256 MiB comes in pieces.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), 1):
            if not line.endswith(b"\n") and len(line) < MAX_LINE:
                return  # torn
            yield number, line


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; invalid lines are skipped, and a missing file has none."""
    return list(each_row(path))


def each_row(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of `read_rows`, one in memory at a time."""
    for _, line in read_lines(path) if path.is_file() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file atomically."""
    _replace(path, b"".join(map(_line, rows)))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write one indented JSON object atomically."""
    _replace(path, (json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode())


def is_last_line_ended(descriptor: int) -> bool:
    """Whether an open file is empty or ends with a newline."""
    if os.lseek(descriptor, 0, os.SEEK_END) == 0:
        return True
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) == b"\n"


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of the content, also after partial writes.

    Raises:
        OSError: The write failed, for example because the disk is full.
    """
    while content:
        content = content[os.write(descriptor, content) :]


def _line(row: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> bytes:
    # Escaped, so that lone surrogates survive.
    return (json.dumps(row, ensure_ascii=True, default=default) + "\n").encode()


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, [content])


def _sync_folder(folder: Path) -> None:
    """Flush the folder, and so the file's name, to disk."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
