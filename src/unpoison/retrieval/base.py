"""What every retriever is, and what those that compare vectors share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import MAX_PASSAGES, Passage, Query, Vector, as_query
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.loading import load_encoder
from unpoison.models.protocols import Encoder, Models
from unpoison.models.requests import encode
from unpoison.retrieval.trusted import by_trust, depth
from unpoison.runtime.driver import Limits, arun, run
from unpoison.sources.sources import Sources
from unpoison.utils.threads import on_thread

__all__ = [
    "BATCH",
    "Retriever",
    "VectorRetriever",
    "aembed_query",
    "aretrieve_passages",
    "check_count",
    "check_encoder",
    "embed_query",
    "unit_rows",
    "vectors_of",
]


@runtime_checkable
class Retriever(Protocol):
    """A question to passages, best first. Called from several threads at once.

    Attributes:
        encoder: Made the embeddings that the passages bring, and makes the query's; None where there are none.
    """

    encoder: Encoder | None = None

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """The best passages, at most `k`.

        Args:
            query: The question; a `Query` with an embedding is not encoded again.
            k: How many at most, from 0 to 5,000. Fewer come back where there are fewer.

        Returns:
            Passages with `id`, the retriever's `score` (higher is better), and the `embedding` that the store has.

        Raises:
            InputError: An unusable query, or a store that holds something else than passages.
            OptionError: `k` is out of its range.
            StoreError: The store cannot be reached.
        """
        ...

    async def aretrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """`retrieve` for asyncio; on a thread, unless the retriever has something better."""
        return await on_thread(lambda: self.retrieve(query, k))


class VectorRetriever(Retriever):
    """A retriever that compares vectors: the query is encoded, once, and `_nearest` searches."""

    encoder: Encoder
    sources: Sources | None = None

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        count = check_count(k)
        question, vector = embed_query(query, self.encoder)
        return by_trust(self.sources, question.text, self._nearest(vector, depth(self.sources, count)), count)

    async def aretrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        count = check_count(k)
        question, vector = await aembed_query(query, self.encoder)
        candidates = await self._anearest(vector, depth(self.sources, count))
        return by_trust(self.sources, question.text, candidates, count)

    @abstractmethod
    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        """The passages whose vectors are nearest."""

    async def _anearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        """`_nearest` for asyncio; on a thread, unless the store has something better."""
        return await on_thread(lambda: self._nearest(vector, count))


async def aretrieve_passages(retriever: Retriever, query: str | Query, k: int) -> Iterable[Any]:
    """What a retriever finds, for asyncio; one that has no `aretrieve` is asked on a thread."""
    native = getattr(retriever, "aretrieve", None)
    if native is None:
        return await on_thread(lambda: retriever.retrieve(query, k))
    return await native(query, k)  # type: ignore[no-any-return]


def check_count(k: int) -> int:
    """The `k` of `retrieve`, if it is one.

    Raises:
        OptionError: It is not.
    """
    whole = isinstance(k, (int, np.integer)) and not isinstance(k, bool)
    if not whole or not 0 <= k <= MAX_PASSAGES:
        raise OptionError(f"k must be a whole number from 0 to {MAX_PASSAGES:,}, got {clip(k)}")
    return int(k)


def check_encoder(encoder: Encoder | str, *, dot: bool = False) -> Encoder:
    """An encoder whose vectors can be kept.

    Args:
        encoder: A model or its string.
        dot: Whether the index can compare by dot product.

    Raises:
        OptionError: Its vectors hold for the texts of one call only, or are compared by their dot product where the
            index compares by cosine.
    """
    model = load_encoder(encoder) if isinstance(encoder, str) else encoder
    if getattr(model, "per_set", False):
        raise OptionError(
            f"the vectors of the encoder {clip(model.name)} hold for the texts of one call only, so no index can keep "
            "them; use another encoder, such as 'minilm', or BM25Retriever, which needs none"
        )
    if not dot and getattr(model, "similarity", "cosine") == "dot":
        raise OptionError(
            f"the vectors of {clip(model.name)} are compared by their dot product, and this index compares by cosine; "
            "use DenseRetriever, or an encoder with similarity=cosine"
        )
    return model


def embed_query(query: str | Query, encoder: Encoder) -> tuple[Query, Vector]:
    """The query with its embedding, and the embedding, shape (d,)."""
    question = as_query(query)
    if question.embedding is None:
        (vector,), _ = run(encode([question.text], "query", queries=True), Models(encoder=encoder))
        question = Query(question.text, vector)
    return question, question.embedding  # type: ignore[return-value]


async def aembed_query(query: str | Query, encoder: Encoder) -> tuple[Query, Vector]:
    """`embed_query` for asyncio."""
    question = as_query(query)
    if question.embedding is None:
        (vector,), _ = await arun(encode([question.text], "query", queries=True), Models(encoder=encoder))
        question = Query(question.text, vector)
    return question, question.embedding  # type: ignore[return-value]


def vectors_of(passages: Sequence[Passage], encoder: Encoder, width: int | None = None) -> NDArray[np.float32]:
    """The passages' embeddings; those that bring none are encoded, `BATCH` texts in one call.

    Args:
        passages: At least one.
        encoder: For those that bring none.
        width: The dimensions that the vectors must have; None for any, but one.

    Returns:
        Shape (n, d), as given and as encoded, not normalised.

    Raises:
        InputError: Vectors of different dimensions, or of others than `width`.
        ModelError: The encoder failed.
    """
    missing = [passage.text for passage in passages if passage.embedding is None]
    encoded = iter(
        vector
        for start in range(0, len(missing), BATCH)
        for vector in run(encode(missing[start : start + BATCH], "indexing"), Models(encoder=encoder), _UNHURRIED)[0]
    )
    vectors = [next(encoded) if passage.embedding is None else passage.embedding for passage in passages]
    for passage, vector in zip(passages, vectors, strict=True):
        width = vector.size if width is None else width
        if vector.size != width:
            raise InputError(
                f"the embedding of passage {clip(passage.id)} has {vector.size} dimensions and the index {width}; "
                f"encode all passages with the encoder {clip(encoder.name)}, or leave their embeddings out"
            )
    return np.array(vectors, np.float32)


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; rows of length 0 stay. Neither overflows nor underflows."""
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    rows = vectors / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1), np.float32)


BATCH = 256
"""Texts that are encoded in one call."""

_UNHURRIED = Limits(deadline=None, timeout=None)
