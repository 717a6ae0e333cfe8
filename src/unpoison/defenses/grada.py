"""GRADA: graph-based reranking against adversarial documents (Zheng et al., 2025).

A poisoned passage is similar to the query, not to the other passages. GRADA builds a similarity graph of the passages,
subtracts the query's share from every edge, runs PageRank on the result, and keeps the best `keep`. It needs no
language model and, by default, no encoder.

If the paper is not specific, this follows the released code, which produced the tables: BM25 uses the statistics of a
single passage (in effect no IDF and no length normalisation), and the query term one direction only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.bm25 import bm25
from unpoison.algorithms.centrality import pagerank
from unpoison.algorithms.cosine import best_first, cosine
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ScreeningOptions
from unpoison.defenses.embedding import embed_passages
from unpoison.models.protocols import CrossEncoder, Encoder
from unpoison.models.requests import Flow, compare
from unpoison.text.tokens import ENGLISH_33, words
from unpoison.utils.checks import among, at_least, within

__all__ = ["Grada"]

IDLE = "the encoder is not used: BM25 compares the passages, unless variant=ebd or similarity=encoder"

ALIASES = {"d2dsim-bm25": "bm25", "d2dsim-ebd": "ebd"}

NOISE = 1e-12
"""Smaller weights are rounding errors of 0; they must be removed, because a passage's only edge passes on its whole
score, however weak."""


class Similarities(NamedTuple):
    """The similarity of the passages, (k, k), and of each to the query, (k,)."""

    passages: NDArray[np.float64]
    query: NDArray[np.float64]


class Grada(Defense):
    """Rerank by a similarity graph and keep the best `keep` (GRADA, Sections 3.1 and 3.2).

    Retrieve at least twice as many passages as you keep: the method relies on a benign majority. With at most `keep`
    passages it only reorders.

    Args:
        variant: `hrsim`, edges minus the query's share (the paper's best); `bm25` or `ebd`, passage similarity only, by
            BM25 or by an encoder (`d2dsim-bm25` and `d2dsim-ebd` are the paper's names).
        alpha: The query's share in `hrsim`, 0 or more.
        damping: PageRank's damping factor, in [0, 1).
        keep: The number of passages to keep (the paper's n), at least 1.
        start: `uniform`, or `query` to start from query similarity (Appendix C.2; it helps the attacker).
        similarity: The similarity of `hrsim`: `bm25`, `encoder` or `cross-encoder`.
        encoder: For `ebd` and `similarity="encoder"`; passages with embeddings are not encoded.
        cross_encoder: For `similarity="cross-encoder"`: `cross:NAME_OR_PATH` is any reranker. Its scores are used
            unchanged, negative ones as 0.

    Like every defense, it also takes the common options (`ScreeningOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "grada"
    summary = "reranks by a similarity graph less the query's share; keeps a fixed number"
    calls = "1"
    source = "Zheng et al., 2025"

    def __init__(
        self,
        variant: Literal["hrsim", "bm25", "ebd", "d2dsim-bm25", "d2dsim-ebd"] = "hrsim",
        *,
        alpha: float = 0.4,
        damping: float = 0.85,
        keep: int = 5,
        start: Literal["uniform", "query"] = "uniform",
        similarity: Literal["bm25", "encoder", "cross-encoder"] = "bm25",
        encoder: Encoder | str | None = None,
        cross_encoder: CrossEncoder | str | None = None,
        **shell: Unpack[ScreeningOptions],
    ) -> None:
        super().__init__(encoder=encoder or "lexical", cross_encoder=cross_encoder, **shell)
        among("variant", variant, ("hrsim", "bm25", "ebd", *ALIASES))
        self.variant = ALIASES.get(variant, variant)
        self.alpha = at_least("alpha", alpha, 0.0, 1e6, whole=False)
        self.damping = within("damping", damping, 0.0, 1.0, open_end=True)
        self.keep = at_least("keep", keep, 1)
        self.start = among("start", start, ("uniform", "query"))
        self.similarity = among("similarity", similarity, ("bm25", "encoder", "cross-encoder"))
        self._by = {"hrsim": self.similarity, "bm25": "bm25", "ebd": "encoder"}[self.variant]

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Graph construction, then reranking."""
        similar = yield from self._similarities(query, passages)
        weights = self._edges(similar)
        scores, notes = self._propagate(weights, similar.query)
        notes += (IDLE,) if self._by == "bm25" and getattr(self.models.encoder, "name", "lexical") != "lexical" else ()
        order = best_first(scores).tolist()
        kept, why = order[: self.keep], self._reasons(order, scores, weights)
        arrays = {"similarity": similar.passages, "query_similarity": similar.query, "weights": weights}
        found = Evidence(arrays, notes, graph="weights")
        return Screening.decided(self.name, query, passages, kept=kept, scores=scores, reasons=why, evidence=found)

    def _similarities(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Similarities]:
        """sim(v_i, v_j) and sim(v_i, q), Section 3.1; negative similarities count as 0, because weights are in R+."""
        if self._by == "bm25":
            return self._by_bm25(query.reading, [p.reading for p in passages])
        if self._by == "encoder":
            wants_query = self.variant == "hrsim" or self.start == "query"
            vectors, target = yield from embed_passages(query, passages, self.models.encoder, with_query=wants_query)
            to_query = np.zeros(len(passages)) if target is None else cosine(vectors, target[None, :])[:, 0]
            return Similarities(np.maximum(cosine(vectors), 0), np.maximum(to_query, 0))
        k, texts = len(passages), [p.reading for p in passages]
        pairs = [(left, right) for left in texts for right in texts]
        scores = yield from compare([*pairs, *((query.reading, text) for text in texts)])
        each_way = np.maximum(scores[: k * k], 0).reshape(k, k)
        return Similarities((each_way + each_way.T) / 2, np.maximum(scores[k * k :], 0))

    def _by_bm25(self, query: str, texts: Sequence[str]) -> Similarities:
        """The mean of both directions between passages; passage against query only for the query."""
        tokens = [words(text, ENGLISH_33) for text in texts]
        each_way = bm25(tokens, tokens)
        to_query = bm25(tokens, [words(query, ENGLISH_33)])[:, 0]
        return Similarities((each_way + each_way.T) / 2, to_query)

    def _edges(self, similar: Similarities) -> NDArray[np.float64]:
        """w_ij = max(sim(i, j) - alpha (sim(i, q) + sim(j, q)), 0), without self-loops."""
        share = self.alpha if self.variant == "hrsim" else 0.0
        weights = similar.passages - share * (similar.query[:, None] + similar.query[None, :])
        weights[weights < NOISE] = 0
        np.fill_diagonal(weights, 0)
        return weights

    def _propagate(
        self, weights: NDArray[np.float64], to_query: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """The fixpoint of Eq. 1. Without edges, retrieval order is kept."""
        k = len(weights)
        if not weights.any():
            notes = ("no two passages are tied in the graph: retrieval order was kept",) if k > 1 else ()
            return np.full(k, 1 / k if k else 0.0), notes
        total = to_query.sum()
        teleport = to_query / total if self.start == "query" and total > 0 else None
        return pagerank(weights, self.damping, teleport), ()

    def _reasons(self, order: Sequence[int], scores: NDArray[np.float64], weights: NDArray[np.float64]) -> list[Reason]:
        reasons = [Reason("")] * len(order)
        for rank, i in enumerate(order):
            place = {"place": rank + 1, "count": len(order), "score": scores[i]}
            past, keep = ("", {}) if rank < self.keep else ("_past", {"keep": self.keep})
            neighbour = int(weights[i].argmax())
            tie = weights[i, neighbour]
            code, near = ("central", {"tie": tie, "passage": neighbour}) if tie > 0 else ("untied", {})
            reasons[i] = Reason.of(f"grada.{code}{past}", **place, **keep, **near)
        return reasons
