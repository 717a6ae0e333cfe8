"""A retriever over any vector store that `scan` and `quarantine` support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from unpoison.core.passages import Passage, Vector
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import BATCH, VectorRetriever, check_encoder, vectors_of
from unpoison.retrieval.store import VectorStore
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.copies import CopyableLock

__all__ = ["StoreRetriever"]


class StoreRetriever(VectorRetriever):
    """Retrieves from a store by the store's own measure, with its stored vectors.

    Searching raises an InputError if the store's dimensions are others or a document has no text; a StoreError if it
    cannot be reached. The store is asked by one thread at a time.

    Args:
        store: Such as `unpoison.scan.stores.open_vector_store("chroma:FOLDER#COLLECTION")`; the caller closes
            it.
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
    return {
        "id": name,
        "text": passage.text,
        **{key: value for key, value in kept.items() if value},
        "embedding": vector.tolist(),
    }


def _passage(row: Mapping[str, Any]) -> Passage:
    fields = {name: value for name, value in row.items() if value is not None and name != "score"}
    for name in ("title", "source"):
        if not isinstance(fields.get(name, ""), str):
            del fields[name]
    return replace(Passage.of({**fields, "id": str(row["id"])}), score=row["score"], original=row)
