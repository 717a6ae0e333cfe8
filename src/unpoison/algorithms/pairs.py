"""Who takes part in the most similar pairs (RAGDefender, stage 2)."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["top_pair_frequency"]

DECIMALS = 12
"""Similarities and scores are rounded here, so that equal ones tie and the lower index decides."""


def top_pair_frequency(
    similarity: ArrayLike, count: int, exponent: float = 2.0
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The most similar pairs and each passage's frequency score in them (RAGDefender, Section 4.2, Eqs. 4-6).

    The p = max(1, count * (count - 1) / 2) most similar pairs each add sgn(sim) * |sim|^exponent to both members.

    Args:
        similarity: Shape (k, k), symmetric; the diagonal is ignored.
        count: The estimated number of adversarial passages, N_adv.
        exponent: The weighting exponent of Eq. 6.

    Returns:
        Frequency scores of shape (k,), and the pairs of shape (p, 2), lower index first in each, the most similar pair
        first, ties by index. p is at most k * (k - 1) / 2.

    Raises:
        ValueError: The shape is wrong or `count` is negative.

    Complexity: O(k^2 + p log p) time, O(k^2) memory.
    """
    matrix = np.asarray(similarity, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"similarity must have shape (k, k), got shape {matrix.shape}")
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    size = len(matrix)
    first, second = np.triu_indices(size, 1)
    values = np.round(matrix[first, second], DECIMALS)
    wanted = min(max(1, comb(count, 2)), len(values))
    if wanted == 0:
        return np.zeros(size), np.zeros((0, 2), np.intp)
    bar = np.partition(values, -wanted)[-wanted]
    above, level = np.flatnonzero(values > bar), np.flatnonzero(values == bar)
    chosen = np.concatenate([above, level[: wanted - len(above)]])
    chosen = chosen[np.lexsort((chosen, -values[chosen]))]
    pairs = np.stack([first[chosen], second[chosen]], axis=1)
    best = values[chosen]
    gains = np.repeat(np.sign(best) * np.abs(best) ** exponent, 2)
    return np.round(np.bincount(pairs.ravel(), gains, minlength=size), DECIMALS), pairs
