from __future__ import annotations

import networkx
import numpy as np
import pytest

from energy import cut_value
from unpoison.algorithms.centrality import pagerank
from unpoison.algorithms.mincut import min_cut

pytestmark = [pytest.mark.needs("networkx"), pytest.mark.parity]


def random_edges(seed: int, size: int, density: float = 0.6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), 1)
    return upper + upper.T


@pytest.mark.parametrize("seed", range(5))
def test_pagerank_without_isolated_nodes(seed) -> None:
    rng = np.random.default_rng(seed)
    weights, teleport = random_edges(seed, 20), rng.random(20)
    teleport /= teleport.sum()
    graph = networkx.from_numpy_array(weights)
    for base, personalization in ((None, None), (teleport, dict(enumerate(teleport)))):
        expected = networkx.pagerank(graph, alpha=0.85, personalization=personalization, tol=1e-12, max_iter=1000)
        np.testing.assert_allclose(pagerank(weights, teleport=base), list(expected.values()), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_pagerank_with_isolated_nodes_up_to_one_factor(seed) -> None:
    weights = random_edges(seed, 12, density=0.3)
    weights[seed] = weights[:, seed] = 0
    expected = networkx.pagerank(networkx.from_numpy_array(weights), alpha=0.85, tol=1e-12, max_iter=1000)
    scores = pagerank(weights)
    np.testing.assert_allclose(scores / scores.sum(), list(expected.values()), atol=1e-9)


@pytest.mark.parametrize("size", [3, 8, 12, 25, 60])
@pytest.mark.parametrize("ties", [False, True])
def test_minimum_cut(size, ties) -> None:
    """Both define ties alike: kept is what cannot reach the sink.

    networkx's value is right for all floats, but rounding in its residual graph can leave a partition that is not
    minimal; so partitions are compared on capacities that floats hold exactly.
    """
    rng = np.random.default_rng(size)
    source, sink, pairwise = rng.random(size), rng.random(size), random_edges(size, size) / size
    if ties:
        source, sink, pairwise = (np.round(values * 4) / 4 for values in (source, sink, pairwise * size / 2))
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(size))
    for node in range(size):
        graph.add_edge("s", node, capacity=source[node])
        graph.add_edge(node, "t", capacity=sink[node])
        for other in np.flatnonzero(pairwise[node]):
            graph.add_edge(node, int(other), capacity=pairwise[node, other])
    value, (kept, _) = networkx.minimum_cut(graph, "s", "t")
    labels = min_cut(source, sink, pairwise)
    assert cut_value(labels, source, sink, pairwise) == pytest.approx(value, rel=1e-9)
    if ties:
        assert set(np.flatnonzero(labels).tolist()) == kept - {"s"}


def solved(source: np.ndarray, sink: np.ndarray, pairwise: np.ndarray) -> tuple[int, set[int]]:
    """networkx's minimal cut and its larger source side; with integers both are exact."""
    graph = networkx.DiGraph()
    for node in range(len(source)):
        graph.add_edge("s", node, capacity=int(source[node]))
        graph.add_edge(node, "t", capacity=int(sink[node]))
        for other in np.flatnonzero(pairwise[node]):
            graph.add_edge(node, int(other), capacity=int(pairwise[node, other]))
    value, (kept, _) = networkx.minimum_cut(graph, "s", "t")
    return value, kept - {"s"}


@pytest.mark.parametrize("seed", range(200))
def test_decimals_and_ties_of_12_to_40_nodes(seed) -> None:
    """Decimals such as 0.1, which floats do not hold exactly, sum to ties and near-ties everywhere."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(12, 41))
    source, sink = rng.integers(0, 11, size), rng.integers(0, 11, size)
    if seed % 2:
        upper = np.full((size, size), rng.integers(0, 3))
    else:
        upper = rng.integers(0, rng.choice([2, 3, 12]), (size, size)) * (
            rng.random((size, size)) < rng.choice([0.1, 1])
        )
    pairwise = np.triu(upper, 1) + np.triu(upper, 1).T
    value, kept = solved(source, sink, pairwise)
    labels = min_cut(source / 10, sink / 10, pairwise / 10)
    assert cut_value(labels, source, sink, pairwise) == value
    assert set(np.flatnonzero(labels).tolist()) == kept
