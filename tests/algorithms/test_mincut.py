from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from energy import cut_value
from unpoison.algorithms.mincut import min_cut


def all_labels(size: int) -> np.ndarray:
    return (np.arange(2**size)[:, None] >> np.arange(size)) & 1


def best_of_all(source, sink, pairwise) -> tuple[float, np.ndarray]:
    labels = all_labels(len(source))
    energies = np.array([cut_value(label, source, sink, pairwise) for label in labels])
    minimal = labels[energies <= energies.min() + 1e-9]
    return float(energies.min()), minimal.any(axis=0).astype(int)


def symmetric(half: np.ndarray) -> np.ndarray:
    upper = np.triu(half, 1)
    return upper + upper.T


def graphs(values: st.SearchStrategy[float], sizes: st.SearchStrategy[int]) -> st.SearchStrategy[tuple]:
    def of(size: int) -> st.SearchStrategy[tuple]:
        def row(count: int) -> st.SearchStrategy[np.ndarray]:
            return st.lists(values, min_size=count, max_size=count).map(np.array)

        return st.tuples(row(size), row(size), row(size * size).map(lambda v: symmetric(v.reshape(size, size))))

    return sizes.flatmap(of)


AGREEMENT = np.full((4, 4), 0.05)
AGREEMENT[:3, :3] = [[1, 0.9, 0.8], [0.9, 1, 0.85], [0.8, 0.85, 1]]


def test_worked_example_of_the_paper_mode() -> None:
    source, sink = [0.7631, 0.6065, 0.4525, 0], [0.02, 0.02, 0.02, 0.7]
    labels = min_cut(source, sink, AGREEMENT)
    assert labels.tolist() == [1, 1, 1, 0]
    assert cut_value(labels, source, sink, AGREEMENT) == pytest.approx(0.21)


def test_worked_example_of_the_reference_mode() -> None:
    source, sink = [0.99, 0.7949, 0.5930, 0.01], [0.01, 0.01, 0.01, 0.99]
    labels = min_cut(source, sink, AGREEMENT)
    assert labels.tolist() == [1, 1, 1, 0]
    assert cut_value(labels, source, sink, AGREEMENT) == pytest.approx(0.19)


@pytest.mark.parametrize("pairwise", [AGREEMENT[:3, :3], np.full((3, 3), 0.9)])
def test_collapse_of_the_reference_on_unanimity(pairwise) -> None:
    source, sink = [0.99, 0.4173, 0.01], [0.5, 0.5, 0.5]
    assert min_cut(source, sink, pairwise).tolist() == [0, 0, 0]
    assert cut_value([0, 0, 0], source, sink, pairwise) == pytest.approx(1.4173)


@given(graphs(st.integers(0, 4).map(lambda v: v / 4), st.integers(1, 7)))
def test_ties_against_all_labels(graph) -> None:
    value, maximal = best_of_all(*graph)
    labels = min_cut(*graph)
    assert labels.tolist() == maximal.tolist()
    assert cut_value(labels, *graph) == pytest.approx(value, abs=1e-9)


@given(graphs(st.floats(0, 1), st.integers(1, 7)))
def test_floats_against_all_labels(graph) -> None:
    value, _ = best_of_all(*graph)
    assert cut_value(min_cut(*graph), *graph) == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_twelve_nodes_against_all_labels(seed) -> None:
    rng = np.random.default_rng(seed)
    graph = rng.random(12), rng.random(12), symmetric(rng.random((12, 12)) * 0.3)
    value, maximal = best_of_all(*graph)
    labels = min_cut(*graph)
    assert labels.tolist() == maximal.tolist()
    assert cut_value(labels, *graph) == pytest.approx(value, rel=1e-12)


def test_one_unit_of_the_integer_solver_decides_nothing() -> None:
    source = [0.1, 0.9, 0.2, 0.9, 0.7, 0.8, 0.4, 0.3, 0.6, 0.6, 0.9, 0.1]
    sink = [0.4, 0.2, 0.4, 0.3, 0.1, 0.3, 1.0, 0.7, 0.6, 0.8, 0.6, 0.5]
    labels = min_cut(source, sink, np.full((12, 12), 0.1))
    assert cut_value(labels, source, sink, np.full((12, 12), 0.1)) == pytest.approx(5.9)
    assert labels.tolist() == [1] * 12


@pytest.mark.parametrize(("more", "label"), [(1e-3, 0), (1e-6, 0), (1e-9, 0), (1e-11, 1), (0, 1)])
def test_a_difference_above_the_tolerance_decides_and_a_smaller_one_is_a_tie(more: float, label: int) -> None:
    assert min_cut([1, 0.5], [0, 0.5 + more], np.zeros((2, 2))).tolist() == [1, label]


def test_no_single_node_of_a_dense_graph_is_better_elsewhere() -> None:
    rng = np.random.default_rng(0)
    pull = rng.normal(size=150)
    pairwise = symmetric(rng.random((150, 150)) / 150)
    source, sink = np.maximum(pull, 0), np.maximum(-pull, 0)
    labels = min_cut(source, sink, pairwise)
    value = cut_value(labels, source, sink, pairwise)
    for node in range(150):
        flipped = labels.copy()
        flipped[node] ^= 1
        assert cut_value(flipped, source, sink, pairwise) >= value - 1e-9
    assert 0 < labels.sum() < 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0, 2.0], [[0.0]]), "shapes"),
        (([1.0], [1.0], [0.0]), "shapes"),
        (([-1.0], [1.0], [[0.0]]), "source must be finite"),
        (([1.0], [np.nan], [[0.0]]), "sink must be finite"),
        (([1.0, 1.0], [1.0, 1.0], [[0.0, np.inf], [np.inf, 0.0]]), "pairwise must be finite"),
        (([1.0, 1.0], [1.0, 1.0], [[0.0, 1.0], [0.0, 0.0]]), "symmetric"),
    ],
)
def test_unusable_input_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        min_cut(*arguments)
