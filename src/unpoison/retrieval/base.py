"""The retriever protocol, code shared by retrievers, and hybrid retrieval.

Retrievers are fused by reciprocal rank (Cormack, Clarke and Büttcher, SIGIR 2009).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import best_first
from unpoison.core.passages import MAX_PASSAGES, Passage, Query, Vector, as_passages, as_query
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.loading import load_encoder
from unpoison.models.protocols import Encoder, Models
from unpoison.models.requests import encode
from unpoison.runtime.driver import Limits, run
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.checks import at_least
from unpoison.utils.threads import on_thread

__all__ = [
    "BATCH", "Collection", "HybridRetriever", "Retriever", "VectorRetriever", "aretrieve_passages", "by_trust",
    "check_count", "check_encoder", "depth", "embed_query", "reciprocal_rank_fusion", "unit_rows", "vectors_of",
]  # fmt: skip


@runtime_checkable
class Retriever(Protocol):
    """Retrieves passages for a query, best first. Thread-safe.

    Attributes:
        encoder: The encoder of the passages' embeddings and of the query; None without embeddings.
    """

    encoder: Encoder | None = None

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """The best passages, at most `k`.

        Args:
            query: The question; a `Query` with an embedding is not encoded again.
            k: Maximum number of passages, from 0 to 5,000.

        Returns:
            Passages with `id`, the retriever's `score` (higher is better), and the `embedding` that the store has.

        Raises:
            InputError: An unusable query, or a store without passages.
            OptionError: `k` is out of its range.
            StoreError: The store cannot be reached.
        """
        ...

    async def aretrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """`retrieve` for asyncio; on a thread by default."""
        return await on_thread(lambda: self.retrieve(query, k))


class VectorRetriever(Retriever):
    """A retriever that compares vectors: encodes the query once and calls `_nearest`."""

    encoder: Encoder
    sources: Sources | None = None

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        count = check_count(k)
        question, vector = embed_query(query, self.encoder)
        return by_trust(self.sources, question.text, self._nearest(vector, depth(self.sources, count)), count)

    @abstractmethod
    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        """The passages whose vectors are nearest."""


async def aretrieve_passages(retriever: Retriever, query: str | Query, k: int) -> Iterable[Any]:
    """Retrieve in asyncio; a retriever without `aretrieve` is called on a thread."""
    native = getattr(retriever, "aretrieve", None)
    if native is None:
        return await on_thread(lambda: retriever.retrieve(query, k))
    return await native(query, k)  # type: ignore[no-any-return]


def check_count(k: int) -> int:
    """Validate the `k` of `retrieve`.

    Raises:
        OptionError: Not a whole number in the range.
    """
    return int(at_least("k", k, 0, MAX_PASSAGES))


def check_encoder(encoder: Encoder | str, *, dot: bool = False) -> Encoder:
    """An encoder whose vectors can be stored.

    Args:
        encoder: A model or its string.
        dot: Whether the index can compare by dot product.

    Raises:
        OptionError: Its vectors are valid within one call only, or need a dot product that the index does not support.
    """
    model = load_encoder(encoder) if isinstance(encoder, str) else encoder
    if getattr(model, "per_set", False):
        raise OptionError(
            f"the vectors of the encoder {clip(model.name)} are valid within one call only, so no index can store "
            "them; use another encoder, such as 'minilm', or BM25Retriever, which needs none"
        )
    if not dot and getattr(model, "similarity", "cosine") == "dot":
        raise OptionError(
            f"the vectors of {clip(model.name)} need the dot product, and this index compares by cosine; "
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


def vectors_of(passages: Sequence[Passage], encoder: Encoder, width: int | None = None) -> NDArray[np.float32]:
    """The embeddings of passages; those without one are encoded, `BATCH` texts in one call.

    Args:
        passages: At least one.
        encoder: Encodes passages without an embedding.
        width: The required dimension; None for any, the same for all.

    Returns:
        Shape (n, d), as given and as encoded, not normalised.

    Raises:
        InputError: Vectors of different dimensions, or not of `width`.
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
                f"encode all passages with the encoder {clip(encoder.name)}, or omit their embeddings"
            )
    return np.array(vectors, np.float32)


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows normalised to length 1; zero rows stay. Safe from overflow and underflow."""
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    rows = vectors / np.where(largest > 0, largest, 1)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1), np.float32)


BATCH = 256
"""Texts per call of the encoder."""

_UNHURRIED = Limits(deadline=None, timeout=None)


MIN_CANDIDATES, CANDIDATES_PER_PASSAGE = 50, 5
"""Minimum number of candidates, and minimum multiple of `k`, for weighting by trust."""


def depth(sources: Sources | None, k: int) -> int:
    """The number of candidates from which `k` are chosen by trust; `k` without sources.

    Returns:
        With sources five times `k`, from 50 to 5,000; 0 if `k` is 0.
    """
    return k if sources is None or not k else min(MAX_PASSAGES, max(MIN_CANDIDATES, CANDIDATES_PER_PASSAGE * k))


def by_trust(sources: Sources | None, question: str, passages: Iterable[Passage], k: int) -> tuple[Passage, ...]:
    """The `k` best passages by score times trust, which becomes the score; without sources the first `k` unchanged.

    A negative score is divided by the trust instead, so that distrust lowers every score. Equal scores keep their
    order; what comes from blocked sources is left out. Without a policy or history that tells sources apart every
    trust is 1.

    Args:
        sources: The trust in sources.
        question: The question, which the history leaves out.
        passages: The candidates, best first; one without a score counts as 0.
        k: Maximum number of passages.
    """
    candidates = tuple(passages)
    if sources is None:
        return candidates[:k]
    weighed = [
        replace(passage, score=score * standing.trust if score > 0 else score / standing.trust)
        for passage, standing in zip(candidates, sources.standings(question, candidates), strict=True)
        if standing.trust > 0
        for score in (passage.score or 0.0,)
    ]
    return tuple(weighed[i] for i in best_first([passage.score or 0.0 for passage in weighed], k))


class Collection:
    """Passages in insertion order. A removed passage leaves its position empty."""

    def __init__(self) -> None:
        self._passages: list[Passage | None] = []
        self._ids: dict[str, int] = {}

    def prepare(self, passages: Iterable[Any]) -> list[Passage]:
        """Validate passages for `add`; nothing is added yet.

        A passage without an id gets its position in the collection, from 0, as id.

        Raises:
            InputError: An unusable passage, or a duplicate id; the message names it.
        """
        if isinstance(passages, (str, bytes)):
            raise InputError(f"passages must be a list of passages, got {clip(passages)}; wrap it in a list")
        prepared, new = list[Passage](), set[str]()
        for position, value in enumerate(passages):
            passage = Passage.of(value, position)
            if passage.id is None:
                passage = replace(passage, id=str(len(self._passages) + position))
            name = passage.id or ""
            if name in self._ids or name in new:
                raise InputError(f"passages[{position}].id is {clip(name)}, which another passage has; make ids unique")
            new.add(name)
            prepared.append(passage)
        return prepared

    def extend(self, prepared: Iterable[Passage]) -> None:
        """Add the passages that `prepare` returned."""
        for passage in prepared:
            self._ids[passage.id or ""] = len(self._passages)
            self._passages.append(passage)

    def remove(self, ids: Iterable[str]) -> dict[int, Passage]:
        """Remove passages; return them by position. Unknown ids are ignored."""
        taken = dict[int, Passage]()
        for name in ids:
            position = self._ids.pop(name, None)
            if position is not None:
                taken[position] = self[position]
                self._passages[position] = None
        return taken

    def without(self, ids: Iterable[str]) -> tuple[Collection, list[int]]:
        """A copy without some passages, renumbered 0, 1, 2, ..., and the positions that they had here."""
        gone = frozenset(ids) & self._ids.keys()
        rest = Collection()
        rest.extend(passage for passage in self if passage.id not in gone)
        return rest, sorted(self._ids[name] for name in gone)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, position: int) -> Passage:
        passage = self._passages[position]
        if passage is None:
            raise InputError(f"the passage at position {position:,} was removed")
        return passage

    def __iter__(self) -> Iterator[Passage]:
        return (passage for passage in self._passages if passage is not None)


class HybridRetriever(Retriever):
    """Fuses several retrievers: the score of a passage is the sum of 1 / (constant + rank) over those that find it.

        HybridRetriever(BM25Retriever(passages), DenseRetriever("minilm", passages))

    Passages are the same where their ids are. One that a retriever with an encoder has among its `depth` best brings
    its embedding; with two different encoders none does, for their vectors cannot be compared.

    Args:
        retrievers: At least one; earlier ones win ties.
        constant: The `k` of the paper; larger values reduce the weight of the first ranks.
        depth: Passages to request from each retriever, or `k` if that is more.
        sources: Multiplies the sum by the trust in the passage's source (`retrieval.base`).

    Raises:
        OptionError: No retriever, or an option out of its range.
    """

    def __init__(
        self, *retrievers: Retriever, constant: int = 60, depth: int = 100, sources: SourcesOption = None
    ) -> None:
        self.sources = Sources.of(sources)
        if not retrievers:
            raise OptionError("HybridRetriever needs at least one retriever")
        self.retrievers = retrievers
        self.constant = at_least("constant", constant, 0)
        self.depth = at_least("depth", depth, 1, MAX_PASSAGES)
        named = [getattr(retriever, "encoder", None) for retriever in retrievers]
        encoders: dict[str, Encoder] = {encoder.name: encoder for encoder in named if encoder is not None}
        self.encoder = next(iter(encoders.values())) if len(encoders) == 1 else None
        self._vectors = [encoder is not None and len(encoders) == 1 for encoder in named]

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """The best `k` passages of all retrievers; of two encoders the query's embedding fits one at most."""
        count = check_count(k)
        question = embed_query(query, self.encoder)[0] if self.encoder else Query(as_query(query).text)
        found = (as_passages([*one.retrieve(question, max(self.depth, count))]) for one in self.retrievers)
        rankings = [
            ranking if vectors else tuple(replace(p, embedding=None) for p in ranking)
            for ranking, vectors in zip(found, self._vectors, strict=True)
        ]
        fused = reciprocal_rank_fusion(rankings, self.constant)
        return by_trust(self.sources, question.text, fused, count)

    def __repr__(self) -> str:
        return f"HybridRetriever({', '.join(map(repr, self.retrievers))})"


def reciprocal_rank_fusion(lists: Sequence[Sequence[Passage]], constant: int = 60) -> tuple[Passage, ...]:
    """The passages of several rankings by descending sum of 1 / (constant + rank), with ranks from 1 (Section 2).

    Passages are the same where their ids are, or, without ids, their texts. The first that brings an embedding stands
    for all. Ties go to the one that comes first, going through the rankings in their order.

    Complexity: O(n log n) for n passages in all lists.
    """
    scores: dict[tuple[bool, str], float] = {}
    stands: dict[tuple[bool, str], Passage] = {}
    for ranking in lists:
        seen = set()
        for rank, passage in enumerate(ranking, 1):
            key = (passage.id is None, passage.text if passage.id is None else passage.id)
            if key in seen:
                continue
            seen.add(key)
            scores[key] = scores.get(key, 0.0) + 1 / (constant + rank)
            if key not in stands or (stands[key].embedding is None and passage.embedding is not None):
                stands[key] = passage
    order = sorted(scores, key=lambda key: -round(scores[key], 12))
    return tuple(replace(stands[key], score=scores[key]) for key in order)
