"""Two clusters of points: hierarchical, 2-means, and scikit-learn's K-means and DBSCAN as in the released code."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.utils.extras import require

__all__ = ["agglomerative", "dbscan", "kmeans", "two_means"]

STARTS = 300
"""Maximum number of starts: every pair of 25 points."""

START_CELLS = 100_000_000
"""Maximum of starts times points squared, which bounds the time of one iteration."""

MIN_STARTS = 10
"""Minimum number of starts, for any number of points."""

STEPS = 100
"""Maximum iterations; a start that has not converged then counts as it is."""

TOLERANCE = 1e-12
"""Relative to the total inertia: of starts that differ by less the first wins, and a point whose distances to both
means differ by less belongs to the first."""


def agglomerative(
    points: ArrayLike,
    linkage: Literal["ward", "average", "complete", "single"] = "ward",
    *,
    split_equal: bool = False,
) -> NDArray[np.intp]:
    """Two clusters by hierarchical merging, Euclidean: the children of the last merge.

    Args:
        points: Shape (k, d).
        linkage: The distance of two clusters.
        split_equal: Split equal points too, the last of them from the rest, as scikit-learn does.

    Returns:
        Shape (k,), labels 0 and 1, 0 being the cluster of point 0. All 0 if all points are equal.

    Raises:
        ValueError: The shape is wrong or the linkage unknown.

    Complexity: O(k^2 d) time, O(k^2) memory.
    """
    vectors = _check_points(points)
    if linkage not in ("ward", "average", "complete", "single"):
        raise ValueError(f"linkage must be ward, average, complete or single, got {linkage!r}")
    size = len(vectors)
    if size < 2 or (not split_equal and (vectors == vectors[0]).all()):
        return np.zeros(size, np.intp)
    from scipy.cluster import hierarchy

    merges = hierarchy.linkage(vectors, linkage)[:, :2].astype(int).tolist()
    labels = [0] * (2 * size - 1)
    labels[merges[-1][1]] = 1
    for step in range(size - 3, -1, -1):
        for child in merges[step]:
            labels[child] = labels[size + step]
    return _from_first(np.array(labels[:size], np.intp))


def two_means(points: ArrayLike) -> NDArray[np.intp]:
    """Two clusters of minimum inertia by Lloyd's iteration (K-means with K = 2), deterministic.

    The iteration starts from every pair of points if there are few, else from pairs spread evenly over all pairs; all
    starts are computed together from inner products only. The best wins, among equals the first.

    Args:
        points: Shape (k, d).

    Returns:
        Shape (k,), labels 0 and 1, 0 being the cluster of point 0. All 0 if all points are equal.

    Raises:
        ValueError: The shape is wrong.

    Complexity: O(k^2 d + steps * starts * k^2) time, with starts * k^2 bounded; O(k * (k + starts)) memory.
    """
    vectors = _check_points(points)
    size = len(vectors)
    if size < 2 or (vectors == vectors[0]).all():
        return np.zeros(size, np.intp)
    vectors = vectors / np.abs(vectors).max()
    vectors -= vectors.mean(axis=0)
    gram = vectors @ vectors.T
    slack = TOLERANCE * np.trace(gram)
    first, second = _pairs(size)
    # Squared distance to the first point minus that to the second, over 2.
    lead = gram[second] - gram[first] - (np.diag(gram)[second] - np.diag(gram)[first])[:, None] / 2
    member = (lead > slack).astype(np.float64)
    between = np.zeros(len(member))
    open_starts = np.arange(len(member))
    for _ in range(STEPS):
        inner = member[open_starts]
        count = inner.sum(axis=1)
        sums = inner @ gram
        square = (inner * sums).sum(axis=1)
        # The points are centred, so the two cluster sums are opposite and one inner product gives both distances.
        both = np.maximum(count * (size - count), 1)
        between[open_starts] = square * size / both
        bar = square * (size - 2 * count) / (2 * both)
        moved = (sums > bar[:, None] + slack).astype(np.float64)
        changed = (moved != inner).any(axis=1) & (count > 0)
        open_starts = open_starts[changed]
        if not open_starts.size:
            break
        member[open_starts] = moved[changed]
    best = np.argmax(between >= between.max() - slack)
    return _from_first(member[best].astype(np.intp))


def _pairs(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The pairs of points to start from, in lexicographic order: all, or the allowed number, evenly spread."""
    total = size * (size - 1) // 2
    allowed = max(MIN_STARTS, min(STARTS, START_CELLS // size**2))
    if total <= allowed:
        return np.triu_indices(size, 1)
    numbers = np.arange(allowed) * total // allowed
    begins = np.concatenate([[0], np.cumsum(np.arange(size - 1, 1, -1))])
    first = np.searchsorted(begins, numbers, side="right") - 1
    return first, numbers - begins[first] + first + 1


def _from_first(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.asarray(labels ^ labels[0], np.intp)


def _check_points(points: ArrayLike) -> NDArray[np.float64]:
    vectors = np.asarray(points, np.float64)
    if vectors.ndim != 2:
        raise ValueError(f"points must have shape (k, d), got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise ValueError("points must be finite numbers; encode the texts again")
    return vectors


def kmeans(points: ArrayLike, *, steps: int = 300) -> NDArray[np.intp]:
    """Two clusters by scikit-learn's K-means (10 starts, seed 0).

    Args:
        points: Shape (k, d).
        steps: Maximum iterations of a start.

    Returns:
        Shape (k,), labels 0 and 1; all 0 for fewer than 2 different points.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    cluster = require("sklearn.cluster", "the K-means of the reference")
    vectors = np.asarray(points)
    if len(np.unique(vectors, axis=0)) < 2:
        return np.zeros(len(vectors), np.intp)
    labels = cluster.KMeans(n_clusters=2, n_init=10, max_iter=steps, random_state=0).fit(vectors).labels_
    return np.asarray(labels, np.intp)


def dbscan(points: ArrayLike, eps: float = 0.5, min_samples: int = 5) -> NDArray[np.intp]:
    """Clusters by density with scikit-learn's DBSCAN.

    Args:
        points: Shape (k, d).
        eps: Maximum Euclidean distance of neighbours.
        min_samples: Minimum neighbours of a core point, including itself.

    Returns:
        Shape (k,), labels from 0; -1 for points in no cluster.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    cluster = require("sklearn.cluster", "DBSCAN")
    vectors = np.asarray(points, np.float64)
    if not len(vectors):
        return np.zeros(0, np.intp)
    return np.asarray(cluster.DBSCAN(eps=eps, min_samples=min_samples).fit(vectors).labels_, np.intp)
