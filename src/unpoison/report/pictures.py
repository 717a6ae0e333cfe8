"""Layout of a screening's similarity graph; `graph.svg` draws it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Verdict

__all__ = ["Edge", "GraphPicture", "Node", "similarity_graph"]


MAX_DRAWN = 60
"""More nodes than this cannot be distinguished in the picture."""

EDGES_PER_NODE = 3
"""The strongest edges that the picture draws, per node on average."""

CROWDED = 25
"""With more nodes than this, lines, nodes and labels are drawn finer."""

WIDTH, HEIGHT = 560, 480
"""The picture's size in SVG units."""


class Edge(NamedTuple):
    """A line between the points of two passages, as drawn."""

    passages: tuple[int, int]
    start: tuple[float, float]
    end: tuple[float, float]
    width: float
    opacity: float
    weight: float


class Node(NamedTuple):
    """A passage as drawn: a circle of this radius if kept, a square of about that size if dropped."""

    verdict: Verdict
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """The parts of a similarity graph that are drawn.

    Attributes:
        name: The name of its weights.
        nodes: The kept passages first.
        edges: The weakest first, so that the strongest lie on top.
        of: How many nodes and edges there are in all.
        highest: The highest weight.
    """

    name: str
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    of: tuple[int, int]
    highest: float

    @property
    def crowded(self) -> bool:
        """Whether it is drawn finer."""
        return len(self.nodes) > CROWDED


def similarity_graph(screening: Screening) -> GraphPicture | None:
    """The picture of a screening; None if no passages were compared."""
    graph = _graph(screening)
    if graph is None:
        return None
    nodes = np.array(sorted((*screening.kept_indices, *screening.dropped_indices)[:MAX_DRAWN]), dtype=int)
    weights = graph[np.ix_(nodes, nodes)]
    first, second = np.nonzero(np.triu(weights, 1))
    strongest = np.argsort(-weights[first, second], kind="stable")[: EDGES_PER_NODE * len(nodes)][::-1]
    points = _points(weights)
    return GraphPicture(
        screening.evidence.graph or "",
        list(_nodes(screening, nodes, points)),
        list(_edges(first[strongest], second[strongest], weights, points, nodes)),
        (len(graph), len(first)),
        float(weights.max(initial=0)),
    )


def _graph(screening: Screening) -> NDArray[np.float64] | None:
    """The array to draw as symmetric, finite weights of 0 or more, shape (k, k); None without one."""
    array = screening.evidence.get(screening.evidence.graph or "")
    k = len(screening.passages)
    if array is None or k == 0 or array.shape != (k, k) or array.dtype.kind not in "biuf":
        return None
    weights: NDArray[np.float64] = np.nan_to_num(array.astype(float), nan=0.0, posinf=0.0, neginf=0.0)
    weights = np.maximum(np.maximum(weights, weights.T), 0.0)
    np.fill_diagonal(weights, 0.0)
    return weights


def _points(weights: NDArray[np.float64], rounds: int = 120) -> NDArray[np.float64]:
    """Positions of the nodes, shape (k, 2) in SVG units: similar ones close together, deterministic.

    Starts on a circle in index order and lowers the stress of the distances "1 less similarity" (the SMACOF iteration
    of multidimensional scaling), O(k^2) a round.
    """
    k = len(weights)
    angles = 2 * np.pi * np.arange(k) / k - np.pi / 2
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    wanted = 1.0 - 0.55 * weights / (weights.max(initial=0) or 1.0)  # never 0, so that copies do not cover each other
    np.fill_diagonal(wanted, 0.0)
    for _ in range(rounds if k > 2 else 0):
        distances = np.linalg.norm(points[:, None] - points[None], axis=2)
        pull = -np.divide(wanted, distances, out=np.zeros_like(wanted), where=distances > 1e-9)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        points = pull @ points / k
    points -= (points.max(axis=0) + points.min(axis=0)) / 2
    margin = 34.0
    room = np.array([WIDTH / 2 - margin, HEIGHT / 2 - margin])
    scale = (room / np.maximum(np.abs(points).max(axis=0), 1e-9)).min() if k > 1 else 0.0
    return np.round(points * scale + [WIDTH / 2, HEIGHT / 2], 1)


def _edges(
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    weights: NDArray[np.float64],
    points: NDArray[np.float64],
    nodes: NDArray[np.int64],
) -> Iterator[Edge]:
    thickness, darkness = (5.0, 0.6) if len(nodes) <= CROWDED else (2.0, 0.3)
    top = weights.max(initial=0) or 1.0
    places = [(x, y) for x, y in points.tolist()]
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        share, passages = weights[i, j] / top, (int(nodes[i]), int(nodes[j]))
        width, opacity = 0.5 + thickness * share, 0.15 + darkness * share
        yield Edge(passages, places[i], places[j], round(width, 2), round(opacity, 2), float(weights[i, j]))


def _nodes(screening: Screening, nodes: NDArray[np.int64], points: NDArray[np.float64]) -> Iterator[Node]:
    verdicts = [screening.verdicts[i] for i in nodes.tolist()]
    scores = np.nan_to_num([verdict.score for verdict in verdicts], nan=0.0, posinf=0.0, neginf=0.0)
    smallest, growth = (11.0, 9.0) if len(nodes) <= CROWDED else (9.0, 5.0)
    spread = np.ptp(scores) or 1.0
    radii = smallest + growth * (scores - scores.min()) / spread
    for verdict, radius, (x, y) in zip(verdicts, radii.tolist(), points.tolist(), strict=True):
        yield Node(verdict, x, y, round(radius, 1))
