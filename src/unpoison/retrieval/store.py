"""The interface of document stores for `scan`, `quarantine` and the red team, and a retriever over any vector store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, OptionError, StoreError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import BATCH, VectorRetriever, check_encoder, vectors_of
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.files import Closing
from unpoison.utils.processes import CopyableLock

__all__ = [
    "STORES", "TEXT_FIELDS", "Store", "StoreRetriever", "VectorStore", "is_store", "open_vector_store", "refuse",
    "store_forms", "textless", "unreachable",
]  # fmt: skip

STORES = {
    "chroma:FOLDER-OR-URL#COLLECTION": "chroma:ChromaStore",
    "qdrant:FOLDER-OR-URL#COLLECTION": "qdrant:QdrantStore",
    "postgresql://user@host/database#TABLE": "pgvector:PgvectorStore",
    "postgres://user@host/database#TABLE": "pgvector:PgvectorStore",
}
"""The vector stores: the form of the string that names one -> its module in this folder and its class."""

TEXT_FIELDS = ("text", "content", "page_content", "document")
"""Names of the text field, the first one present; frameworks keep other fields in `metadata`."""


class Store(Closing, ABC):
    """One collection. Raw documents are JSON values with all fields of the store; `id` names them.

    Attributes:
        name: Its name in messages, without secrets.
    """

    name: str

    @abstractmethod
    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """The raw documents of these ids; unknown ids are ignored."""

    @abstractmethod
    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        """Write raw documents; each replaces the one with its id."""

    @abstractmethod
    def take(self, ids: Collection[str]) -> None:
        """Remove documents. `quarantine` calls it only after they were read back from another store."""

    def shares_with(self, other: Store) -> bool:
        """Whether both stores may share documents, so that nothing can be moved between them."""
        return self.name == other.name


class VectorStore(Store):
    """A store with a vector for each document, which can be iterated, searched and changed."""

    @abstractmethod
    def rows(self) -> Iterator[Mapping[str, Any]]:
        """All documents as fields: `text`, `id`, `embedding`, and the other fields of the store.

        Raises:
            InputError: A document without a text.
            StoreError: It cannot be reached, or became unavailable.
        """

    @abstractmethod
    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        """The nearest documents by the store's own measure, best first: the fields of `rows`, and `score`.

        Args:
            vector: Shape (d,), with the store's dimension.
            count: Maximum number of documents.

        Returns:
            A similarity where the store compares by cosine or product, a negated distance where by distance; higher is
            better.

        Raises:
            InputError: Another dimension, or a document without a text.
            StoreError: It cannot be reached.
        """

    @abstractmethod
    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Convert a document from elsewhere for `put`.

        Args:
            fields: `id`, `text`, `embedding`, and perhaps `title`, `source` and `metadata`; what the store has no place
                for is left out.
        """


def textless(name: str, document: object) -> InputError:
    """The error for a document without a text."""
    return InputError(f"the document {clip(document)} of {name} has no text; fill it, or remove it")


def unreachable(name: str, error: Exception, documents: int = 0) -> StoreError:
    """The error for an unavailable server, at the start or after some documents were read."""
    if documents:
        return StoreError(
            f"{name} became unavailable after {documents:,} documents ({_line(error)}); nothing was changed: repeat "
            "the command"
        )
    return StoreError(f"{name} cannot be reached ({_line(error)}); check that it runs and that you have access")


def refuse(name: str, error: Exception, check: str) -> InputError:
    """The error for a rejected request; `check` says what to examine."""
    return InputError(f"{name} rejected the request ({_line(error)}); check {check}")


def _line(error: Exception) -> str:
    return clip(" ".join(str(error).split()), 200)


def _prefix(form: str) -> str:
    """What a string of this form begins with: `chroma:`, `postgresql://`."""
    scheme, _, rest = form.partition(":")
    return f"{scheme}://" if rest.startswith("//") else f"{scheme}:"


def is_store(source: str) -> bool:
    """Whether a string names a vector store, not a file or folder."""
    return source.startswith(tuple(map(_prefix, STORES)))


