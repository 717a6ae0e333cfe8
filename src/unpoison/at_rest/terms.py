"""Units as rows of a sparse table of stems, each stem a column by its hash: no vocabulary to build, keep or agree on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.kernels.reading import TOKEN
from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["COLUMNS", "stemmed", "table", "unit_length", "weighted"]

COLUMNS = 2**20
"""Stems share a column by chance where there are many; what looks rare is then a little less so."""

BLOCK = 2_048
"""Texts that are split at once."""

K1, B = 1.5, 0.75
"""BM25's."""


def table(texts: Iterable[str]) -> Any:
    """How often each text holds each stem, shape (n, COLUMNS), sparse float32. O(n) time for n words."""
    from scipy.sparse import csr_array

    counts, columns, sizes = list[NDArray[np.float32]](), list[NDArray[np.int32]](), [0]
    seen = dict[str, int]()
    stemmer = Stemmer.Stemmer("english", 0)
    for text in texts:
        found = stemmed(text, seen, stemmer)
        column, count = np.unique(np.array(found, np.int32), return_counts=True)
        columns.append(column)
        counts.append(count.astype(np.float32))
        sizes.append(column.size)
        if len(seen) > 4 * BLOCK * 64:
            seen.clear()
    rows = np.cumsum(sizes)
    none = (np.zeros(0, np.float32), np.zeros(0, np.int32))
    data = (np.concatenate([none[0], *counts]), np.concatenate([none[1], *columns]), rows.astype(np.int64))
    return csr_array(data, shape=(len(sizes) - 1, COLUMNS))


def stemmed(text: str, seen: dict[str, int] | None = None, stemmer: Any = None) -> list[int]:
    """The columns of a text's stems, in order, without stop words and marks.

    Args:
        text: Canonical.
        seen: Columns by word; what is new is added.
        stemmer: An English one; stems of other languages are words less their English-looking endings.
    """
    known = {} if seen is None else seen
    stem = (stemmer or Stemmer.Stemmer("english", 0)).stemWord
    found = list[int]()
    for token in TOKEN.findall(text):
        column = known.get(token)
        if column is None:
            column = _column(token, stem)
            known[token] = column
        if column >= 0:
            found.append(column)
    return found


def _column(token: str, stem: Any) -> int:
    lowered = token.lower()
    if not token[0].isalnum() or lowered in ENGLISH_318:
        return -1
    return crc32(stem(lowered).encode("utf-8", "surrogatepass")) % COLUMNS


def weighted(counts: Any) -> tuple[Any, NDArray[np.float32]]:
    """BM25's weight of every stem in every text, and every stem's rarity, shape (COLUMNS,)."""
    holders = np.bincount(counts.indices, minlength=COLUMNS)
    n = counts.shape[0]
    rarity = np.log(1 + (n - holders + 0.5) / (holders + 0.5)).astype(np.float32)
    length = np.asarray(counts.sum(axis=1)).ravel()
    saturation = K1 * (1 - B + B * length / max(float(length.mean()) if n else 0.0, 1.0))
    made = counts.copy()
    row = np.repeat(saturation.astype(np.float32), np.diff(counts.indptr))
    made.data = counts.data / (counts.data + row) * rarity[counts.indices]
    return made, rarity


def unit_length(counts: Any, rarity: NDArray[np.float32]) -> Any:
    """TF-IDF rows of length 1."""
    made = counts.copy()
    made.data = (1 + np.log(counts.data)) * rarity[counts.indices]
    squares = np.add.reduceat(np.append(made.data**2, 0), counts.indptr[:-1]) if counts.shape[0] else np.zeros(0)
    squares = np.where(np.diff(counts.indptr) > 0, squares, 1.0)
    made.data = (made.data / np.repeat(np.sqrt(squares), np.diff(counts.indptr))).astype(np.float32)
    return made

