"""The picture of a screening's similarity graph, as SVG; nodes, names and reasons are hostile and are escaped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from unpoison.core.screenings import Screening
from unpoison.utils.plain_text import escape_html

__all__ = ["counts", "figure"]

MAX_DRAWN = 60
"""More nodes than this cannot be told apart in the picture."""

EDGES_PER_NODE = 3
"""The strongest edges that the picture draws, per node on average."""

CROWDED = 25
"""With more nodes than this, lines, nodes and labels are drawn finer."""

WIDTH, HEIGHT = 560, 480
"""The picture's size in SVG units."""


def counts(screening: Screening) -> str:
    """Such as "3 kept, 2 dropped"."""
    return f"{len(screening.kept_indices)} kept, {len(screening.dropped_indices)} dropped"


def figure(screening: Screening, owner: str) -> str:
    """The picture as HTML, escaped, with its legend and what it leaves out; nodes link to `#OWNER-passage-INDEX`."""
    graph, name = _graph(screening), screening.evidence.graph or ""
    if graph is None:
        return (
            "<figure><figcaption>No pairs of passages were compared: there is no graph to draw.</figcaption></figure>"
        )
    nodes = np.array(sorted((*screening.kept_indices, *screening.dropped_indices)[:MAX_DRAWN]), dtype=int)
    weights = graph[np.ix_(nodes, nodes)]
    first, second = np.nonzero(np.triu(weights, 1))
    strongest = np.argsort(-weights[first, second], kind="stable")[: EDGES_PER_NODE * len(nodes)]
    points = _points(weights)
    edges = "".join(_edges(first[strongest], second[strongest], weights, points, nodes))
    dots = "".join(_nodes(screening, nodes, points, owner))
    left_out = (
        f" {len(nodes)} of {len(graph)} passages are drawn, the kept ones first." if len(nodes) < len(graph) else ""
    )
    if len(strongest) < len(first):
        left_out += f" The {len(strongest)} strongest of {len(first)} edges are drawn."
    crowded = ' class="crowded"' if len(nodes) > CROWDED else ""
    label = f"Similarity graph of {len(nodes)} passages: {counts(screening)}"
    return (
        f'<figure>\n<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{label}"{crowded}>\n'
        f"{edges}\n{dots}\n</svg>\n"
        '<figcaption><span class="kept">● kept</span> <span class="dropped">■ dropped</span> '
        f"A larger node has a higher score; a thicker line is a higher value of “{escape_html(name)}”, at most "
        f"{weights.max(initial=0):.4g} here. Similar passages stand close together.{left_out}</figcaption>\n</figure>"
    )


def _graph(screening: Screening) -> NDArray[np.float64] | None:
    """The array to draw as symmetric, finite weights of 0 or more, shape (k, k); None where there is none."""
    array = screening.evidence.get(screening.evidence.graph or "")
    k = len(screening.passages)
    if array is None or k == 0 or array.shape != (k, k) or array.dtype.kind not in "biuf":
        return None
    weights: NDArray[np.float64] = np.nan_to_num(array.astype(float), nan=0.0, posinf=0.0, neginf=0.0)
    weights = np.maximum(np.maximum(weights, weights.T), 0.0)
    np.fill_diagonal(weights, 0.0)
    return weights


def _points(weights: NDArray[np.float64], rounds: int = 120) -> NDArray[np.float64]:
    """Where the nodes stand, shape (k, 2) in SVG units: similar ones close together, the same bytes every time.

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
) -> Iterator[str]:
    """The weakest first, so that the strongest lie on top."""
    thickness, darkness = (5.0, 0.6) if len(nodes) <= CROWDED else (2.0, 0.3)
    top = weights.max(initial=0) or 1.0
    for i, j in zip(first[::-1].tolist(), second[::-1].tolist(), strict=True):
        share = weights[i, j] / top
        (x1, y1), (x2, y2) = points[i], points[j]
        yield (
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke-width="{0.5 + thickness * share:.2f}" '
            f'stroke-opacity="{0.15 + darkness * share:.2f}">'
            f"<title>{nodes[i]} and {nodes[j]}: {weights[i, j]:.4g}</title></line>\n"
        )


def _nodes(screening: Screening, nodes: NDArray[np.int64], points: NDArray[np.float64], owner: str) -> Iterator[str]:
    """Circles for kept, squares for dropped: the picture does not rest on colour alone."""
    scores = np.nan_to_num([screening.verdicts[i].score for i in nodes.tolist()], nan=0.0, posinf=0.0, neginf=0.0)
    spread = np.ptp(scores) or 1.0
    smallest, growth = (11.0, 9.0) if len(nodes) <= CROWDED else (9.0, 5.0)
    for index, score, (x, y) in zip(nodes.tolist(), scores.tolist(), points.tolist(), strict=True):
        verdict = screening.verdicts[index]
        radius = smallest + growth * (score - scores.min()) / spread
        if verdict.kept:
            shape = f'<circle cx="{x}" cy="{y}" r="{radius:.1f}"/>'
        else:
            side = 1.8 * radius
            shape = (
                f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}" rx="3"/>'
            )
        title = f"passage {index}, {'kept' if verdict.kept else 'dropped'}: {escape_html(verdict.reason)}"
        yield (
            f'<a href="#{owner}-passage-{index}" class="{"kept" if verdict.kept else "dropped"}"><title>{title}</title>'
            f'{shape}<text x="{x}" y="{y}">{index}</text></a>\n'
        )
