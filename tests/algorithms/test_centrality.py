from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms.centrality import eigenvector_centrality, pagerank, power_iteration

AGREEMENT = np.array([[1, 0.9, 0.8, 0.05], [0.9, 1, 0.85, 0.05], [0.8, 0.85, 1, 0.05], [0.05, 0.05, 0.05, 1]])


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


def test_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        eigenvector_centrality([1.0, 2.0])


weights = st.integers(1, 8).flatmap(
    lambda size: arrays(np.float64, (size, size), elements=st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]))
)


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [(0.0, [0.3376, 0.3376, 0.2772, 0.0476]), (0.4, [0.3805, 0.3805, 0.1914, 0.0476])],
)
def test_worked_example_of_four_documents(alpha, expected) -> None:
    between = np.zeros((4, 4))
    between[0, 1] = 0.345218 - alpha * 0.460291
    between[0, 2] = between[1, 2] = 0.230146 - alpha * 0.460291
    scores = pagerank(between + between.T)
    assert scores / scores.sum() == pytest.approx(expected, abs=5e-5)


def test_sizes_none_one_and_no_edges() -> None:
    assert pagerank(np.zeros((0, 0))).shape == (0,)
    assert pagerank([[0]]) == pytest.approx([0.15])
    assert pagerank(np.zeros((3, 3))) == pytest.approx([0.05] * 3)


@given(weights, st.floats(0, 0.99))
def test_solves_equation_1(edges, damping) -> None:
    size = len(edges)
    scores = pagerank(edges, damping)
    leaving = edges.sum(axis=1)
    expected = np.full(size, (1 - damping) / size)
    for j in range(size):
        if leaving[j]:
            expected += damping * edges[j] / leaving[j] * scores[j]
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    assert (scores >= 0).all()
    assert scores.sum() <= 1 + 1e-9


@given(weights, st.randoms(use_true_random=False))
def test_nodes_may_come_in_any_order_of_pagerank(edges, random) -> None:
    order = list(range(len(edges)))
    random.shuffle(order)
    np.testing.assert_allclose(pagerank(edges[np.ix_(order, order)]), pagerank(edges)[order], atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]],), "shape"),
        (([[0, -1], [-1, 0]],), "non-negative"),
        (([[np.nan]],), "finite"),
        (([[0.0]], 1.0), "damping"),
        (([[0.0]], 0.85, [0.5]), "distribution"),
        (([[0.0]], 0.85, [0.5, 0.5]), "distribution"),
    ],
)
def test_unusable_input_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        pagerank(*arguments)


def test_ten_steps_with_a_hundredth_on_the_diagonal() -> None:
    """Of two nodes without an edge the weaker shrinks by 0.91 / 1.01 in each step (Appendix F, Eqs. 32 and 35)."""
    first, second = power_iteration(np.diag([1.0, 0.9]))
    assert second / first == pytest.approx((0.91 / 1.01) ** 10, rel=1e-9)
    assert power_iteration([[0.0]])[0] == pytest.approx(1 - 1e-6, abs=1e-9)  # 0.01 / (0.01 + 1e-8)
    assert eigenvector_centrality(np.zeros((0, 0))).shape == (0,)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_the_unit_of_the_weights_decides_nothing(scale: float) -> None:
    edges = np.array([[0, 2, 1], [2, 0, 0], [1, 0, 0]], float)
    assert pagerank(scale * edges) == pytest.approx(pagerank(edges), abs=1e-11)


def test_who_is_jumped_to_more_often_scores_more() -> None:
    edges = np.ones((3, 3)) - np.eye(3)
    assert pagerank(edges, 0.85, [1 / 3] * 3) == pytest.approx(pagerank(edges))
    first, *others = pagerank(edges, 0.85, [1, 0, 0])
    assert first == pytest.approx(0.15 + 0.85 * sum(others) / 2, abs=1e-11) and others[0] == others[1] > 0
    assert pagerank(edges, 0.0, [0.5, 0.5, 0]).tolist() == [0.5, 0.5, 0]
