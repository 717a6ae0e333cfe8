"""Which words passages share, with the question and with each other, where their answers are compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.text.analysis import MARK, STOP, words_of
from unpoison.text.features import COLUMNS, QuestionTerms, TextWords, beside

__all__ = ["coverage", "overlap", "products"]

Matrix = NDArray[np.float64]

DENSE_CELLS = 4_000_000
"""Passages times words up to which who says what is an array (32 MB)."""


def coverage(question: str, texts: Sequence[str]) -> Matrix:
    """The highest share of the question's words in a stretch of each of k texts, shape (k,). O(n) time."""
    highest = np.zeros(len(texts))
    if texts:
        spoken = TextWords.of(words_of(texts))
        shares = beside(QuestionTerms.of(words_of([question])[0]), spoken)[:, COLUMNS.index("coverage")]
        np.maximum.at(highest, spoken.owner, shares)
    return highest


def overlap(question: str, texts: Sequence[str]) -> Matrix:
    """The share of their words beside the question's that k texts have in common, shape (k, k), 0 on the diagonal.

    The number of common stems over the geometric mean of both. O(n log n + k^2 w) time for w distinct words.
    """
    every, asked = words_of(texts), words_of([question])[0].stem
    if not every:
        return np.zeros((0, 0))
    stem = np.concatenate([known.stem for known in every])
    kind = np.concatenate([known.kind for known in every])
    holder = np.repeat(np.arange(len(every)), [len(known.stem) for known in every])
    telling = (kind & (MARK | STOP)) == 0
    names, number = np.unique(stem[telling], return_inverse=True)
    size = max(len(names), 1)
    holder, number = np.divmod(np.unique(holder[telling] * size + number), size)
    new = ~np.isin(names, asked)[number] if len(names) else np.zeros(0, bool)
    holder, number = holder[new], number[new]
    counts = np.bincount(holder, minlength=len(every))
    common = np.bincount(number, minlength=size)[number] > 1
    shared = products(holder[common], number[common], (len(every), size))
    np.fill_diagonal(shared, 0)
    return np.asarray(shared / np.sqrt(np.maximum(counts[:, None] * counts, 1)))


def products(
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    shape: tuple[int, int],
    others: slice | NDArray[np.int64] = slice(None),
) -> Matrix:
    """How many columns rows have in common with some of them, at first with all; shape (rows, others)."""
    if shape[0] * shape[1] <= DENSE_CELLS:
        table = np.zeros(shape)
        table[row, column] = 1
        return table @ table[others].T
    from scipy.sparse import csr_array

    sparse = csr_array((np.ones(len(row)), (row, column)), shape=shape)
    return np.asarray((sparse @ sparse[others].T).toarray(), float)
