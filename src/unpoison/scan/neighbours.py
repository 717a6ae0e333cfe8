"""Which units stand near each: by the rare words of a question made from it, or by the vectors that the store has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.terms import table

__all__ = ["NEAREST", "by_vectors", "by_words", "groves"]

Positions = NDArray[np.int32]
Matrix = NDArray[np.float32]

NEAREST = 9
"""Neighbours of a unit: with it ten, the usual retrieval."""

TERMS = 14
"""Rarest stems of a question that are looked up."""

HOLDERS = 1_500
"""A stem that more units hold says little, and is looked up only where a question has no rarer ones."""

LEAF = 1_024
"""Vectors that are compared with each other, all pairs, in one leaf of a tree."""

TREES = 3
"""A neighbour that one tree parts from its row stands beside it in another."""

BLOCK = 256
"""Questions that are looked up at once."""

DECIMALS = 5
"""Cosines of single precision are compared to here: rounding, which each processor has its own of, decides nothing."""


def by_words(
    questions: Sequence[str],
    weights: Any,
    rarity: NDArray[np.float32],
    codes: NDArray[np.int32],
    own: NDArray[np.int32] | None = None,
    owner: NDArray[np.int32] | None = None,
) -> Iterator[Positions]:
    """The units that score highest by BM25 for each question, best first, at most `NEAREST`, never the asker's own.

    Args:
        questions: q texts.
        weights: BM25's weights of n units, shape (n, stems), sparse.
        rarity: Of each stem, shape (stems,).
        codes: Of each stem, shape (stems,).
        own: The document that each question was made from; None where the questions come from elsewhere.
        owner: The document of each unit, with `own`.

    Complexity: O(q) time for questions of at most `TERMS` stems that at most `HOLDERS` units hold; O(n) memory.
    """
    offered = weights.T.tocsr()
    holders = np.diff(offered.indptr)
    for start in range(0, len(questions), BLOCK):
        queries = _query_rows(questions[start : start + BLOCK], rarity, codes, holders)
        scores = (queries @ offered).tocsr()
        for i in range(scores.shape[0]):
            units, score = _row(scores, i)
            if own is not None and owner is not None:
                foreign = owner[units] != own[start + i]
                units, score = units[foreign], score[foreign]
            yield _best(units, score, NEAREST)


def _query_rows(
    questions: Sequence[str], rarity: NDArray[np.float32], codes: NDArray[np.int32], holders: NDArray[Any]
) -> Any:
    """The rarest stems of each question, 1 where it has one."""
    from scipy.sparse import csr_array

    counts = table(questions, codes).counts
    kept, sizes = list[NDArray[np.int32]](), [0]
    for i in range(counts.shape[0]):
        stems = counts.indices[counts.indptr[i] : counts.indptr[i + 1]]
        stems = stems[holders[stems] > 0]
        rare = stems[np.lexsort((stems, -rarity[stems]))][:TERMS]
        usual = holders[rare] > HOLDERS
        rare = rare[:2] if usual.all() else rare[~usual]
        kept.append(np.sort(rare))
        sizes.append(rare.size)
    columns = np.concatenate([np.zeros(0, np.int32), *kept])
    return csr_array((np.ones(columns.size, np.float32), columns, np.cumsum(sizes)), shape=counts.shape)


def _row(scores: Any, i: int) -> tuple[NDArray[Any], NDArray[Any]]:
    cells = slice(scores.indptr[i], scores.indptr[i + 1])
    return scores.indices[cells], scores.data[cells]


def _best(units: NDArray[Any], score: NDArray[Any], count: int) -> Positions:
    """The best units, ties to the earlier one; scores that rounding parts are ties."""
    rounded = np.round(score.astype(np.float64), 4)
    if len(units) > 4 * count:
        near = np.argpartition(-rounded, count - 1)[:count]
        near = np.flatnonzero(rounded >= rounded[near].min())
        units, rounded = units[near], rounded[near]
    return np.asarray(units[np.lexsort((units, -rounded))][:count], np.int32)


def groves(vectors: Matrix, seed: int = 0) -> Iterator[list[Positions]]:
    """`TREES` ways to part the rows into leaves of at most `LEAF` neighbours: each split is by two far rows.

    Complexity: O(n log(n) d) time, O(n) memory beside the vectors. The same vectors give the same leaves.
    """
    for tree in range(TREES):
        rng = np.random.default_rng((seed, tree))
        leaves, open_ = list[Positions](), [np.arange(len(vectors), dtype=np.int32)]
        while open_:
            rows = open_.pop()
            if len(rows) <= LEAF:
                leaves.append(rows)
                continue
            open_.extend(_split(vectors, rows, rng))
        yield leaves


def _split(vectors: Matrix, rows: Positions, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Halves of the rows along the line between the means of two clusters: neighbours stay together, sizes equal."""
    sample = vectors[np.sort(rng.choice(rows, min(256, len(rows)), replace=False))]
    first, second = sample[0], sample[int(np.argmin(np.round(sample @ sample[0], DECIMALS)))]
    for _ in range(3):
        nearer = np.round(sample @ (first - second), DECIMALS) > 0
        if nearer.all() or not nearer.any():
            break
        first, second = sample[nearer].mean(axis=0), sample[~nearer].mean(axis=0)
    side = np.round(vectors[rows] @ (first - second), DECIMALS)
    order = np.argsort(side, kind="stable")
    middle = len(rows) // 2
    return np.sort(rows[order[:middle]]), np.sort(rows[order[middle:]])


def by_vectors(vectors: Matrix, progress: Callable[[int], None] = lambda rows: None) -> Positions:
    """The nearest rows by cosine of every row, shape (n, NEAREST), -1 where there are fewer.

    All pairs within each leaf of three trees; a neighbour that stands in another leaf every time is missed.

    Args:
        vectors: Rows of length 1 or 0, shape (n, d).
        progress: Called after each leaf with the rows in it.

    Complexity: O(n LEAF d) time, O(n + LEAF^2) memory beside the vectors.
    """
    n = len(vectors)
    nearest = np.full((n, NEAREST), -1, np.int32)
    score = np.full((n, NEAREST), -2.0, np.float32)
    for leaves in groves(vectors):
        for rows in leaves:
            cosines = np.round(vectors[rows] @ vectors[rows].T, DECIMALS)
            np.fill_diagonal(cosines, -2.0)
            count = min(NEAREST, len(rows) - 1)
            if count > 0:
                # Whole numbers, each once: which of equals a partition takes differs between processors.
                keys = np.rint(cosines * -(10.0**DECIMALS)).astype(np.int64) * len(rows) + np.arange(len(rows))
                near = np.argpartition(keys, count - 1, axis=1)[:, :count]
                near_scores = np.take_along_axis(cosines, near, axis=1)
                nearest[rows], score[rows] = _merge(nearest[rows], score[rows], rows[near], near_scores)
            progress(len(rows))
    return np.where(score > 0, nearest, -1)


def _merge(nearest: Positions, score: Matrix, more: Positions, more_scores: Matrix) -> tuple[Positions, Matrix]:
    """The best of both, each row once, ties to the earlier row."""
    rows, scores = np.hstack([nearest, more]), np.hstack([score, more_scores])
    order = np.argsort(rows, axis=1, kind="stable")
    rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
    again = np.zeros(rows.shape, bool)
    again[:, 1:] = (rows[:, 1:] == rows[:, :-1]) & (rows[:, 1:] >= 0)
    scores = np.where(again, -2.0, scores).astype(np.float32)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :NEAREST]
    return np.take_along_axis(rows, best, axis=1), np.take_along_axis(scores, best, axis=1)
