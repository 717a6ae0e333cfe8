from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from unpoison.algorithms.cosine import best_first, cosine, inner_products

matrices = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=7),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)


def test_by_hand() -> None:
    assert cosine([[3, 4], [4, 3]]) == pytest.approx(np.array([[1, 0.96], [0.96, 1]]))
    assert cosine([[1, 0]], [[0, 2], [-5, 0]]).tolist() == [[0, -1]]


def test_zero_rows_are_similar_to_nothing() -> None:
    assert cosine([[0, 0], [1, 0]]).tolist() == [[0, 0], [0, 1]]


def test_neither_huge_nor_tiny_vectors_lose_their_direction() -> None:
    largest, smallest = np.finfo(np.float64).max, 5e-324
    similarity = cosine([[largest, largest], [smallest, smallest], [1, 1]])
    assert similarity == pytest.approx(np.ones((3, 3)))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([1.0, 2.0], None, "shape"),
        ([[1.0, 2.0]], [[1.0]], "left has 2 columns and right 1"),
        ([[1.0], [np.nan]], None, "vector 1 holds a NaN"),
        ([[np.inf]], None, "vector 0 holds a NaN or an infinity"),
    ],
)
def test_unusable_vectors_are_refused(left, right, message) -> None:
    with pytest.raises(ValueError, match=message):
        cosine(left, right)


@given(matrices)
def test_symmetry_range_and_diagonal(vectors) -> None:
    similarity = cosine(vectors)
    assert (similarity == similarity.T).all()
    assert (np.abs(similarity) <= 1).all()
    assert (np.diag(similarity) == vectors.any(axis=1)).all()


def test_exact_symmetry_of_many_float32_rows() -> None:
    similarity = cosine(np.random.default_rng(0).normal(size=(150, 384)).astype(np.float32))
    assert (similarity == similarity.T).all()


def test_best_first() -> None:
    assert best_first([0.1, 0.9, 0.5]).tolist() == [1, 2, 0]
    assert best_first([]).tolist() == []


def test_ties_go_to_the_better_rank() -> None:
    assert best_first([0.5, 0.9, 0.5, 0.9]).tolist() == [1, 3, 0, 2]


def test_noise_decides_no_tie() -> None:
    noise = np.random.default_rng(0).normal(scale=1e-15, size=50)
    assert best_first(0.7 + noise).tolist() == list(range(50))
    assert best_first([0.1 + 0.2, 0.3, 0.3 + 1e-9]).tolist() == [2, 0, 1]


@pytest.mark.parametrize("count", [0, 1, 3, 49, 50, 60])
def test_the_first_few_are_the_beginning_of_all(count: int) -> None:
    scores = np.round(np.random.default_rng(1).normal(size=50), 1)  # with ties across every cut
    scores[7] = np.nan
    assert best_first(scores, count).tolist() == best_first(scores)[:count].tolist()


def test_a_search_compares_to_six_decimals_and_a_ranking_to_twelve() -> None:
    assert inner_products([[0.5 + 4e-7, 0], [0.5, 9], [0.5 + 2e-6, 0]], [1, 0]).tolist() == [0.5, 0.5, 0.500002]
    assert best_first([0.5, 0.5 + 4e-13, 0.5 + 2e-12]).tolist() == [2, 0, 1]
