"""Rerankers as defenses: a cross-encoder ranks the passages, and the best are kept.

A reranker judges relevance, and poison is written to be relevant; it is a baseline of GRADA. As a model it also gives
the similarity in GRADA's HRSIM: `grada:similarity=cross-encoder,cross_encoder=cross:NAME_OR_PATH`.
"""

from __future__ import annotations

from typing import Unpack

from unpoison.algorithms.cosine import best_first
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ScreeningOptions
from unpoison.models.classifiers import CrossEncoderScorer
from unpoison.models.protocols import CrossEncoder
from unpoison.models.requests import Flow, compare
from unpoison.utils.checks import at_least

__all__ = ["Rerank"]

BGE = "BAAI/bge-reranker-large"


class Rerank(Defense):
    """Keep the most relevant passages by a cross-encoder, such as the BGE reranker. At most `keep` are only reordered.

    Args:
        model: The name or the folder of a reranker's checkpoint.
        keep: The number of passages to keep (GRADA's n), at least 1.
        cross_encoder: Any scorer of (query, passage), or its string, instead of `model`.

    Like every defense, it also takes the common options (`ScreeningOptions`).

    Raises:
        OptionError: An option out of its range.
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded.
    """

    name = "rerank"
    needs = ("cross_encoder",)
    summary = "keeps the passages that a cross-encoder, such as the BGE reranker, finds most relevant"
    calls = "1"
    source = "Xiao et al., 2024 (BGE)"

    def __init__(
        self,
        model: str = BGE,
        *,
        keep: int = 5,
        cross_encoder: CrossEncoder | str | None = None,
        **shell: Unpack[ScreeningOptions],
    ) -> None:
        self.keep = at_least("keep", keep, 1)
        super().__init__(cross_encoder=cross_encoder or CrossEncoderScorer(model), **shell)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Score each passage against the query; equal scores keep retrieval order."""
        scores = yield from compare([(query.reading, passage.reading) for passage in passages])
        order = best_first(scores).tolist()
        reasons = [Reason("")] * len(order)
        for rank, i in enumerate(order):
            place = {"place": rank + 1, "count": len(order), "relevance": scores[i]}
            past = {"keep": self.keep} if rank >= self.keep else {}
            reasons[i] = Reason.of("rerank.past" if past else "rerank.kept", **place, **past)
        kept, found = order[: self.keep], Evidence({"relevance": scores})
        return Screening.decided(self.name, query, passages, kept=kept, scores=scores, reasons=reasons, evidence=found)
