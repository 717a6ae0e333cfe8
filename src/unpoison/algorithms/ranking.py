"""Ranking with defined ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["best_first"]


def best_first(scores: ArrayLike, count: int | None = None) -> NDArray[np.intp]:
    """Positions by descending score; equal scores keep their order, so that ties go to the better retrieval rank.

    Scores are rounded to 12 decimals before comparison, so that floating-point noise decides nothing.

    Args:
        scores: Shape (k,).
        count: The number of positions to return; all by default.

    Returns:
        Shape (k,) or (count,). O(k log k); O(k + count log count) for few positions and few ties.
    """
    falling = -np.round(np.asarray(scores, dtype=float), 12)
    if count is None or not 0 < count < falling.size:
        return np.argsort(falling, kind="stable")[:count]
    limit = np.partition(falling, count - 1)[count - 1]
    reach = np.flatnonzero(~(falling > limit))
    return reach[np.argsort(falling[reach], kind="stable")[:count]]
