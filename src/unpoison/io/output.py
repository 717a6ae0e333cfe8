"""Writes JSON Lines to files atomically, with early checks of the path."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from unpoison.errors import OptionError
from unpoison.io.file_rows import json_line

__all__ = ["Writer", "check_output", "check_rows_name", "check_writable", "not_the_input"]

OTHERS = (".parquet", ".csv", ".tsv", ".xlsx", ".html", ".md", ".txt", ".pdf")
"""Suffixes of other formats."""


def check_output(output: Path, source: str) -> None:
    """Check that a file can be written and is not the input.

    Raises:
        OptionError: It is the input.
        OSError: It cannot be written.
    """
    not_the_input(output, source)
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


def not_the_input(output: Path, source: str) -> None:
    """Check that a file is not the input.

    Raises:
        OptionError: It is.
    """
    if output.exists() and Path(source).exists() and output.samefile(source):
        raise OptionError(f"{output} is the input; write to another file")


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
        broken_off = kind is not None and not issubclass(kind, Exception)
        if self._draft is not None and self._output is not None and self._draft != self._output and not broken_off:
            os.replace(self._draft, self._output)

    def write(self, record: Mapping[str, Any]) -> None:
        if self.active:
            stream = sys.stdout.buffer if self._file is None else self._file
            # A terminal would interpret control and bidirectional characters; in ASCII they are escaped.
            stream.write(json_line(record, plain=self._file is None and sys.stdout.isatty()))
            stream.flush()
