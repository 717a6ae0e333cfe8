"""Orders in which ties are decided on purpose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["best_first"]


def best_first(scores: ArrayLike) -> NDArray[np.intp]:
    """Positions by falling score; equal scores keep their order, so that ties go to the better retrieval rank.

    Scores are compared after rounding to 12 decimals: what differs by less is noise of the arithmetic, and noise must
    not decide.

    Args:
        scores: Shape (k,).

    Returns:
        Shape (k,). O(k log k).
    """
    return np.argsort(-np.round(np.asarray(scores, dtype=float), 12), kind="stable")
