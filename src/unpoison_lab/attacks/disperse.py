"""Semantic dispersion, alone and mixed with rewriting (RAGDefender, Section 6.5).

The poisons resemble each other as little as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.algorithms.cosine import cosine
from unpoison.models.requests import Flow
from unpoison.utils.checks import at_least
from unpoison_lab.attacks.base import (
    Attack,
    Meter,
    PoisonText,
    RetrievalOptions,
    Target,
    contains_answer,
    with_question,
)
from unpoison_lab.attacks.claims import claim_failure, claims
from unpoison_lab.attacks.paraphrase import paraphrases, synonyms

__all__ = ["Disperse", "Mixed", "mean_pairwise", "select_diverse"]


class Disperse(Attack):
    """Write several times as many texts as wanted and plant the set with the least mutual similarity.

    A text must state the wrong answer and be similar enough to the question to be retrieved: at least as similar as
    the passage in place `top` of the target's context.

    Args:
        pool: Candidates per planted text.
        top: How many passages the retriever returns.
        prefix: Put the question in front of every candidate.
        encoder: Measures similarity; choose the victim's if you know it.
        generator: Writes and rewrites; without one templates and rules do.
        seed: For the templates.
        limits: Bounds on the model calls.
    """

    name = "disperse"
    summary = "adaptive: the set of texts with the least mutual similarity"
    wording = "data"
    needs = ("encoder",)
    usual_encoder = "lexical"

    def __init__(self, *, pool: int = 6, top: int = 10, **common: Unpack[RetrievalOptions]) -> None:
        super().__init__(**common)
        self.pool = at_least("pool", pool, 1)
        self.top = at_least("top", top, 1)

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        if not count:
            return []
        meter = Meter()
        texts = yield from self._candidates(target, count * self.pool, meter)
        planted = [with_question(target.question, text) if self.prefix else text for text in texts]
        vectors = yield from meter.encode([target.question, *target.context, *planted])
        to_question = cosine(vectors[1:], vectors[:1])[:, 0]
        context, own = to_question[: len(target.context)], to_question[len(target.context) :]
        enough = own >= threshold(context, self.top)
        states = np.array([contains_answer(text, target.incorrect) for text in texts])
        mutual = cosine(vectors[1 + len(target.context) :])
        chosen = select_diverse(mutual, enough & states, count)
        # If too few qualify, the most similar others are added and marked.
        rest = [int(i) for i in np.lexsort((-own, ~states)) if i not in chosen]
        chosen += rest[: count - len(chosen)]
        spread = mean_pairwise(mutual[np.ix_(chosen, chosen)])
        poisons = []
        for number, i in enumerate(chosen):
            reason = claim_failure(texts[i], [target.incorrect])
            if not reason and not enough[i]:
                reason = f"similarity {own[i]:.3f} to the question would not bring the text among the best {self.top}"
            # All texts were searched for together: the first one carries the cost.
            paid = meter if number == 0 else None
            meta = {"similarity": round(float(own[i]), 6), "mean_mutual_cosine": round(spread, 6)}
            poisons.append(self.poison(target, number, texts[i], reason=reason, meter=paid, **meta))
        return poisons

    def _candidates(self, target: Target, wanted: int, meter: Meter) -> Flow[list[str]]:
        """Claims, half of them rewritten, each once."""
        bodies = yield from claims(self, target, wanted - wanted // 2)
        meter.llm_calls += sum(body.calls for body in bodies)
        texts = [body.text for body in bodies]
        again = yield from paraphrases(self, target, texts[: wanted // 2], [meter] * (wanted // 2))
        return list(dict.fromkeys([*texts, *again]))


class Mixed(Disperse):
    """`disperse` over texts that were paraphrased and then given synonyms; the same options."""

    name = "mixed"
    summary = "adaptive: paraphrase, synonyms and dispersion together"
    offline = "rules and a table of words"

    def _candidates(self, target: Target, wanted: int, meter: Meter) -> Flow[list[str]]:
        bodies = yield from claims(self, target, wanted)
        meter.llm_calls += sum(body.calls for body in bodies)
        again = yield from paraphrases(self, target, [body.text for body in bodies], [meter] * wanted)
        rewritten = yield from synonyms(self, target, again, [meter] * wanted, 0.3)
        return list(dict.fromkeys(new.text for new in rewritten))


def select_diverse(similarity: NDArray[np.float64], allowed: ArrayLike, count: int) -> list[int]:
    """A set with low mean pairwise similarity, chosen greedily: the least similar pair, then the text that adds least.

    Args:
        similarity: Shape (n, n).
        allowed: Who may be chosen, shape (n,).
        count: How many.

    Returns:
        At most `count` positions, in the order of choice; ties by lower position. O(n^2 + n count).
    """
    free = np.flatnonzero(np.asarray(allowed, dtype=bool))
    if len(free) <= 1 or count <= 1:
        return [int(i) for i in free[:count]]
    pairs = similarity[np.ix_(free, free)].astype(float)
    np.fill_diagonal(pairs, np.inf)
    chosen = [int(i) for i in np.unravel_index(int(pairs.argmin()), pairs.shape)]
    while len(chosen) < min(count, len(free)):
        added = pairs[:, chosen].sum(axis=1)
        added[chosen] = np.inf
        chosen.append(int(added.argmin()))
    return [int(free[i]) for i in chosen]


def mean_pairwise(similarity: NDArray[np.float64]) -> float:
    """The mean similarity of distinct pairs, 0 without a pair."""
    upper = similarity[np.triu_indices(len(similarity), 1)]
    return float(upper.mean()) if len(upper) else 0.0


def threshold(similarities: Sequence[float] | NDArray[np.float64], top: int) -> float:
    """The similarity that a text needs to be among the best `top`; minus infinity if there is room."""
    ranked = np.sort(np.asarray(similarities, dtype=float))[::-1]
    return float(ranked[top - 1]) if len(ranked) >= top else -np.inf
