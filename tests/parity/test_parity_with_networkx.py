from __future__ import annotations

import numpy as np
import pytest

from unpoison.kernels import mincut
from unpoison.kernels.centrality import power_iteration
from unpoison.kernels.mincut import cut_value, min_cut
from unpoison.kernels.pagerank import pagerank

networkx = pytest.importorskip("networkx")
pytestmark = pytest.mark.parity


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


def test_principal_eigenvector() -> None:
    weights = random_edges(0, 15) + np.eye(15)
    expected = networkx.eigenvector_centrality_numpy(networkx.from_numpy_array(weights), weight="weight")
    np.testing.assert_allclose(power_iteration(weights, steps=300), list(expected.values()), atol=1e-6)


@pytest.mark.parametrize("listed", [0, 12], ids=["flow", "listing"])
@pytest.mark.parametrize("size", [3, 8, 12, 25, 60])
@pytest.mark.parametrize("ties", [False, True])
def test_minimum_cut(size, ties, listed, monkeypatch) -> None:
    """Both define ties alike: kept is what cannot reach the sink.

    networkx's value is right for all floats, but rounding in its residual graph can leave a partition that is not
    minimal; so partitions are compared on capacities that floats hold exactly.
    """
    monkeypatch.setattr(mincut, "LISTED", listed)
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
