"""Orders in which ties are decided on purpose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["best_first"]


def best_first(scores: ArrayLike, count: int | None = None) -> NDArray[np.intp]:
    """Positions by falling score; equal scores keep their order, so that ties go to the better retrieval rank.

    Scores are compared after rounding to 12 decimals: what differs by less is noise of the arithmetic, and noise must
    not decide.

    Args:
        scores: Shape (k,).
        count: Only the first so many; all by default.

    Returns:
        Shape (k,) or (count,). O(k log k); O(k + count log count) where few are asked for and few are tied.
    """
    falling = -np.round(np.asarray(scores, dtype=float), 12)
    if count is None or not 0 < count < falling.size:
        return np.argsort(falling, kind="stable")[:count]
    limit = np.partition(falling, count - 1)[count - 1]
    reach = np.flatnonzero(~(falling > limit))
    return reach[np.argsort(falling[reach], kind="stable")[:count]]
