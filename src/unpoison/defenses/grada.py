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
from unpoison.algorithms.cosine import cosine
from unpoison.algorithms.ranking import best_first
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ScreeningOptions
from unpoison.defenses.embedding import embed_passages
from unpoison.models.protocols import CrossEncoder, Encoder
from unpoison.models.requests import Flow, compare
from unpoison.text.rouge import rouge_l
from unpoison.text.tokens import ENGLISH_33, words
from unpoison.utils.checks import among, at_least, within

__all__ = ["Grada"]

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
        merge: Passages with at least this ROUGE-L share one vote (remark in Section 4.1); None for one vote each.
            Copies are ranked last.
        encoder: For `ebd` and `similarity="encoder"`; passages with embeddings are not encoded.
        cross_encoder: For `similarity="cross-encoder"`: `cross:NAME_OR_PATH` is any reranker, `hlatr:...` a list-aware
            one. Its scores are used unchanged, negative ones as 0.

    As every defense it also takes the options of the shell (`ScreeningOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "grada"
    summary = "reranks by a similarity graph less the query's share; keeps a fixed number"
    calls = "1"
    source = "Zheng et al., 2025"
    client_options = {"keep": "lower"}  # noqa: RUF012  nobody writes to it

    def __init__(
        self,
        variant: Literal["hrsim", "bm25", "ebd", "d2dsim-bm25", "d2dsim-ebd"] = "hrsim",
        *,
        alpha: float = 0.4,
        damping: float = 0.85,
        keep: int = 5,
        start: Literal["uniform", "query"] = "uniform",
        similarity: Literal["bm25", "encoder", "cross-encoder"] = "bm25",
        merge: float | None = None,
        encoder: Encoder | str | None = None,
        cross_encoder: CrossEncoder | str | None = None,
        **shell: Unpack[ScreeningOptions],
    ) -> None:
        super().__init__(
            encoder=encoder or "lexical",
            cross_encoder=cross_encoder,
            **shell,
        )
        among("variant", variant, ("hrsim", "bm25", "ebd", *ALIASES))
        self.variant = ALIASES.get(variant, variant)
        self.alpha = at_least("alpha", alpha, 0.0, 1e6, whole=False)
        self.damping = within("damping", damping, 0.0, 1.0, open_end=True)
        self.keep = at_least("keep", keep, 1)
        self.start = among("start", start, ("uniform", "query"))
        self.similarity = among("similarity", similarity, ("bm25", "encoder", "cross-encoder"))
        self.merge = None if merge is None else within("merge", merge, 0.0, 1.0)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Graph construction, then reranking."""
        speaker = self._speakers(passages)
        voters = np.flatnonzero(speaker == np.arange(len(passages)))
        similar = yield from self._similarities(query, tuple(passages[i] for i in voters))
        weights = self._edges(similar)
        scores, notes = self._propagate(weights, similar.query)

        ranked = voters[best_first(scores)]
        copies = np.flatnonzero(speaker != np.arange(len(passages)))
        order = np.concatenate([ranked, copies]).astype(int)
        position_of = {int(voter): position for position, voter in enumerate(voters)}
        everyone = np.array([scores[position_of[int(i)]] for i in speaker], dtype=float)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=order[: self.keep].tolist(),
            scores=everyone,
            reasons=self._reasons(order, everyone, weights, voters, speaker),
            evidence=Evidence(
                {
                    "similarity": _spread(similar.passages, voters, len(passages)),
                    "query_similarity": _spread_rows(similar.query, speaker, position_of),
                    "weights": _spread(weights, voters, len(passages)),
                    "speaker": speaker,
                },
                notes,
                graph="weights",
            ),
        )

    def _speakers(self, passages: Sequence[Passage]) -> NDArray[np.int64]:
        """The first passage of each passage's group of near-duplicates, shape (k,).

        Groups are the connected components of "ROUGE-L F1 at least `merge`".
        """
        own = np.arange(len(passages))
        if self.merge is None or len(passages) < 2:
            return own
        from scipy.sparse.csgraph import connected_components

        _, group = connected_components(rouge_l([p.reading for p in passages]) >= self.merge, directed=False)
        _, first = np.unique(group, return_index=True)
        return np.asarray(first[group], dtype=np.int64)

    def _similarities(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Similarities]:
        """sim(v_i, v_j) and sim(v_i, q), Section 3.1; negative similarities count as 0, because weights are in R+."""
        by = {"hrsim": self.similarity, "bm25": "bm25", "ebd": "encoder"}[self.variant]
        if by == "bm25":
            return self._by_bm25(query.reading, [p.reading for p in passages])
        if by == "encoder":
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
        each_way = bm25(tokens, tokens, statistics="single")
        to_query = bm25(tokens, [words(query, ENGLISH_33)], statistics="single")[:, 0]
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

    def _reasons(
        self,
        order: NDArray[np.int64],
        scores: NDArray[np.float64],
        weights: NDArray[np.float64],
        voters: NDArray[np.int64],
        speaker: NDArray[np.int64],
    ) -> list[Reason]:
        strongest = weights.argmax(axis=1) if weights.size else np.zeros(0, int)
        ties = zip(voters[strongest].tolist(), weights.max(axis=1, initial=0).tolist(), strict=True)
        tie, score, first = dict(zip(voters.tolist(), ties, strict=True)), scores.tolist(), speaker.tolist()
        reasons = [Reason("")] * len(order)
        for rank, i in enumerate(order.tolist()):
            place = {"place": rank + 1, "count": len(order)}
            past = "" if rank < self.keep else "_past"
            if past:
                place["keep"] = self.keep
            if first[i] != i:
                reasons[i] = Reason.of(f"grada.near_duplicate{past}", **place, passage=first[i])
                continue
            neighbour, weight = tie[i]
            if weight > 0:
                near = {"tie": weight, "passage": neighbour}
                reasons[i] = Reason.of(f"grada.central{past}", **place, score=score[i], **near)
            else:
                reasons[i] = Reason.of(f"grada.untied{past}", **place, score=score[i])
        return reasons


def _spread(small: NDArray[np.float64], voters: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """The matrix of the voters in the positions of all passages, zeros for copies."""
    if len(voters) == k:
        return small
    whole = np.zeros((k, k))
    whole[np.ix_(voters, voters)] = small
    return whole


def _spread_rows(
    small: NDArray[np.float64], speaker: NDArray[np.int64], position_of: dict[int, int]
) -> NDArray[np.float64]:
    """The values of the voters in the positions of all passages; a copy gets the value of its speaker."""
    return np.array([small[position_of[int(i)]] for i in speaker], dtype=float)
