"""RADAR's energy of labels, term by term, to compare with what the minimum cut finds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def cut_value(labels: ArrayLike, source: ArrayLike, sink: ArrayLike, pairwise: ArrayLike) -> float:
    """Of labels of shape (k,), 1 on the source side."""
    y, keep, drop, edges = (np.asarray(values, float) for values in (labels, source, sink, pairwise))
    parted = np.abs(y[:, None] - y)
    return float(((1 - y) * keep + y * drop).sum() + (np.triu(edges, 1) * np.triu(parted, 1)).sum())
