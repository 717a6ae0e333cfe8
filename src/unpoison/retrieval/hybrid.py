"""Hybrid retrieval by reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.errors import OptionError
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import Retriever, by_trust, check_count, embed_query
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.checks import at_least

__all__ = ["HybridRetriever", "reciprocal_rank_fusion"]


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
        self.depth = check_count(at_least("depth", depth, 1))
        named = [getattr(retriever, "encoder", None) for retriever in retrievers]
        encoders: dict[str, Encoder] = {encoder.name: encoder for encoder in named if encoder is not None}
        self.encoder = next(iter(encoders.values())) if len(encoders) == 1 else None
        self._vectors = [encoder is not None and len(encoders) == 1 for encoder in named]

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """The best `k` passages of all retrievers."""
        count = check_count(k)
        question = embed_query(query, self.encoder)[0] if self.encoder else self._plain(query)
        return self._fuse(
            [retriever.retrieve(question, max(self.depth, count)) for retriever in self.retrievers],
            question,
            count,
        )

    def _plain(self, query: str | Query) -> Query:
        """Drop the query's embedding, which fits at most one of several encoders."""
        return Query(as_query(query).text)

    def _fuse(self, lists: Iterable[Iterable[Any]], question: Query, count: int) -> tuple[Passage, ...]:
        rankings = [
            as_passages([*ranking]) if vectors else [replace(p, embedding=None) for p in as_passages([*ranking])]
            for ranking, vectors in zip(lists, self._vectors, strict=True)
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
