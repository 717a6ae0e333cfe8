"""The minimum cut of a graph of passages between a source and a sink, exact up to a stated tolerance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["min_cut"]

SCALE = 2**30 - 1
"""Maximum flow of the integer solver: a reversed edge holds twice this, just below 2**31."""

ROUNDS = 8
"""Maximum number of refinements; each multiplies the precision by several thousand, so three suffice for any graph."""

TOLERANCE = 1e-10
"""Relative to the largest capacity: smaller residuals are rounding errors, and smaller differences are ties."""

SYMMETRY = 1e-6
"""Relative to the largest weight: maximum difference between the two directions of an edge."""


def min_cut(source: ArrayLike, sink: ArrayLike, pairwise: ArrayLike) -> NDArray[np.intp]:
    """The labels that minimise RADAR's energy (Section 3, Eq. 3).

    E(y) = sum_i (1 - y_i) S_i + y_i F_i + sum_{i<j} M_ij |y_i - y_j|

    The energy of the labels exceeds the minimum by at most 2e-10 (k + 1) times the largest capacity (float rounding);
    smaller differences count as equal. Of several minimal labelings the one with the most nodes on the source side is
    returned: it is unique, contains the source side of every other one, and so drops a passage only if keeping it costs
    more.

    scipy's integer maximum flow is repeated on the undecided rest, at a finer scale each time, until flow and cut
    agree; once is usually enough.

    Args:
        source: Shape (k,), S, the cost of label 0; finite, non-negative.
        sink: Shape (k,), F, the cost of label 1; finite, non-negative.
        pairwise: Shape (k, k), M, the cost of separating two nodes; symmetric, finite, non-negative, diagonal ignored.

    Returns:
        Shape (k,): 1 on the source side (kept), 0 on the sink side (dropped).

    Raises:
        ValueError: A shape, a sign or the symmetry is wrong.
        ArithmeticError: Rounding errors exceeded the tolerance; no known input causes this.

    Complexity: O(k^4) time in the worst case, about O(k^2) on dense graphs of NLI scores; O(k^2) memory.
    """
    keep, drop, edges = _check_capacities(source, sink, pairwise)
    size = len(keep)
    # The common part of a node's source and sink capacity flows straight through and decides nothing.
    pull = keep - drop
    if not (pull < 0).any():
        return np.ones(size, np.intp)
    largest = max(keep.max(), drop.max(), edges.max())
    pull, edges = pull / largest, edges / largest
    residual = np.zeros((size + 2, size + 2))
    residual[:size, :size] = edges
    residual[size, :size] = np.maximum(pull, 0)
    residual[:size, size + 1] = np.maximum(-pull, 0)
    left = min(residual[size].sum(), residual[:, size + 1].sum())
    labels, open_nodes = np.ones(size, np.intp), np.arange(size)
    for _ in range(ROUNDS):
        if left > TOLERANCE:
            left = _push(residual, left)
        # The remaining flow cannot separate a node from the sink, or source, if more capacity than that leads there:
        # such nodes are decided and merged with it, and the rest is a graph of few nodes, usually none. The tolerance
        # prevents rounding errors from overestimating a single edge that carries all of the remaining flow.
        with_sink = _closure(residual, -1, left + TOLERANCE)
        with_source = _closure(residual.T, -2, left + TOLERANCE)
        if (with_sink & with_source).any():
            raise ArithmeticError("the minimum cut put a node on both sides; please report the capacities")
        labels[open_nodes[with_sink[:-2]]] = 0
        rest = np.flatnonzero(~with_sink & ~with_source)
        if left <= TOLERANCE or not rest.size:
            break
        smaller = np.zeros((rest.size + 2, rest.size + 2))
        smaller[:-2, :-2] = residual[np.ix_(rest, rest)]
        smaller[-2, :-2] = with_source @ residual[:, rest]
        smaller[:-2, -1] = residual[rest] @ with_sink
        residual, open_nodes = smaller, open_nodes[rest]
        left = min(left, residual[-2].sum(), residual[:, -1].sum())
    return labels


def _closure(capacity: NDArray[np.float64], node: int, least: float) -> NDArray[np.bool_]:
    """The closure of a node: repeatedly add nodes with more capacity than `least` into the nodes already found."""
    bound = np.zeros(len(capacity), bool)
    joining = bound.copy()
    joining[node] = True
    into = np.zeros(len(capacity))
    while joining.any():
        bound |= joining
        into += capacity @ joining
        joining = (into > least) & ~bound
    return bound


def _push(residual: NDArray[np.float64], most: float) -> float:
    """Push an integer flow through the residual graph, in place.

    `most` bounds the remaining flow, so larger capacities are clipped to it before scaling to integers.

    Returns:
        A bound on the flow that remains now.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    unit = SCALE / most
    nodes = len(residual)
    capacity = (np.minimum(residual, most) * unit).astype(np.int32)
    rows, columns = np.nonzero(capacity)
    begins = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=nodes), out=begins[1:])
    graph = csr_array((capacity[rows, columns], columns.astype(np.int32), begins), (nodes, nodes))
    solved = maximum_flow(graph, nodes - 2, nodes - 1)
    flow = solved.flow.toarray()
    residual -= flow / unit
    np.maximum(residual, 0, out=residual)
    reaching = _sink_ancestors(capacity > flow)
    return min(float(residual[np.ix_(~reaching, reaching)].sum()), most - solved.flow_value / unit)


def _sink_ancestors(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The nodes with a path to the last one, as flags."""
    into = np.ascontiguousarray(edges.T)
    reaching = np.zeros(len(edges), bool)
    frontier = reaching.copy()
    frontier[-1] = True
    while frontier.any():
        reaching |= frontier
        frontier = into[frontier].any(axis=0) & ~reaching
    return reaching


def _check_capacities(
    source: ArrayLike, sink: ArrayLike, pairwise: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    keep, drop = np.asarray(source, np.float64), np.asarray(sink, np.float64)
    edges = np.array(pairwise, np.float64)
    if keep.ndim != 1 or drop.shape != keep.shape or edges.shape != keep.shape * 2:
        raise ValueError(
            "source, sink and pairwise must have shapes (k,), (k,) and (k, k), "
            f"got {keep.shape}, {drop.shape} and {edges.shape}"
        )
    np.fill_diagonal(edges, 0)
    for name, values in (("source", keep), ("sink", drop), ("pairwise", edges)):
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"{name} must be finite and non-negative")
    if (np.abs(edges - edges.T) > SYMMETRY * edges.max(initial=0.0)).any():
        raise ValueError("pairwise must be symmetric")
    return keep, drop, edges