def store_forms() -> str:
    """The forms of strings that name a vector store, for messages and help."""
    return ", ".join(STORES)


def open_vector_store(source: str, *, new: bool = False, folder: Path = Path()) -> VectorStore:
    """The vector store of a string, such as `chroma:FOLDER#COLLECTION`.

    Args:
        source: In one of the forms of `STORES`.
        new: Whether to create it if missing.
        folder: The base of relative paths.

    Raises:
        OptionError: Not the string of a vector store.
        InputError: The store does not exist.
        MissingExtraError: Its library is not installed.
        StoreError: It cannot be reached.
    """
    form = next((form for form in STORES if source.startswith(_prefix(form))), None)
    if form is None:
        raise OptionError(f"{clip(source)} is no vector store; name one as {store_forms()}")
    address, mark, name = (source if "://" in _prefix(form) else source.removeprefix(_prefix(form))).rpartition("#")
    if not mark or not address or not name:
        raise OptionError(f"a store of this kind has the form {form}, got {clip(source)}")
    if "://" not in address:
        address = str(folder / address)
    module, _, kind = STORES[form].partition(":")
    opened: VectorStore = getattr(import_module(f"unpoison.retrieval.{module}"), kind)(address, name, new=new)
    return opened


class StoreRetriever(VectorRetriever):
    """Retrieves from a store by the store's own measure, with its stored vectors.

    Searching raises an InputError if the store's dimensions are others or a document has no text; a StoreError if it
    cannot be reached. The store is asked by one thread at a time.

    Args:
        store: Such as `open_vector_store("chroma:FOLDER#COLLECTION")`; the caller closes it.
        encoder: The encoder of documents and queries, or its string, such as "minilm".
        sources: Multiplies the score by the trust in the passage's source (`retrieval.base`).

    Raises:
        OptionError: The encoder's vectors are valid within one call only.
    """

    def __init__(self, store: VectorStore, encoder: Encoder | str, *, sources: SourcesOption = None) -> None:
        self.sources = Sources.of(sources)
        self.store, self.encoder = store, check_encoder(encoder)
        self._turn = CopyableLock()

    def add(self, passages: Iterable[Any]) -> None:
        """Write passages to the store; those without an embedding are encoded.

        A passage replaces the one with its id; without an id, a hash of its text is the id.

        Raises:
            InputError: An unusable passage, or an embedding of another dimension than the store's.
            ModelError: The encoder failed.
            StoreError: The store cannot be reached.
        """
        new = [Passage.of(value, position) for position, value in enumerate(passages)]
        for start in range(0, len(new), BATCH):
            some = new[start : start + BATCH]
            vectors = vectors_of(some, self.encoder)
            with self._turn:
                fields = [_fields(passage, vector) for passage, vector in zip(some, vectors, strict=True)]
                self.store.put({row["id"]: self.store.raw(row) for row in fields})

    def remove(self, ids: Iterable[str]) -> None:
        """Remove passages; unknown ids are ignored.

        Raises:
            StoreError: The store cannot be reached.
        """
        with self._turn:
            self.store.take(list(ids))

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        if not count:
            return ()
        with self._turn:
            found = self.store.search(vector.tolist(), count)
        return tuple(map(_passage, found))

    def __repr__(self) -> str:
        return f"StoreRetriever({self.store.name}, encoder={self.encoder.name!r})"


def _fields(passage: Passage, vector: Vector) -> dict[str, Any]:
    kept = {"title": passage.title, "source": passage.source, "metadata": dict(passage.metadata)}
    name = passage.id if passage.id is not None else str(uuid5(NAMESPACE_URL, passage.text))
    given = {key: value for key, value in kept.items() if value}
    return {"id": name, "text": passage.text, **given, "embedding": vector.tolist()}


def _passage(row: Mapping[str, Any]) -> Passage:
    fields = {name: value for name, value in row.items() if value is not None and name != "score"}
    for name in ("title", "source"):
        if not isinstance(fields.get(name, ""), str):
            del fields[name]
    return replace(Passage.of({**fields, "id": str(row["id"])}), score=row["score"], original=row)
