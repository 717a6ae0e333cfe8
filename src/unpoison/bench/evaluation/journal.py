"""Append-only JSON Lines: one flushed line for each finished piece of work; an incomplete last line is ignored."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = ["Journal", "read_rows", "write_json", "write_rows"]


class Journal:
    """Appends rows to a file, each visible to other processes when `append` returns.

    Args:
        path: Made, with its folder, where there is none. What an interrupted writer left behind the last complete
            line is cut off.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("ab+")
        self._truncate_partial_line()

    def append(self, row: Mapping[str, Any]) -> None:
        self._file.write(_line(row))
        self._file.flush()

    def _truncate_partial_line(self) -> None:
        end = self._file.seek(0, os.SEEK_END)
        start = end
        while start > 0:
            step = min(start, 1 << 16)
            self._file.seek(start - step)
            newline = self._file.read(step).rfind(b"\n")
            start -= step
            if newline >= 0:
                self._file.truncate(start + newline + 1)
                break
        else:
            self._file.truncate(0)
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The complete rows of a file, none where there is no file; what is no JSON object is passed over."""
    if not path.is_file():
        return []
    rows = []
    for line in path.read_bytes().split(b"\n")[:-1]:  # what follows the last newline is torn
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a whole file, or nothing of it."""
    _replace(path, b"".join(map(_line, rows)))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write one indented JSON object, or nothing of it."""
    _replace(path, (json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode())


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row, ensure_ascii=True) + "\n").encode()  # escaped, so that lone surrogates survive


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    draft.write_bytes(content)
    draft.replace(path)
