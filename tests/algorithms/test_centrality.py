from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unpoison.algorithms import centrality as module
from unpoison.algorithms.centrality import eigenvector_centrality, pagerank, power_iteration

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


weights = st.integers(1, 8).flatmap(
    lambda size: arrays(np.float64, (size, size), elements=st.sampled_from([0.0, 0.1, 0.5, 1.0, 3.0]))
)


def test_isolated_node_keeps_only_its_teleport_term() -> None:
    scores = pagerank([[0, 2, 1, 0], [2, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]])
    assert scores == pytest.approx([0.277597, 0.277597, 0.194805, 0.0375], abs=1e-6)
    assert scores / scores.sum() == pytest.approx([0.352505, 0.352505, 0.247372, 0.047619], abs=1e-6)


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


def test_equal_nodes_get_equal_scores() -> None:
    rng = np.random.default_rng(0)
    half = rng.random((60, 60))
    half = half + half.T
    scores = pagerank(np.block([[half, half], [half, half]]))
    assert (scores[:60] == scores[60:]).all()


def test_teleport_moves_the_fixpoint() -> None:
    ring = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    scores = pagerank(ring, teleport=[0.5, 0.25, 0.25])
    assert scores[0] > scores[1] == scores[2]
    assert scores.sum() == pytest.approx(1)


def test_sizes_none_one_and_no_edges() -> None:
    assert pagerank(np.zeros((0, 0))).shape == (0,)
    assert pagerank([[0]]) == pytest.approx([0.15])
    assert pagerank(np.zeros((3, 3))) == pytest.approx([0.05] * 3)


@pytest.mark.parametrize("scale", [1e-300, 1e307])
def test_scale_does_not_matter(scale) -> None:
    edges = np.array([[0, 2, 1], [2, 0, 1], [1, 1, 0]])
    assert (pagerank(edges * scale) == pagerank(edges)).all()


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


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.85])
def test_iteration_and_direct_solution_agree(damping, monkeypatch) -> None:
    rng = np.random.default_rng(4)
    sparse = np.triu(rng.random((300, 300)) * (rng.random((300, 300)) < 0.01), 1)
    path = np.diag(np.ones(299), 1)
    teleport = rng.random(300)
    for edges in (sparse + sparse.T, path + path.T):
        arguments = edges, damping, teleport / teleport.sum()
        monkeypatch.setattr(module, "STEP", 0)
        iterated = pagerank(*arguments)
        monkeypatch.setattr(module, "STEP", 1000)
        assert iterated == pytest.approx(pagerank(*arguments), rel=0, abs=2e-12)
