from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms.pairs import top_pair_frequency

FIVE = np.array(
    [
        [1, 0.9, 0.85, 0.3, 0.2],
        [0.9, 1, 0.8, 0.25, 0.2],
        [0.85, 0.8, 1, 0.3, 0.1],
        [0.3, 0.25, 0.3, 1, 0.4],
        [0.2, 0.2, 0.1, 0.4, 1],
    ]
)


def test_one_poison_ties_by_construction() -> None:
    frequency, pairs = top_pair_frequency(FIVE, 1)
    assert pairs.tolist() == [[0, 1]]
    assert frequency.tolist() == [0.81, 0.81, 0, 0, 0]


def test_three_poisons() -> None:
    frequency, pairs = top_pair_frequency(FIVE, 3)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert frequency == pytest.approx([1.5325, 1.45, 1.3625, 0, 0])


def test_four_poisons_and_a_tie_at_the_border() -> None:
    frequency, pairs = top_pair_frequency(FIVE, 4)
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2], [3, 4], [0, 3], [2, 3]]
    assert frequency == pytest.approx([1.6225, 1.45, 1.4525, 0.34, 0.16])


def test_estimate_of_none_still_looks_at_one_pair() -> None:
    assert top_pair_frequency(FIVE, 0)[1].tolist() == [[0, 1]]


def test_no_more_pairs_than_there_are() -> None:
    assert len(top_pair_frequency(FIVE, 50)[1]) == 10


def test_negative_similarities_keep_their_sign() -> None:
    frequency, _ = top_pair_frequency([[1, -0.5], [-0.5, 1]], 1)
    assert frequency.tolist() == [-0.25, -0.25]
    assert top_pair_frequency([[1, -0.5], [-0.5, 1]], 1, exponent=1)[0].tolist() == [-0.5, -0.5]


def test_rounding_decides_no_tie() -> None:
    noise = np.random.default_rng(0).normal(scale=1e-15, size=(6, 6))
    frequency, pairs = top_pair_frequency(1 + noise + noise.T, 3)
    assert pairs.tolist() == [[0, 1], [0, 2], [0, 3]]
    assert frequency.tolist() == [3, 1, 1, 1, 0, 0]


@pytest.mark.parametrize("size", [0, 1])
def test_too_few_for_a_pair(size) -> None:
    frequency, pairs = top_pair_frequency(np.ones((size, size)), 3)
    assert frequency.tolist() == [0] * size
    assert pairs.shape == (0, 2)


@pytest.mark.parametrize(("similarity", "count", "message"), [([[1, 0]], 1, "shape"), ([[1]], -1, "negative")])
def test_unusable_input_is_refused(similarity, count, message) -> None:
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
