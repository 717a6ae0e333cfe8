"""scikit-learn's clusterings, for RAGDefender's comparison of clusterings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.utils.extras import require

__all__ = ["dbscan", "kmeans"]


def kmeans(points: ArrayLike, seed: int = 0) -> NDArray[np.intp]:
    """Two clusters by scikit-learn's K-means (10 starts).

    Args:
        points: Shape (k, d).
        seed: The random state.

    Returns:
        Shape (k,), labels 0 and 1; fewer than 2 points are all 0.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    cluster = require("sklearn.cluster", "the K-means of the reference")
    vectors = np.asarray(points, np.float64)
    if len(np.unique(vectors, axis=0)) < 2:
        return np.zeros(len(vectors), np.intp)
    labels = cluster.KMeans(n_clusters=2, n_init=10, random_state=seed).fit(vectors).labels_
    return np.asarray(labels, np.intp)


def dbscan(points: ArrayLike, eps: float = 0.5, min_samples: int = 5) -> NDArray[np.intp]:
    """Clusters by density with scikit-learn's DBSCAN.

    Args:
        points: Shape (k, d).
        eps: How near two points must be to be neighbours, Euclidean.
        min_samples: Neighbours, itself included, that make a point a core point.

    Returns:
        Shape (k,), labels from 0 upwards; -1 for points in no cluster.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    cluster = require("sklearn.cluster", "DBSCAN")
    vectors = np.asarray(points, np.float64)
    if not len(vectors):
        return np.zeros(0, np.intp)
    return np.asarray(cluster.DBSCAN(eps=eps, min_samples=min_samples).fit(vectors).labels_, np.intp)
