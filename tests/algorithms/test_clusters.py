from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms.clusters import agglomerative, dbscan, kmeans, two_means

LINKAGES = ["ward", "average", "complete", "single"]
EXAMPLE = np.array([[1, 0, 0], [0.99, 0.1, 0], [0.98, 0, 0.1], [0, 1, 0], [0, 0.1, 1]])

points = st.tuples(st.integers(0, 9), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-20, 20).map(lambda v: v / 4))
)


def inertia(vectors: np.ndarray, labels: np.ndarray) -> float:
    inertia_found = 0.0
    for label in (0, 1):
        members = vectors[labels == label]
        if len(members):
            inertia_found += ((members - members.mean(axis=0)) ** 2).sum()
    return inertia_found


def lloyd(vectors: np.ndarray, first: int, second: int) -> np.ndarray:
    centers = vectors[[first, second]]
    labels = None
    while True:
        distances = ((vectors[:, None] - centers) ** 2).sum(axis=2)
        moved = (distances[:, 1] < distances[:, 0]).astype(int)
        if labels is not None and (moved == labels).all():
            return labels
        labels = moved
        if labels.min() == labels.max():
            return labels
        centers = np.array([vectors[labels == label].mean(axis=0) for label in (0, 1)])


def test_trustrag_example() -> None:
    scaled = (EXAMPLE - EXAMPLE.mean(axis=0)) / EXAMPLE.std(axis=0)
    unit = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    assert two_means(unit).tolist() == [0, 0, 0, 1, 1]


def test_linkages_differ() -> None:
    chain = np.array([[0.0], [1.0], [2.0], [3.0], [4.4], [5.9]])
    assert agglomerative(chain, "single").tolist() == [0, 0, 0, 0, 0, 1]
    assert agglomerative(chain, "ward").tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("split", [agglomerative, two_means])
@pytest.mark.parametrize(("vectors", "message"), [([1.0], "shape"), ([[np.nan], [0]], "finite")])
def test_unusable_points_are_refused(split, vectors, message) -> None:
    with pytest.raises(ValueError, match=message):
        split(vectors)


@given(points, st.sampled_from(LINKAGES))
def test_agglomerative_makes_two_clusters_where_it_can(vectors, linkage) -> None:
    labels = agglomerative(vectors, linkage)
    assert labels.shape == (len(vectors),)
    if len(vectors):
        assert labels[0] == 0
        assert set(labels) == ({0, 1} if len(np.unique(vectors, axis=0)) > 1 else {0})


@given(points)
def test_two_means_is_as_good_as_every_start(vectors) -> None:
    labels = two_means(vectors)
    if len(np.unique(vectors, axis=0)) < 2:
        assert not labels.any()
        return
    assert labels[0] == 0
    assert labels.any()
    best = inertia(vectors, labels)
    for i in range(len(vectors)):
        for j in range(i):
            assert best <= inertia(vectors, lloyd(vectors, j, i)) + 1e-6


needs_sklearn = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")
GROUPS = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [0.0, 0.1], [9.0, 9.1]])


@needs_sklearn
def test_kmeans_splits_two_groups() -> None:
    labels = kmeans(GROUPS)
    assert set(labels) == {0, 1}
    assert labels[0] == labels[1] == labels[3] != labels[2] == labels[4]


@needs_sklearn
def test_dbscan_leaves_noise_out() -> None:
    assert dbscan(GROUPS, eps=0.2, min_samples=3).tolist() == [0, 0, -1, 0, -1]
