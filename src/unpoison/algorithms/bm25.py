"""BM25 of every query against every document, as GRADA's published calls of bm25s give it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import log

import numpy as np
from numpy.typing import NDArray

__all__ = ["bm25"]

DENSE_CELLS = 50_000
"""Maximum cells for dense multiplication of term counts; larger ones are sparse."""

BLOCK_CELLS = 4_000_000
"""Maximum cells of the result that a sparse product computes at once."""


SATURATION = 1.5
"""The parameter k1 of bm25s."""


def bm25(queries: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """BM25 score of each document for each query, where each document is an index of its own.

    For each of its occurrences in the query, a token that occurs tf times in a document adds
    ln(1 + 0.5 / 1.5) * tf / (tf + `SATURATION`); missing tokens add 0. The idf is that of a single document, which also
    has the mean length. `retrieval.memory.BM25Index` has the statistics of a collection.

    Args:
        queries: q token lists.
        documents: d token lists. Pass the same object twice to score documents against each other at half the work.

    Returns:
        Shape (q, d), non-negative; not symmetric.

    Complexity: O(tokens + sum over terms of (queries with it) * (documents with it)) time.
    """
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
    weight = log(1 + 0.5 / 1.5) * frequency / (frequency + SATURATION)
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
