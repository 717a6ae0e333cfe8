"""Rows of a JSON Lines file, and files of a folder, as stores."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import json_line, read_line
from unpoison.scan.documents import Document, unique_name
from unpoison.scan.folders import folder_documents
from unpoison.scan.sources import Failure, read_documents
from unpoison.scan.stores import Store

__all__ = ["FolderStore", "RowsStore"]


class RowsStore(Store):
    """A JSON Lines file; rows that are moved keep all their fields, and rows that cannot be read stay where they are.

    Changes replace the file in one step. The second row of one id is NAME#2 as in a scan; when a row leaves the file,
    those that stay and were named so get that name as their id, so that no other row can come to be called by it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)

    def documents(self) -> Iterator[Document]:
        yield from read_documents(str(self.path), _ignore)

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        wanted = set(ids)
        return {name: row for name, row, *_ in self._rows() if name in wanted and row is not None}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        kept = [line for name, _, line, _ in self._rows() if name not in raw]
        self._replace([*kept, *(json_line({**row, "id": name}) for name, row in raw.items())])

    def take(self, ids: Collection[str]) -> None:
        gone = set(ids)
        self._replace(
            [
                json_line({**row, "id": name}) if renamed and row is not None else line
                for name, row, line, renamed in self._rows()
                if name not in gone
            ]
        )

    def _rows(self) -> Iterator[tuple[str | None, Mapping[str, Any] | None, bytes, bool]]:
        """Name, fields and line of every row, named as by a scan, and whether another row has the name it came with."""
        if not self.path.exists():
            return
        taken = dict[str, int]()
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                whole = line if line.endswith(b"\n") else line + b"\n"
                record = read_line(number, line)
                try:
                    document = None if record is None or record.error else Document.of(record.fields)
                except InputError:
                    document = None
                if document is None or record is None:
                    yield None, None, whole, False
                else:
                    name = unique_name(document, taken).id
                    yield name, record.fields, whole, name != document.id

    def _replace(self, lines: list[bytes]) -> None:
        draft = self.path.with_name(f".{self.path.name}.{uuid4().hex}.part")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        if self.path.exists():
            draft.chmod(self.path.stat().st_mode & 0o777)
        draft.replace(self.path)


class FolderStore(Store):
    """The files below a folder, each by its path in it."""

    def __init__(self, path: Path, *, new: bool = False) -> None:
        if new:
            path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.name = f"{path}/"

    def documents(self) -> Iterator[Document]:
        yield from folder_documents(self.path, _ignore)

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        rows = dict[str, Mapping[str, Any]]()
        for name in ids:
            path = self._path(name)
            if path.is_file() and not path.is_symlink():
                rows[name] = {"id": name, "bytes": path.read_bytes().hex(), "mtime": path.stat().st_mtime}
        return rows

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        for name, row in raw.items():
            if not isinstance(row.get("bytes"), str):
                raise OptionError(
                    f"{self.name} takes files, and {clip(name)} is no file; move it to a store of its kind"
                )
            path = self._path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
            with draft.open("xb") as file:
                file.write(bytes.fromhex(row["bytes"]))
                file.flush()
                os.fsync(file.fileno())  # the original is taken out next
            os.utime(draft, (row["mtime"], row["mtime"]))
            draft.replace(path)

    def take(self, ids: Collection[str]) -> None:
        for name in ids:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        path = (self.path / name).resolve()
        if not path.is_relative_to(self.path.resolve()):
            raise InputError(f"{clip(name)} lies outside of {self.name}; only files below the folder are moved")
        return path


def _ignore(failure: Failure) -> None:
    """What cannot be read stays where it is."""
