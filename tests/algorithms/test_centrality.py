from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms.centrality import eigenvector_centrality, power_iteration

AGREEMENT = np.array([[1, 0.9, 0.8, 0.05], [0.9, 1, 0.85, 0.05], [0.8, 0.85, 1, 0.05], [0.05, 0.05, 0.05, 1]])

matrices = st.integers(1, 9).flatmap(lambda n: arrays(np.float64, (n, n), elements=st.floats(0, 1, width=32)))


def test_worked_example() -> None:
    assert eigenvector_centrality(AGREEMENT) == pytest.approx([0.9798, 1, 0.9580, 0], abs=5e-5)


def test_unanimity_collapses_to_zero() -> None:
    assert eigenvector_centrality(np.full((5, 5), 0.9)).tolist() == [0] * 5
    assert np.ptp(power_iteration(np.full((5, 5), 0.9))) < 1e-15


@pytest.mark.seeded
def test_what_rounding_leaves_of_equals_is_not_blown_up() -> None:
    """Every row holds the same numbers in another order: all are equally central, and sum to other last bits."""
    row = np.random.default_rng(0).random(9)
    rows = np.array([np.roll(row, i) for i in range(9)])
    assert np.ptp(power_iteration(rows)) > 0
    assert eigenvector_centrality(rows).tolist() == [0] * 9
    assert eigenvector_centrality([[1, 0.9], [0.9 + 1e-6, 1]]).tolist() == pytest.approx([0, 1], abs=0.05)


def test_none_and_one() -> None:
    assert eigenvector_centrality(np.zeros((0, 0))).shape == (0,)
    assert eigenvector_centrality([[1.0]]).tolist() == [0]


def test_no_agreement_at_all_is_finite() -> None:
    assert eigenvector_centrality(np.zeros((3, 3)), self_loop=0).tolist() == [0, 0, 0]


def test_many_steps_find_the_principal_eigenvector() -> None:
    vector = power_iteration(AGREEMENT, steps=500, delta=0)
    values, vectors = np.linalg.eigh(AGREEMENT)
    assert vector == pytest.approx(np.abs(vectors[:, np.argmax(values)]))


def test_the_self_loop_is_added_to_the_diagonal() -> None:
    path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert power_iteration(path, self_loop=0.5, steps=1, delta=0) == pytest.approx(np.array([3, 5, 3]) / np.sqrt(43))
    assert eigenvector_centrality(path, self_loop=0.5, steps=1, delta=0).tolist() == [0, 1, 0]


def test_the_input_stays_as_it_was() -> None:
    before = AGREEMENT.copy()
    eigenvector_centrality(AGREEMENT)
    assert (before == AGREEMENT).all()


def test_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        eigenvector_centrality([1.0, 2.0])


@given(matrices)
def test_range(half) -> None:
    scores = eigenvector_centrality((half + half.T) / 2)
    assert ((scores >= 0) & (scores < 1)).all()
    assert scores.min() == 0


@given(matrices, st.randoms(use_true_random=False))
def test_nodes_may_come_in_any_order(half, random) -> None:
    matrix = half + half.T
    order = list(range(len(matrix)))
    random.shuffle(order)
    np.testing.assert_allclose(
        power_iteration(matrix[np.ix_(order, order)]), power_iteration(matrix)[order], rtol=1e-9, atol=1e-12
    )
