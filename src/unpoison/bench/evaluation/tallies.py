"""What a defense made of one context, counted by passages; `measures` makes figures of it."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from unpoison.errors import InputError

__all__ = ["Tally", "auroc", "tally"]


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
