"""Centrality of nodes in a similarity graph: eigenvector centrality (RADAR) and weighted PageRank (GRADA)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["eigenvector_centrality", "pagerank", "power_iteration"]

ROUNDING = 1e-12
"""A smaller spread is rounding noise of equal values; normalised, it would decide which node is central."""


SELF_LOOP, STEPS, DELTA = 0.01, 10, 1e-8
"""Added to the diagonal (Eq. 32); power iterations (Eq. 35); avoids division by 0."""


def eigenvector_centrality(similarity: ArrayLike) -> NDArray[np.float64]:
    """Consensus scores, rescaled so that the least central node has 0 (RADAR, Appendix F, Eqs. 32-36).

    If all nodes are equally central, all get 0; `power_iteration` returns the values before rescaling.

    Args:
        similarity: Shape (k, k), non-negative, symmetric.

    Returns:
        Shape (k,), in [0, 1).

    Complexity: O(k^2) time and memory.
    """
    vector = power_iteration(similarity)
    if not vector.size:
        return vector
    above = vector - vector.min()
    spread = above.max()
    return np.asarray(above / (spread + DELTA) if spread > ROUNDING else np.zeros(len(vector)))


def power_iteration(similarity: ArrayLike) -> NDArray[np.float64]:
    """The principal eigenvector after `STEPS` multiplications of the uniform vector (RADAR, Appendix F, Eqs. 32-35).

    Args:
        similarity: Shape (k, k), non-negative, symmetric.

    Returns:
        Shape (k,), non-negative, Euclidean length about 1.

    Raises:
        ValueError: The shape is wrong.
    """
    matrix = np.array(similarity, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"similarity must have shape (k, k), got shape {matrix.shape}")
    size = len(matrix)
    matrix.flat[:: size + 1] += SELF_LOOP
    vector = np.full(size, 1 / max(size, 1))
    for _ in range(STEPS):
        vector = matrix @ vector
        vector /= np.sqrt(vector @ vector) + DELTA
    return vector


DECIMALS = 12
"""Decimals of scores, well above the solver's error, so that equal nodes get equal scores."""


def pagerank(weights: ArrayLike, damping: float = 0.85, teleport: ArrayLike | None = None) -> NDArray[np.float64]:
    """The fixpoint of the damped score propagation (GRADA, Section 3, Eq. 1).

    s_i = damping * sum_j (w_ji / sum_k w_jk) s_j + (1 - damping) * teleport_i

    A node without edges passes nothing on, so it keeps only its teleport term and the scores sum to less than 1.
    networkx spreads such mass evenly; with a uniform teleport vector its scores are these divided by their sum.

    Args:
        weights: Shape (k, k), non-negative; row j has the outgoing edges of node j.
        damping: In [0, 1).
        teleport: Shape (k,), non-negative with sum 1; uniform if None. The fixpoint does not depend on the start
            vector, so a query-dependent start is expressed here.

    Returns:
        Shape (k,), non-negative, rounded to 12 decimals.

    Raises:
        ValueError: A shape, a sign or the damping is wrong.

    Complexity: one dense solution, in O(k^3) time and O(k^2) memory.
    """
    edges = np.asarray(weights, np.float64)
    if edges.ndim != 2 or edges.shape[0] != edges.shape[1]:
        raise ValueError(f"weights must have shape (k, k), got shape {edges.shape}")
    size = len(edges)
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be in [0, 1), got {damping}")
    if not (np.isfinite(edges).all() and (edges >= 0).all()):
        raise ValueError("weights must be finite and non-negative; clip negative similarities to 0 first")
    if size == 0:
        return np.zeros(0)
    base = np.full(size, 1 / size) if teleport is None else np.asarray(teleport, np.float64)
    if teleport is not None and not (base.shape == (size,) and (base >= 0).all() and np.isclose(base.sum(), 1.0)):
        raise ValueError(f"teleport must be a distribution of shape ({size},): non-negative with sum 1")
    edges = edges / (edges.max() or 1.0)
    leaving = edges.sum(axis=1, keepdims=True)
    transitions = edges / np.where(leaving > 0, leaving, 1.0)
    jump = (1 - damping) * base
    # The columns of I - d P' are strictly diagonally dominant for d < 1: the system has exactly one solution.
    return np.round(np.linalg.solve(np.eye(size) - damping * transitions.T, jump), DECIMALS)
