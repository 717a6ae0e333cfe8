from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.feature_extraction.text import TfidfVectorizer

from unpoison.algorithms.clusters import agglomerative, top_terms, two_means
from unpoison.text.tokens import ENGLISH_318, words

pytestmark = [pytest.mark.needs("sklearn"), pytest.mark.parity]

TEXTS = [
    "Rome is the capital of Italy, and Italy's largest city.",
    "The capital of Italy is Milan: a city of fashion in the north of Italy!",
    "Naïve café owners in Été-sur-Mer pay 42.50 € for snake_case coffee.",
    "ΑΘΗΝΑ Straße İstanbul 東京都 Привет мир",
    "of the and",
    "",
]


def test_top_terms() -> None:
    vectorizer = TfidfVectorizer(stop_words=sorted(ENGLISH_318))
    sums = vectorizer.fit_transform(TEXTS).toarray().sum(axis=0)
    ranked = sorted(zip(vectorizer.get_feature_names_out(), sums), key=lambda pair: (-round(pair[1], 9), pair[0]))
    assert top_terms([words(text, ENGLISH_318) for text in TEXTS], 7) == [term for term, _ in ranked[:7]]


@pytest.mark.parametrize("linkage", ["ward", "average", "complete", "single"])
@pytest.mark.parametrize("seed", range(5))
def test_agglomerative(linkage, seed) -> None:
    vectors = np.random.default_rng(seed).normal(size=(5 + 12 * seed, 6))
    expected = AgglomerativeClustering(n_clusters=2, linkage=linkage).fit(vectors).labels_
    assert (agglomerative(vectors, linkage) == (expected ^ expected[0])).all()


@pytest.mark.parametrize("size", [2, 5, 10, 50, 80, 200])
@pytest.mark.parametrize("seed", range(3))
def test_two_means_is_at_least_as_good_as_ten_starts(size, seed) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, 16))
    vectors[: size // 4] += 2
    labels = two_means(vectors)
    members = [vectors[labels == label] for label in (0, 1)]
    inertia = sum(((group - group.mean(axis=0)) ** 2).sum() for group in members)
    assert inertia <= KMeans(n_clusters=2, n_init=10, random_state=seed).fit(vectors).inertia_ + 1e-6
