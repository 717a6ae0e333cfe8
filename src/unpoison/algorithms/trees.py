"""Sums of small decision trees, stored as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Trees", "evaluate"]


BLOCK = 2048
"""Rows per batch, which bounds memory: a text of a million characters has very many."""


class Trees(NamedTuple):
    """T full binary trees of one depth D, stored breadth first.

    Attributes:
        features: The column that each node tests, shape (T, 2^D - 1).
        thresholds: A row goes right if its value is above, shape (T, 2^D - 1).
        leaves: The value of each leaf, shape (T, 2^D).
        base: A constant, added once.
    """

    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]
    base: float


def evaluate(trees: Trees, table: ArrayLike) -> NDArray[np.float64]:
    """The sum over all trees for each row.

    Args:
        trees: The trees.
        table: Shape (n, columns).

    Returns:
        Shape (n,). O(n T D) time, O(T) memory beside it.
    """
    rows = np.asarray(table, float)
    blocks = [_sums(trees, rows[begin : begin + BLOCK]) for begin in range(0, max(len(rows), 1), BLOCK)]
    return np.asarray(np.concatenate(blocks) + trees.base)


def _sums(trees: Trees, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    count, inner = trees.features.shape
    columns = rows.shape[1]
    features, thresholds, leaves, values = (a.ravel() for a in (trees.features, trees.thresholds, trees.leaves, rows))
    begin = np.arange(0, len(rows) * columns, columns)[:, None]
    node = np.zeros((len(rows), count), np.int64)
    tree = np.arange(count)
    for _ in range(int(inner).bit_length()):
        cell = node + inner * tree
        # `take` on flat arrays is twice as fast as indexing by rows and columns.
        node += node + 1 + (values.take(begin + features.take(cell)) > thresholds.take(cell))
    return np.asarray(leaves.take(node + (inner + 1) * tree - inner).sum(axis=1))
