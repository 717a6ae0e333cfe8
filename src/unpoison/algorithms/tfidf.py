"""TF-IDF as scikit-learn's `TfidfVectorizer` computes it by default."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["tfidf", "top_terms"]

DECIMALS = 12
"""Sums are compared after rounding, so that the order of additions cannot decide a tie."""


def tfidf(documents: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.float64]]:
    """TF-IDF weights of all terms in all documents.

    Counts times idf = ln((1 + n) / (1 + df)) + 1, each row then scaled to Euclidean length 1.

    Args:
        documents: k token lists.

    Returns:
        The v terms in alphabetical order, and weights of shape (k, v), non-negative. A document without tokens is a
        row of zeros.

    Complexity: O(t log t) time for t tokens, O(k v) memory.
    """
    terms, rows, columns, weights = _weights(documents)
    order = sorted(range(len(terms)), key=terms.__getitem__)
    column = np.empty(len(terms), np.intp)
    column[order] = np.arange(len(terms))
    table = np.zeros((len(documents), len(terms)))
    table[rows, column[columns]] = weights
    return [terms[index] for index in order], table


def top_terms(documents: Sequence[Sequence[str]], count: int) -> list[str]:
    """The terms of the highest TF-IDF weight, summed over all documents (RAGDefender, Section 4.1).

    Args:
        documents: k token lists, stop words already left out.
        count: How many terms, at most.

    Returns:
        Up to `count` terms, the heaviest first, ties in alphabetical order.

    Complexity: O(t log t) time and O(t) memory for t tokens.
    """
    terms, _, columns, weights = _weights(documents)
    sums = np.round(np.bincount(columns, weights, minlength=len(terms)), DECIMALS)
    bar = np.partition(sums, -count)[-count] if 0 < count < len(terms) else 0.0
    ranked = np.flatnonzero(sums >= bar).tolist()
    ranked.sort(key=lambda index: (-sums[index], terms[index]))
    return [terms[index] for index in ranked[:count]]


def _weights(
    documents: Sequence[Sequence[str]],
) -> tuple[list[str], NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Terms in order of appearance, then row, column and weight of every cell that is not 0."""
    vocabulary: dict[str, int] = {}
    number = vocabulary.setdefault
    tokens = np.array([number(token, len(vocabulary)) for document in documents for token in document], np.intp)
    owners = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    cells, counts = np.unique(owners * len(vocabulary) + tokens, return_counts=True)
    rows, columns = np.divmod(cells, max(len(vocabulary), 1))
    containing = np.bincount(columns, minlength=len(vocabulary))
    rarity = np.log((1 + len(documents)) / (1 + containing)) + 1
    weights = counts * rarity[columns]
    lengths = np.sqrt(np.bincount(rows, weights**2, minlength=len(documents)))
    return list(vocabulary), rows, columns, weights / lengths[rows]
