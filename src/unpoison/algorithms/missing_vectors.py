"""Vectors for texts that have none, beside texts that have: by how alike their words are to the others' words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import cosine

__all__ = ["complete_vectors"]

RIDGE = 0.05
"""Holds the slope between the two similarities down where there are few pairs to learn it from."""

SMALLEST = 0.1
"""Directions of the given vectors with a smaller share of the largest singular value are noise, as of near-copies."""


def complete_vectors(
    given: NDArray[np.float32], known: NDArray[np.bool_], words: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Rows for the unknown texts, such that they stand to the known ones as their words say.

    How similar vectors are where words are so similar is learned from the pairs of known texts, by a line. The part of
    a new row that this determines lies in the span of the given ones; the rest, orthogonal to all of them, stands in
    columns of its own. So whatever the unknown texts say, no similarity between known ones moves.

    Args:
        given: The known texts' vectors, shape (m, d), m of 2 or more.
        known: Which of the n texts these are, shape (n,).
        words: Similarity of all texts by their words, shape (n, n).

    Returns:
        Shape (n, d + u) for u unknown texts: the known rows as given, the others as long as these are on average.

    Complexity: O(m d min(m, d) + n^2 + u^3) time.
    """
    count, width = int((~known).sum()), given.shape[1]
    estimate = _from_words(cosine(given), words[np.ix_(known, known)], words)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    units = given / np.where(lengths > 0, lengths, 1)
    inside = estimate[np.ix_(~known, known)] @ np.linalg.pinv(units, rcond=SMALLEST).T
    inside /= np.maximum(1, np.linalg.norm(inside, axis=1, keepdims=True))
    among = estimate[np.ix_(~known, ~known)]
    np.fill_diagonal(among, 1.0)
    values, axes = np.linalg.eigh(among - inside @ inside.T)
    rows = np.hstack([inside, axes * np.sqrt(np.maximum(values, 0))])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    result = np.zeros((len(known), width + count), np.float32)
    result[np.ix_(known, np.arange(width))] = given
    result[~known] = rows * lengths.mean()
    return result


def _from_words(
    vectors: NDArray[np.float64], words: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The similarity of vectors that goes with a similarity of words, by the pairs of which both are known."""
    pairs = np.triu_indices(len(vectors), 1)
    x, y = words[pairs], vectors[pairs]
    slope = max(0.0, float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean()) + RIDGE)))
    estimate: NDArray[np.float64] = np.clip(y.mean() + slope * (wanted - x.mean()), -1.0, 1.0)
    return estimate
