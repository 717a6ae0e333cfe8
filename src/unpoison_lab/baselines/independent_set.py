"""The largest set of passages that do not contradict each other (ReliabilityRAG)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["maximum_independent_set"]


class IndependentSet(NamedTuple):
    """The result of the search.

    Attributes:
        members: Vertices without an edge between them, ascending, shape (m,).
        exact: Whether it is proved that no larger set exists, nor an equally large one that precedes it.
    """

    members: NDArray[np.intp]
    exact: bool


def maximum_independent_set(edges: ArrayLike, *, work: int = 3_000_000) -> IndependentSet:
    """The largest independent set; among equally large ones the lexicographically smallest sorted tuple of vertices.

    Branch and bound that visits sets in lexicographic order, so that only a strictly larger set replaces the best one.
    The bound adds at most one vertex of each clique of a greedy clique cover. Vertices with the same neighbours are all
    in or all out, and are searched as one.

    Args:
        edges: Shape (k, k), true if two vertices exclude each other; symmetric, the diagonal is ignored.
        work: Maximum number of vertices that the bounds visit, about 2 million a second. After that, the result is the
            largest set found so far, never smaller than the greedy one by position.

    Returns:
        The set, and whether it is proved to be the largest.

    Raises:
        ValueError: The shape is wrong or the matrix is not symmetric.

    Complexity: exponential in the worst case; milliseconds for k = 20, and for larger k if the graph is dense or
    consists of groups. O(k^2) memory.
    """
    matrix = np.asarray(edges, dtype=bool)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).any():
        raise ValueError(f"edges must be a symmetric matrix of shape (k, k), got shape {matrix.shape}")
    groups = _twins(matrix & ~np.eye(len(matrix), dtype=bool))
    first = [members[0] for members in groups]
    sizes = [len(members) for members in groups]
    neighbours = [_mask(np.flatnonzero(row)) for row in matrix[np.ix_(first, first)] & ~np.eye(len(first), dtype=bool)]

    best, largest, spent = 0, -1, 0
    waiting = [(0, 0, (1 << len(groups)) - 1)]  # chosen vertices, their number, available vertices
    while waiting and (spent <= work or largest < 0):
        chosen, size, available = waiting.pop()
        spent += available.bit_count() + 1
        if size + _bound(available, neighbours, sizes) <= largest:
            continue
        if not available:
            best, largest = chosen, size
            continue
        lowest = available & -available
        vertex = lowest.bit_length() - 1
        rest = available ^ lowest
        if neighbours[vertex] & rest:
            waiting.append((chosen, size, rest))
        waiting.append((chosen | lowest, size + sizes[vertex], rest & ~neighbours[vertex]))
    vertices = [vertex for bit, members in enumerate(groups) if best >> bit & 1 for vertex in members]
    return IndependentSet(np.array(sorted(vertices), dtype=np.intp), exact=not waiting)


def _twins(matrix: NDArray[np.bool_]) -> list[list[int]]:
    """Groups of vertices with the same neighbours (hence without an edge between them), by their first vertex."""
    groups: dict[bytes, list[int]] = {}
    for vertex, row in enumerate(matrix):
        groups.setdefault(row.tobytes(), []).append(vertex)
    return list(groups.values())


def _mask(vertices: NDArray[np.intp]) -> int:
    return sum(1 << int(vertex) for vertex in vertices)


def _bound(available: int, neighbours: Sequence[int], sizes: Sequence[int]) -> int:
    """An upper bound of vertices that can be added: the largest of each clique of a greedy clique cover."""
    total = 0
    while available:
        lowest = available & -available
        vertex = lowest.bit_length() - 1
        available ^= lowest
        most, clique = sizes[vertex], neighbours[vertex] & available
        while clique:
            lowest = clique & -clique
            vertex = lowest.bit_length() - 1
            available ^= lowest
            clique &= neighbours[vertex]
            most = max(most, sizes[vertex])
        total += most
    return total
