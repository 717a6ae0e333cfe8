"""Stores that are read whole and between which documents are moved: rows in a file, files in a folder, FAISS, Qdrant,
pgvector. A store is named by a string.

    documents.jsonl                          rows of a file, or
    wiki/                                    files of a folder
    faiss:INDEX,ROWS                         an index file, and a JSON Lines file with the text of each vector
    qdrant:http://localhost:6333#COLLECTION  a server (its key in QDRANT_API_KEY); or qdrant:FOLDER#COLLECTION
    postgresql://user@host/database#TABLE    a table with the columns id, text and embedding, and perhaps others
"""  # noqa: D205

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unpoison.errors import InputError, OptionError
from unpoison.scan.documents import Document

__all__ = ["Store", "is_store", "open_store"]


class Store(ABC):
    """One collection. Raw documents are what the store holds, as JSON has it, whatever it is; `id` names them.

    Attributes:
        name: What messages call it, without secrets.
    """

    name: str

    @abstractmethod
    def documents(self) -> Iterator[Document]:
        """Everything that it holds, with its vectors.

        Raises:
            StoreError: It cannot be reached, or went away meanwhile.
        """

    @abstractmethod
    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """The raw documents of these ids; ids that are not there are left out."""

    @abstractmethod
    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        """Write raw documents, each in the place of the one that has its id."""

    @abstractmethod
    def take(self, ids: Collection[str]) -> None:
        """Take documents out. Only `quarantine` calls it, when they are seen to be in another store."""

    def close(self) -> None:  # noqa: B027  most have nothing to close
        """Let go of connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


PREFIXES = ("faiss:", "qdrant:", "postgresql://", "postgres://")


def is_store(source: str) -> bool:
    """Whether a string names a vector store, not a file or folder."""
    return source.startswith(PREFIXES)


def open_store(source: str, *, new: bool = False) -> Store:
    """The store of a string.

    Args:
        source: As above.
        new: Whether it may be made if it is not there.

    Raises:
        OptionError: No store's string.
        InputError: There is no such store.
        MissingExtraError: Its library is not installed.
        StoreError: It cannot be reached.
    """
    if source.startswith("faiss:"):
        from unpoison.scan.store_faiss import FaissStore

        return FaissStore(*_parts(source, "faiss:", ",", "faiss:INDEX,ROWS"), new=new)
    if source.startswith("qdrant:"):
        from unpoison.scan.store_qdrant import QdrantStore

        return QdrantStore(*_parts(source, "qdrant:", "#", "qdrant:http://localhost:6333#COLLECTION"), new=new)
    if source.startswith(("postgresql://", "postgres://")):
        from unpoison.scan.store_pgvector import PgvectorStore

        return PgvectorStore(*_parts(source, "", "#", "postgresql://user@host/database#TABLE"), new=new)
    from unpoison.scan.store_files import FolderStore, RowsStore

    path = Path(source)
    if path.is_dir() or (new and not path.suffix and not path.exists()):
        return FolderStore(path, new=new)
    if path.suffix not in (".jsonl", ".ndjson", ".json"):
        raise OptionError(
            f"documents cannot be moved in {source!r}; name a .jsonl file, a folder, or a faiss:, qdrant: or "
            "postgresql:// store"
        )
    if not new and not path.exists():
        raise InputError(f"there is no {source}; name the file that holds the documents")
    return RowsStore(path)


def _parts(source: str, prefix: str, mark: str, form: str) -> tuple[str, str]:
    first, separator, second = source.removeprefix(prefix).rpartition(mark)
    if not separator or not first or not second:
        raise OptionError(f"a store of this kind is written as {form}; something is missing in it")
    return first, second
