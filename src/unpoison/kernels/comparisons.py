"""How a passage's value compares with those of the other passages of its set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_three", "mean_of_others", "middle"]

Matrix = NDArray[np.float64]


def middle(values: Matrix) -> float:
    """The median of at least one value; numpy's takes twenty times as long for so few."""
    ranked = np.sort(values)
    return float((ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2)


def best_three(values: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The three highest values of each row off the diagonal; of fewer the highest again, 0 for a single row."""
    k = len(values)
    others = np.where(np.eye(k, dtype=bool), -1.0, values)
    ranked = -np.sort(-others, axis=1)
    zero = np.zeros(k)
    first = ranked[:, 0] if k > 1 else zero
    return first, ranked[:, 1] if k > 2 else first, ranked[:, 2] if k > 3 else first


def mean_of_others(values: Matrix) -> Matrix:
    """The mean of each row off the diagonal; 0 for a single row."""
    return np.asarray((values.sum(axis=1) - np.diag(values)) / max(len(values) - 1, 1))
