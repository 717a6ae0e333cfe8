"""BM25 of every query against every document (method "lucene" of bm25s)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["bm25"]

DENSE_CELLS = 50_000
"""Maximum cells for dense multiplication of term counts; larger ones are sparse."""

BLOCK_CELLS = 4_000_000
"""Maximum cells of the result that a sparse product computes at once."""


def bm25(
    queries: Sequence[Sequence[str]],
    documents: Sequence[Sequence[str]],
    *,
    statistics: Literal["single", "candidates"] = "single",
    k1: float = 1.5,
    b: float = 0.75,
) -> NDArray[np.float64]:
    """BM25 score of each document for each query.

    For each of its occurrences in the query, a token that occurs tf times in a document of length l adds
    idf * tf / (tf + k1 * (1 - b + b * l / mean(l))); missing tokens add 0.

    With "candidates", idf = ln(1 + (n - df + 0.5) / (df + 0.5)) and the mean length are taken over `documents`. With
    "single", each document is an index of its own, as in GRADA's published calls of bm25s: then every idf is
    ln(1 + 0.5 / 1.5) and every document has the mean length, so `b` has no effect.

    Args:
        queries: q token lists.
        documents: d token lists. Pass the same object twice to score documents against each other at half the work.
        statistics: The source of document frequencies and the mean length.
        k1: Saturation of the term frequency.
        b: Strength of the length normalisation, in [0, 1].

    Returns:
        Shape (q, d), non-negative; not symmetric.

    Complexity: O(tokens + sum over terms of (queries with it) * (documents with it)) time.
    """
    if statistics not in ("single", "candidates"):
        raise ValueError(f"statistics must be 'single' or 'candidates', got {statistics!r}")
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(chain.from_iterable(documents)))}
    terms = np.array(list(map(vocabulary.__getitem__, chain.from_iterable(documents))), np.intp)
    lengths = np.array([len(document) for document in documents], np.intp)
    counts = _counts(terms, lengths, len(vocabulary))
    if queries is documents:
        query_counts = counts
    else:
        query_terms = [[vocabulary[token] for token in query if token in vocabulary] for query in queries]
        query_counts = _counts(
            np.array([term for query in query_terms for term in query], np.intp),
            np.array([len(query) for query in query_terms], np.intp),
            len(vocabulary),
        )
    document, term, frequency = counts
    if statistics == "single":
        weight = log(1 + 0.5 / 1.5) * frequency / (frequency + k1)
    else:
        containing = np.bincount(term, minlength=len(vocabulary))
        rarity = np.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
        relative = lengths / max(lengths.mean(), 1.0) if len(documents) else lengths
        weight = rarity[term] * frequency / (frequency + k1 * (1 - b + b * relative[document]))
    return _product(query_counts, (document, term, weight), (len(queries), len(documents), len(vocabulary)))


Counts = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]
"""Row, column and value of every nonzero cell, ordered by row, then column."""


def _counts(terms: NDArray[np.intp], lengths: NDArray[np.intp], size: int) -> Counts:
    """The count of each term in each row; `terms` are the concatenated tokens of the rows."""
    keys = np.repeat(np.arange(len(lengths)), lengths) * size + terms
    if len(lengths) * size <= DENSE_CELLS:
        dense = np.bincount(keys, minlength=len(lengths) * size)
        cells = np.flatnonzero(dense)
        values = dense[cells]
    else:
        cells, values = np.unique(keys, return_counts=True)
    rows, columns = np.divmod(cells, max(size, 1))
    return rows, columns, values.astype(np.float64)


def _product(left: Counts, right: Counts, shape: tuple[int, int, int]) -> NDArray[np.float64]:
    """The matrix product left @ right.T, shape (rows of left, rows of right)."""
    height, width, inner = shape
    if (height + width) * inner <= DENSE_CELLS:
        first, second = np.zeros((height, inner)), np.zeros((width, inner))
        first[left[0], left[1]] = left[2]
        second[right[0], right[1]] = right[2]
        return first @ second.T
    from scipy.sparse import csr_array

    queries = csr_array((left[2], (left[0], left[1])), (height, inner))
    offered = csr_array((right[2], (right[1], right[0])), (inner, width))
    result = np.empty((height, width))
    step = max(1, BLOCK_CELLS // max(width, 1))
    for start in range(0, height, step):
        result[start : start + step] = (queries[start : start + step] @ offered).toarray()
    return result
