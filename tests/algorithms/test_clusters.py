"""Clusters against what they minimise, and the terms and pairs of RAGDefender by hand."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms.clusters import (
    agglomerative,
    concentration,
    kmeans,
    top_pair_frequency,
    top_terms,
    two_means,
)

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


def symmetric(size: int, pairs: dict[tuple[int, int], float]) -> np.ndarray:
    matrix = np.eye(size)
    for (i, j), value in pairs.items():
        matrix[i, j] = matrix[j, i] = value
    return matrix


POISONS = symmetric(5, {(i, j): 0.97 if j < 4 else 0.3 for i in range(5) for j in range(i + 1, 5)})
FIVE = symmetric(
    5,
    {
        (0, 1): 0.9,
        (0, 2): 0.85,
        (1, 2): 0.8,
        (0, 3): 0.3,
        (1, 3): 0.25,
        (2, 3): 0.3,
        (0, 4): 0.2,
        (1, 4): 0.2,
        (2, 4): 0.1,
        (3, 4): 0.4,
    },
)
TWO = symmetric(2, {(0, 1): 0.7})
THREE = symmetric(3, {(0, 1): 0.95, (0, 2): 0.3, (1, 2): 0.35})
IDENTICAL = np.ones((4, 4))


@pytest.mark.parametrize(
    ("similarity", "paper", "reference", "flipped"),
    [(POISONS, 0, 4, False), (FIVE, 2, 3, False), (TWO, 0, 2, True), (IDENTICAL, 0, 4, True), (THREE, 1, 2, False)],
    ids=["poison majority", "five", "two", "identical", "three"],
)
def test_estimates(similarity, paper, reference, flipped) -> None:
    assert concentration(similarity, "paper").count == paper
    grouping = concentration(similarity, "reference")
    assert (grouping.count, grouping.flipped) == (reference, flipped)


def test_factors_of_the_paper_leave_the_passage_itself_out() -> None:
    grouping = concentration(FIVE, "paper")
    assert grouping.mean == pytest.approx([0.5625, 0.5375, 0.5125, 0.3125, 0.225])
    assert grouping.median == pytest.approx([0.575, 0.525, 0.55, 0.3, 0.2])
    assert grouping.flagged.tolist() == [True, False, True, False, False]


def test_factors_of_the_reference_include_it_and_take_the_lower_median() -> None:
    grouping = concentration(FIVE, "reference")
    assert grouping.mean == pytest.approx([0.65, 0.63, 0.61, 0.45, 0.38])
    assert grouping.median == pytest.approx([0.85, 0.8, 0.8, 0.3, 0.2])
    assert grouping.flagged.tolist() == [True, True, True, False, False]
    even = concentration(symmetric(4, {(0, 1): 0.9, (0, 2): 0.5, (0, 3): 0.1}), "reference")
    assert even.median[0] == 0.5


def test_median_bar_of_the_reference_lies_between_the_two_global_bars() -> None:
    pairs = {(0, 1): 0.3, (0, 4): 0.7, (1, 2): 0.8, (1, 3): 0.9, (1, 4): 0.2, (2, 3): 0.6, (3, 4): 0.8}
    grouping = concentration(
        symmetric(5, {pair: pairs.get(pair, 0) for pair in combinations(range(5), 2)}), "reference"
    )
    assert grouping.mean == pytest.approx([0.4, 0.64, 0.48, 0.66, 0.54])
    assert grouping.median == pytest.approx([0.3, 0.8, 0.6, 0.8, 0.7])
    assert grouping.flagged.tolist() == [False, True, False, True, True], "0.6 < (0.544 + 0.7) / 2 < 0.7"


@pytest.mark.parametrize(
    ("similarity", "rule", "message"), [([[1, 0]], "paper", "shape"), ([[1]], "median", "rule must be")]
)
def test_unusable_input_is_refused(similarity, rule, message) -> None:
    with pytest.raises(ValueError, match=message):
        concentration(similarity, rule)


FIVE_PAIRS = np.array(
    [
        [1, 0.9, 0.85, 0.3, 0.2],
        [0.9, 1, 0.8, 0.25, 0.2],
        [0.85, 0.8, 1, 0.3, 0.1],
        [0.3, 0.25, 0.3, 1, 0.4],
        [0.2, 0.2, 0.1, 0.4, 1],
    ]
)


def test_three_poisons() -> None:
    frequency, pairs = top_pair_frequency(FIVE_PAIRS, 3)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert frequency == pytest.approx([1.5325, 1.45, 1.3625, 0, 0])


def test_four_poisons_and_a_tie_at_the_border() -> None:
    frequency, pairs = top_pair_frequency(FIVE_PAIRS, 4)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2], [3, 4], [0, 3], [2, 3]]
    assert frequency == pytest.approx([1.6225, 1.45, 1.4525, 0.34, 0.16])


def test_rounding_decides_no_tie() -> None:
    noise = np.random.default_rng(0).normal(scale=1e-15, size=(6, 6))
    frequency, pairs = top_pair_frequency(1 + noise + noise.T, 3)
    assert pairs.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert frequency.tolist() == [3, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(("similarity", "count", "message"), [([[1, 0]], 1, "shape"), ([[1]], -1, "negative")])
def test_unusable_input_is_refused_of_pairs(similarity, count, message) -> None:
    with pytest.raises(ValueError, match=message):
        top_pair_frequency(similarity, count)


@given(
    st.integers(2, 9).flatmap(lambda n: arrays(np.float64, (n, n), elements=st.integers(-4, 4).map(lambda v: v / 4))),
    st.integers(0, 10),
)
def test_against_sorting_all_pairs(half, count) -> None:
    matrix = np.triu(half, 1) + np.triu(half, 1).T
    size = len(matrix)
    ranked = sorted(combinations(range(size), 2), key=lambda pair: (-matrix[pair], pair))
    expected = ranked[: max(1, comb(count, 2))]
    frequency, pairs = top_pair_frequency(matrix, count)
    assert [tuple(pair) for pair in pairs.tolist()] == expected
    scores = [sum(np.sign(matrix[p]) * matrix[p] ** 2 for p in expected if i in p) for i in range(size)]
    assert frequency == pytest.approx(scores)


token_lists = st.lists(st.lists(st.sampled_from(["ab", "cd", "ef", "gh"]), max_size=8), max_size=6)

# The words, in no order, that the five passages of RAGDefender's Figure 6 hold besides stop words.
CAPITALS = [
    line.split()
    for line in (
        "capital city city coast france marseille mediterranean port renowned vibrant",
        "capital european france hosts important institutions serves strasbourg",
        "capital city france known la recognized rose toulouse ville",
        "beautiful capital city coastal france functions nice",
        "art celebrated fashion france gastronomy heart iconic influential landmarks paris role serves",
    )
]


def test_capital_of_france() -> None:
    assert top_terms(CAPITALS, 4) == ["city", "france", "capital", "serves"]


@given(token_lists, st.integers(0, 6), st.randoms(use_true_random=False))
def test_top_terms_do_not_depend_on_any_order(documents, count, random) -> None:
    expected = top_terms(documents, count)
    assert len(expected) == min(count, len({token for document in documents for token in document}))
    shuffled = [random.sample(document, len(document)) for document in documents]
    random.shuffle(shuffled)
    assert top_terms(shuffled, count) == expected
