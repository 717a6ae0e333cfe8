from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from unpoison.algorithms.reference_clusters import dbscan, kmeans

GROUPS = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0], [0.0, 0.1], [9.0, 9.1]])


def test_kmeans_splits_two_groups() -> None:
    labels = kmeans(GROUPS)
    assert set(labels) == {0, 1}
    assert labels[0] == labels[1] == labels[3] != labels[2] == labels[4]


def test_kmeans_is_the_same_for_the_same_seed() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 4))
    assert (kmeans(vectors, seed=7) == kmeans(vectors, seed=7)).all()


def test_dbscan_leaves_noise_out() -> None:
    assert dbscan(GROUPS, eps=0.2, min_samples=3).tolist() == [0, 0, -1, 0, -1]


@pytest.mark.parametrize("vectors", [np.zeros((0, 2)), np.zeros((1, 2)), np.ones((4, 2))])
def test_no_two_different_points(vectors) -> None:
    assert kmeans(vectors).tolist() == [0] * len(vectors)
    assert len(dbscan(vectors)) == len(vectors)
