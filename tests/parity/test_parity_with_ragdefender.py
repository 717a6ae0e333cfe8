from __future__ import annotations

import numpy as np
import pytest
import torch
from ragdefender.grouping.concentration import ConcentrationBasedGrouping
from ragdefender.identification.topk import IdentifyAdversarial

from unpoison.algorithms.clusters import agglomerative, concentration, top_pair_frequency
from unpoison.algorithms.cosine import best_first, cosine

pytestmark = [
    pytest.mark.needs("ragdefender", "torch", "sentence_transformers"),
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def pool(seed: int, size: int, poisons: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, 12)) + 0.3
    vectors[:poisons] = rng.normal(size=12) * 2 + 0.5 * vectors[:poisons]
    return rng.permutation(vectors).astype(np.float32)


def passages(vectors: np.ndarray) -> list[str]:
    return [f"passage {index}" for index in range(len(vectors))]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("size", "poisons"), [(3, 2), (5, 1), (5, 4), (10, 5), (10, 8), (30, 7)])
def test_estimate_of_the_reference_rule(seed, size, poisons) -> None:
    """From 3 passages on: the means of 2 are equal, and the published code lets float32 rounding decide."""
    vectors = pool(seed, size, poisons)
    grouping = ConcentrationBasedGrouping(embedder=None)
    expected = grouping.estimate_n_adv(passages(vectors), embeddings=torch.from_numpy(vectors))
    assert concentration(cosine(vectors), "reference").count == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("size", "count"), [(2, 1), (5, 1), (5, 3), (5, 4), (10, 5), (30, 7), (30, 20)])
def test_selection(seed, size, count) -> None:
    """With one poison the two members of the best pair tie, and the lower index is dropped."""
    vectors = pool(seed, size, count)
    expected = IdentifyAdversarial(embedder=None, p=2).select(
        passages(vectors), count, embeddings=torch.from_numpy(vectors)
    )
    frequency, pairs = top_pair_frequency(cosine(vectors), count)
    selected = best_first(frequency)[:count].tolist()
    assert sorted(selected) == sorted(expected)
    if count == 1:
        assert selected == expected == [min(pairs[0])]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.needs("sklearn")
def test_clusters_of_the_single_hop_grouping(seed) -> None:
    from sklearn import cluster as sklearn

    vectors = pool(seed, 12, 5)
    expected = sklearn.AgglomerativeClustering(n_clusters=2).fit(vectors).labels_
    assert (agglomerative(vectors) == (expected ^ expected[0])).all()
