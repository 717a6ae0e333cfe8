"""What a defense saves and what it costs, counted.

Undefined values are nan, never 0: a precision without anything dropped, a recall without any poison, a retention
without any clean passage. Shares lie in [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import nan
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.errors import InputError
from unpoison.evaluation.matching import abstains
from unpoison.types import Screening

__all__ = [
    "Detection",
    "Tally",
    "auroc",
    "detection",
    "final_order",
    "jam_rate",
    "rank_histogram",
    "ranks_of",
    "rpr_context",
    "rpr_injected",
    "share",
    "tally",
]


def share(part: float, whole: float) -> float:
    """`part / whole`, nan when there is no whole."""
    return part / whole if whole else nan


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of one context; positive means dropped.

    Attributes:
        poison_dropped, poison_kept: True positives and false negatives.
        clean_dropped, clean_kept: False positives and true negatives; gold passages are clean.
        gold_dropped, gold_kept: The gold passages among the clean ones.
    """

    poison_dropped: int
    poison_kept: int
    clean_dropped: int
    clean_kept: int
    gold_dropped: int
    gold_kept: int

    @property
    def poisoned(self) -> bool:
        """Whether any poison is left."""
        return self.poison_kept > 0

    @property
    def damaged(self) -> bool:
        """Whether any clean passage was dropped."""
        return self.clean_dropped > 0

    @property
    def emptied(self) -> bool:
        """Whether nothing is left of a context that held something."""
        return self.poison_kept + self.clean_kept == 0 and self.poison_dropped + self.clean_dropped > 0

    @property
    def precision(self) -> float:
        return share(self.poison_dropped, self.poison_dropped + self.clean_dropped)

    @property
    def recall(self) -> float:
        """Also RAGDefender's detection rate."""
        return share(self.poison_dropped, self.poison_dropped + self.poison_kept)

    @property
    def f1(self) -> float:
        return share(2 * self.poison_dropped, 2 * self.poison_dropped + self.clean_dropped + self.poison_kept)

    @property
    def clean_retention(self) -> float:
        """Clean passages kept by clean passages given (TrustRAG's CRR)."""
        return share(self.clean_kept, self.clean_kept + self.clean_dropped)

    @property
    def gold_retention(self) -> float:
        return share(self.gold_kept, self.gold_kept + self.gold_dropped)

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def tally(count: int, kept: Iterable[int], poison: AbstractSet[int], gold: AbstractSet[int] = frozenset()) -> Tally:
    """Count what a defense kept of a context.

    Args:
        count: Passages in the context.
        kept: Positions that the defense kept, each once.
        poison: Positions of the poisoned passages.
        gold: Positions of the gold passages.

    Raises:
        InputError: A position outside the context, or one that is poison and gold at once.
    """
    stays = frozenset(kept)
    outside = [i for i in stays | poison | gold if not 0 <= i < count]
    if outside:
        raise InputError(f"position {min(outside)} lies outside a context of {count} passages; positions are 0-based")
    if poison & gold:
        raise InputError(f"position {min(poison & gold)} is marked poison and gold; mark it once")
    clean = frozenset(range(count)) - poison
    return Tally(
        poison_dropped=len(poison - stays),
        poison_kept=len(poison & stays),
        clean_dropped=len(clean - stays),
        clean_kept=len(clean & stays),
        gold_dropped=len(gold - stays),
        gold_kept=len(gold & stays),
    )


@dataclass(frozen=True, slots=True)
class Detection:
    """Precision, recall and F1 of dropping poison; nan where undefined."""

    precision: float
    recall: float
    f1: float


def detection(tallies: Sequence[Tally], average: Literal["micro", "macro"] = "micro") -> Detection:
    """Precision, recall and F1 over questions.

    Args:
        tallies: One per question.
        average: `micro` pools all passages; `macro` is the mean over the questions where the value is defined.
    """
    if average == "micro":
        pooled = sum(tallies, Tally(0, 0, 0, 0, 0, 0))
        return Detection(pooled.precision, pooled.recall, pooled.f1)
    return Detection(*(_mean_defined([getattr(t, name) for t in tallies]) for name in ("precision", "recall", "f1")))


def _mean_defined(values: Sequence[float]) -> float:
    found = [value for value in values if value == value]  # nan differs from itself
    return share(sum(found), len(found))


def auroc(suspicion: ArrayLike, poison: ArrayLike) -> float:
    """The probability that a poisoned passage is more suspicious than a clean one, ties counting one half.

    Args:
        suspicion: Shape (n,), higher is more suspicious (the negated score of a verdict).
        poison: Shape (n,), whether each passage is poisoned.

    Returns:
        In [0, 1]; nan without a poisoned or without a clean passage. O(n log n).

    Raises:
        InputError: Different shapes, or a suspicion that is nan.
    """
    values, positive = np.asarray(suspicion, float), np.asarray(poison, bool)
    if values.shape != positive.shape or values.ndim != 1:
        raise InputError(f"suspicion and poison must have one shape (n,), got {values.shape} and {positive.shape}")
    if np.isnan(values).any():
        raise InputError(f"suspicion[{int(np.argmax(np.isnan(values)))}] is nan; leave such passages out")
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return nan
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    midranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(midranks[level][positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def rpr_injected(retrieved: int, injected: int) -> float:
    """Real poisoned rate as TrustRAG's text defines it: poisons retrieved by poisons injected."""
    return share(retrieved, injected)


def rpr_context(in_context: int, k: int, questions: int = 1) -> float:
    """Real poisoned rate as TrustRAG's tables count it: poisons in the contexts by k times questions.

    The denominator stays k times questions after a defense has dropped passages.
    """
    return share(in_context, k * questions)


def final_order(screening: Screening) -> tuple[int, ...]:
    """All positions in the order in which a defense trusts them: the kept best first, then the dropped by score.

    Dropped passages of equal score stay in input order.
    """
    dropped = sorted(screening.dropped_indices, key=lambda i: -screening.verdicts[i].score)
    return (*screening.kept_indices, *dropped)


def ranks_of(order: Sequence[int], positions: AbstractSet[int]) -> list[int]:
    """The 1-based ranks that some positions have in an order, ascending."""
    return [rank for rank, index in enumerate(order, 1) if index in positions]


def rank_histogram(ranks: Iterable[int], size: int) -> NDArray[np.int64]:
    """How often each 1-based rank occurs, shape (size,); GRADA, Figure 4.

    Raises:
        InputError: A rank outside 1 to `size`.
    """
    found = np.asarray(list(ranks), np.int64)
    if found.size and not 1 <= int(found.min()) <= int(found.max()) <= size:
        raise InputError(
            f"ranks must lie in 1 to {size}, got {int(found.min())} to {int(found.max())}; ranks are 1-based"
        )
    return np.bincount(found - 1, minlength=size) if found.size else np.zeros(size, np.int64)


def jam_rate(clean_answered: Sequence[bool], answers: Sequence[bool], replies: Sequence[str]) -> float:
    """Jamming's success (Shafran et al.): of the questions answered without an attack, the share no longer answered.

    Args:
        clean_answered: Whether the clean system answers the question.
        answers: Whether a judge says that the reply under attack answers it, correctly or not.
        replies: The replies under attack; one that says "I don't know" is no answer, whatever the judge says.
    """
    jammed = [
        not answer or abstains(reply, "jamming")
        for clean, answer, reply in zip(clean_answered, answers, replies, strict=True)
        if clean
    ]
    return share(sum(jammed), len(jammed))
