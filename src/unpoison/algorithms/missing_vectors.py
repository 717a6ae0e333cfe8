"""Estimates vectors of texts without embeddings from their word similarity to texts with embeddings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import cosine

__all__ = ["complete_vectors"]

RIDGE = 0.05
"""Ridge penalty of the regression between the two similarities, for few pairs."""

SMALLEST = 0.1
"""Minimum share of the largest singular value; smaller directions of the given vectors are noise, as of near-copies."""


def complete_vectors(
    given: NDArray[np.float32], known: NDArray[np.bool_], words: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Add rows for the unknown texts, with similarities that follow from their words.

    A linear regression over the pairs of known texts predicts vector similarity from word similarity. The determined
    part of a new row is in the span of the given ones; the rest, orthogonal to all of them, is in additional columns.
    So unknown texts cannot change a similarity between known ones.

    Args:
        given: The vectors of the known texts, shape (m, d), m of 2 or more.
        known: Which of the n texts are known, shape (n,).
        words: Word similarity of all texts, shape (n, n).

    Returns:
        Shape (n, d + u) for u unknown texts: the known rows unchanged, the others of the same average length.

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
    """Predict vector similarity from word similarity, by the pairs with both."""
    pairs = np.triu_indices(len(vectors), 1)
    x, y = words[pairs], vectors[pairs]
    slope = max(0.0, float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean()) + RIDGE)))
    estimate: NDArray[np.float64] = np.clip(y.mean() + slope * (wanted - x.mean()), -1.0, 1.0)
    return estimate
