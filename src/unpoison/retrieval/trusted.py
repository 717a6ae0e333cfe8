"""Retrieval weighted by trust: the score of a passage times the trust in its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unpoison.algorithms.ranking import best_first
from unpoison.core.passages import MAX_PASSAGES, Passage
from unpoison.sources.sources import Sources

__all__ = ["by_trust", "depth"]

FEWEST, TIMES = 50, 5
"""At least so many candidates, and so many times `k`, are weighed."""


def depth(sources: Sources | None, k: int) -> int:
    """How many candidates to look for so that `k` can be chosen by trust; `k` without sources.

    Returns:
        With sources five times `k`, from 50 to 5,000; 0 where `k` is.
    """
    return k if sources is None or not k else min(MAX_PASSAGES, max(FEWEST, TIMES * k))


def by_trust(sources: Sources | None, question: str, passages: Iterable[Passage], k: int) -> tuple[Passage, ...]:
    """The `k` best by score times trust, with that as their score; the first `k` as they are without sources.

    A negative score is divided by the trust instead, so that distrust lowers every score. Equal scores keep their
    order; what comes from blocked sources is left out. Without a policy or history that tells sources apart every
    trust is 1.

    Args:
        sources: Whom to trust.
        question: What happened for this question does not count.
        passages: The candidates, best first; one without a score counts as 0.
        k: How many at most.
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
    return tuple(weighed[i] for i in best_first([passage.score or 0.0 for passage in weighed])[:k])
