"""Several objectives at once: the selection of NSGA-II (Deb et al., 2002), every objective to be minimised."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["crowding_distance", "dominates", "fronts", "survivors", "tournament"]


def dominates(left: ArrayLike, right: ArrayLike) -> bool:
    """Whether `left` is nowhere worse than `right` and somewhere better."""
    a, b = np.asarray(left), np.asarray(right)
    return bool((a <= b).all() and (a < b).any())


def fronts(objectives: ArrayLike) -> list[list[int]]:
    """Positions by non-domination rank: the first front is dominated by nobody, and so on.

    Args:
        objectives: Shape (n, m).

    Returns:
        Every position once, in rising order inside each front. O(n^2 m) time and memory.
    """
    values = np.asarray(objectives, dtype=float)
    nowhere_worse = np.all(values[:, None] <= values, axis=2)
    better = np.asarray(nowhere_worse & np.any(values[:, None] < values, axis=2))
    left = np.arange(len(values))
    layers = []
    while len(left):
        free = ~better[np.ix_(left, left)].any(axis=0)
        layers.append(left[free].tolist())
        left = left[~free]
    return layers


def crowding_distance(objectives: ArrayLike) -> NDArray[np.float64]:
    """How lonely each member of one front is: the normalised side lengths of the box between its neighbours.

    Args:
        objectives: Shape (n, m).

    Returns:
        Shape (n,); infinite for the extremes of each objective.
    """
    values = np.asarray(objectives, dtype=float)
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        distance[order[[0, -1]]] = np.inf
        if span > 0:
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def survivors(objectives: ArrayLike, size: int) -> list[int]:
    """The best `size` positions: whole fronts first, then the loneliest of the front that does not fit.

    The first one is the least sum of objectives of the first front, so that "the best" is one and the same.
    """
    values = np.asarray(objectives, dtype=float)
    kept: list[int] = []
    for front in fronts(values):
        lonely = np.argsort(-crowding_distance(values[front]), kind="stable")
        chosen = [front[i] for i in lonely[: size - len(kept)]]
        kept += sorted(chosen, key=lambda i: (values[i].sum(), i))
        if len(kept) >= size:
            break
    return kept


def tournament(values: NDArray[np.float64], lonely: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Two at random: the dominating one, else the lonelier one."""
    first, second = (int(i) for i in rng.integers(len(values), size=2))
    if dominates(values[first], values[second]):
        return first
    if dominates(values[second], values[first]) or lonely[second] > lonely[first]:
        return second
    return first
