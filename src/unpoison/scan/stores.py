"""Stores of documents, named by strings: rows in a file, files in a folder, vector stores.

documents.jsonl                          rows of a file, or
wiki/                                    files of a folder
chroma:FOLDER#COLLECTION, ...            a vector store, in a form of `retrieval.store.STORES`
langchain:MODULE:STORE                   a LangChain vector store of your Python code; it cannot be scanned
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import json_line, read_line
from unpoison.retrieval.langchain import LangChainStore
from unpoison.retrieval.store import Store, VectorStore, is_store, open_vector_store, store_forms
from unpoison.scan.documents import Document, content_name, documents_of
from unpoison.utils.files import write_file

__all__ = ["FolderStore", "RowsStore", "Store", "VectorStore", "open_store", "refuse_unknown_prefix"]


LANGCHAIN = "langchain:"

_PREFIX = re.compile(r"[a-z][a-z0-9+.-]{1,31}:")


class Line(NamedTuple):
    """A line of a JSON Lines file.

    Attributes:
        name: The name of its document in a scan; None if it has none.
        fields: The fields of the row; empty if it is unreadable.
        raw: The line with its line end.
        alias: Its name when other rows have its id, under which it is found when they have gone, too.
    """

    name: str | None
    fields: Mapping[str, Any]
    raw: bytes
    alias: str = ""


class RowsStore(Store):
    """A JSON Lines file; moved rows keep all fields, and unreadable rows stay.

    Changes replace the file atomically, and no other row changes. Rows with the same id have names of their own, as
    in a scan (`documents_of`).
    """

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        wanted = set(ids)
        return {name: line.fields for line in self.lines() for name in (line.name, line.alias) if name in wanted}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        added = (json_line({"id": name, **row}) for name, row in raw.items())
        self.write(self.path, [*self.lines_without(raw), *added])

    def take(self, ids: Collection[str]) -> None:
        self.write(self.path, self.lines_without(ids))

    def lines_without(self, ids: Collection[str]) -> list[bytes]:
        """The lines of the file after removing these rows."""
        return [line.raw for line in self.lines() if line.name not in ids and line.alias not in ids]

    def lines(self) -> Iterator[Line]:
        """All lines, with names as in a scan; none if the file is missing."""
        if not self.path.exists():
            return
        rows = list[tuple[bytes, Mapping[str, Any], Document | None]]()
        with self.path.open("rb") as stream:
            for line in stream:
                fields, _ = read_line(line) or ({}, None)
                try:
                    document = Document.of_row(fields)
                except InputError:
                    document = None
                whole = line if line.endswith(b"\n") else line + b"\n"
                rows.append((whole, {} if document is None else fields, document))
        named = documents_of(document for _, _, document in rows if document is not None)
        for whole, fields, document in rows:
            if document is None:
                yield Line(None, fields, whole)
            else:
                name = next(named).id
                yield Line(name, fields, whole, content_name(document) if name == document.id else "")

    def write(self, path: Path, lines: list[bytes]) -> None:
        """Write a file of lines atomically, with the mode of the store's file."""
        write_file(path, lines, mode=self.path.stat().st_mode & 0o777 if self.path.exists() else 0o600)


class FolderStore(Store):
    """The files below a folder, each by its path in it."""

    def __init__(self, path: Path, *, new: bool = False) -> None:
        if new:
            path.mkdir(parents=True, exist_ok=True)
        self.path, self.name = path, f"{path}/"

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
                raise OptionError(f"{self.name} is a folder, and {clip(name)} is no file; use a store of the same kind")
            path = self._path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, [bytes.fromhex(row["bytes"])], time=row["mtime"])

    def take(self, ids: Collection[str]) -> None:
        for name in ids:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        path = self.path / name
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise InputError(f"{clip(name)} is outside {self.name}; only files below the folder are moved")
        return path


def refuse_unknown_prefix(source: str) -> None:
    """Refuse a string with an unknown store prefix; the message lists the known forms.

    Raises:
        OptionError: The prefix is unknown, and there is no such file or folder.
    """
    host, colon, port = source.partition(":")
    if colon and host and port.partition("/")[0].isdigit() and not Path(source).exists():
        raise OptionError(f"{source} looks like an address; write http://{source}")
    prefix = _PREFIX.match(source)
    if prefix and not source.startswith(LANGCHAIN) and not is_store(source) and not Path(source).exists():
        raise OptionError(f"unknown store prefix {prefix[0]}; name a file, a folder, or one of {store_forms()}")


def open_store(source: str, *, new: bool = False) -> Store:
    """The store of a string.

    Args:
        source: As above.
        new: Whether to create it if missing.

    Raises:
        OptionError: Not the string of a store.
        InputError: The store does not exist.
        MissingExtraError: Its library is not installed.
        StoreError: It cannot be reached.
    """
    if is_store(source):
        return open_vector_store(source, new=new)
    if source.startswith(LANGCHAIN):
        return LangChainStore.of_name(source.removeprefix(LANGCHAIN))
    path = Path(source)
    if not path.suffix:  # otherwise a folder of this name would be created
        refuse_unknown_prefix(source)
    if path.is_dir() or (new and not path.suffix and not path.exists()):
        return FolderStore(path, new=new)
    if path.suffix not in (".jsonl", ".ndjson", ".json"):
        refuse_unknown_prefix(source)
        raise OptionError(f"documents cannot be moved in {source!r}; name a .jsonl file, a folder or {store_forms()}")
    if not new and not path.exists():
        raise InputError(f"there is no file {source}; name the file with the documents")
    return RowsStore(path)
