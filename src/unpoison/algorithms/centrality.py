"""Eigenvector centrality by power iteration, as RADAR defines it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["eigenvector_centrality", "power_iteration"]

ROUNDING = 1e-12
"""A spread below this is what rounding makes of equal values; divided by itself it would decide who is central."""


def eigenvector_centrality(
    similarity: ArrayLike, *, self_loop: float = 0.01, steps: int = 10, delta: float = 1e-8
) -> NDArray[np.float64]:
    """Consensus scores, rescaled so that the least central node has 0 (RADAR, Appendix F, Eqs. 32-36).

    Where all nodes are equally central the rescaling gives 0 to every one of them; `power_iteration` returns the
    values before it.

    Args:
        similarity: Shape (k, k), non-negative, symmetric.
        self_loop: Added to the diagonal (Eq. 32).
        steps: Power iterations (Eq. 35).
        delta: Keeps both divisions from dividing by 0.

    Returns:
        Shape (k,), in [0, 1).

    Complexity: O(steps * k^2) time, O(k^2) memory.
    """
    vector = power_iteration(similarity, self_loop=self_loop, steps=steps, delta=delta)
    if not vector.size:
        return vector
    above = vector - vector.min()
    spread = above.max()
    return np.asarray(above / (spread + delta) if spread > ROUNDING else np.zeros(len(vector)))


def power_iteration(
    similarity: ArrayLike, *, self_loop: float = 0.01, steps: int = 10, delta: float = 1e-8
) -> NDArray[np.float64]:
    """The principal eigenvector after a fixed number of steps (RADAR, Appendix F, Eqs. 32-35).

    Args:
        similarity: Shape (k, k), non-negative, symmetric.
        self_loop: Added to the diagonal.
        steps: How many times the uniform vector is multiplied and normalised.
        delta: Added to the norm.

    Returns:
        Shape (k,), non-negative, Euclidean length about 1.

    Raises:
        ValueError: The shape is wrong.
    """
    matrix = np.array(similarity, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"similarity must have shape (k, k), got shape {matrix.shape}")
    size = len(matrix)
    matrix.flat[:: size + 1] += self_loop
    vector = np.full(size, 1 / max(size, 1))
    for _ in range(steps):
        vector = matrix @ vector
        vector /= np.sqrt(vector @ vector) + delta
    return vector
