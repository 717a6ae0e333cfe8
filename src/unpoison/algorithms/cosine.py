"""Cosine similarity of all pairs, and ranking with defined ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["best_first", "cosine", "inner_products"]

DECIMALS = 12
"""Decimals on which all processors agree: the order of summation, and thus the rounding error, differs."""

SEARCH_DECIMALS = 6
"""Decimals for searches, whose vectors have single precision and may differ between batches."""


def cosine(left: ArrayLike, right: ArrayLike | None = None) -> NDArray[np.float64]:
    """Cosine similarity of every row of `left` with every row of `right`.

    Rows are first divided by their largest component, so that no length overflows or underflows. A zero row has
    similarity 0 to every row, including itself. Rounded to 12 decimals, so that copies have equal similarities.

    Args:
        left: Shape (n, d), any real type.
        right: Shape (m, d); `left` itself if None.

    Returns:
        Shape (n, m), in [-1, 1]. With `right` None it is exactly symmetric, and its diagonal is exactly 1 (0 for zero
        rows).

    Raises:
        ValueError: An array is not two-dimensional or not finite, or the widths differ.

    Complexity: O(n m d) time, O(n m) memory.
    """
    rows = _unit_rows(left)
    columns = rows if right is None else _unit_rows(right)
    if rows.shape[1] != columns.shape[1]:
        raise ValueError(f"left has {rows.shape[1]} columns and right {columns.shape[1]}; encode both with one encoder")
    similarity = np.clip(np.round(rows @ columns.T, DECIMALS), -1.0, 1.0)
    if right is None:
        np.fill_diagonal(similarity, rows.any(axis=1))
    return similarity


def inner_products(rows: ArrayLike, vector: ArrayLike) -> NDArray[np.float64]:
    """The inner product of every row with a vector, rounded to 6 decimals, for comparison in searches.

    Without rounding, the last bits of a similarity would make a search differ between processors.

    Args:
        rows: Shape (n, d), of lengths of about 1.
        vector: Shape (d,).

    Returns:
        Shape (n,). O(n d).
    """
    return np.round(np.asarray(rows, np.float64) @ np.asarray(vector, np.float64), SEARCH_DECIMALS)


def _unit_rows(values: ArrayLike) -> NDArray[np.float64]:
    rows = np.array(values, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors must have shape (n, d), got shape {rows.shape}")
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    if not np.isfinite(largest).all():
        raise ValueError(
            f"vector {int(np.flatnonzero(~np.isfinite(largest))[0])} holds a NaN or an infinity; encode its text again"
        )
    rows /= np.where(largest > 0, largest, 1.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    rows /= np.where(lengths > 0, lengths, 1.0)
    return rows


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
