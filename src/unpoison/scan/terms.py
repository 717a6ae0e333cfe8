"""Units as rows of a sparse table of stems, which are known by their hashes: no vocabulary to keep or to agree on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.text.tokens import ENGLISH_318

__all__ = ["Terms", "rarest", "stem_codes", "table", "unit_length", "weigh_stems"]

TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\w\s]")

CODES = 2**24
"""Stems share a code by chance where there are many; what looks rare is then a little less so."""

REMEMBERED = 2**18
"""Words whose codes are remembered while a table is made."""

K1, B = 1.5, 0.75
"""BM25's."""


class Terms(NamedTuple):
    """How often each text holds each stem.

    Attributes:
        counts: Shape (n, stems), sparse float32.
        codes: The code of each column's stem, rising.
    """

    counts: Any
    codes: NDArray[np.int32]


def table(texts: Iterable[str], codes: NDArray[np.int32] | None = None) -> Terms:
    """Count stems: O(n) time and memory for n words.

    Args:
        texts: Canonical.
        codes: Count these stems alone, in this order; all that occur by default.
    """
    from scipy.sparse import csr_array

    counts, all_codes, sizes = [np.zeros(0, np.float32)], [np.zeros(0, np.int32)], [0]
    cache, stemmer = dict[str, int](), Stemmer.Stemmer("english", 0)
    for text in texts:
        code, count = np.unique(np.array(stem_codes(text, cache, stemmer), np.int32), return_counts=True)
        if codes is not None and len(codes):
            wanted = codes[np.minimum(np.searchsorted(codes, code), len(codes) - 1)] == code
            code, count = code[wanted], count[wanted]
        all_codes.append(code)
        counts.append(count.astype(np.float32))
        sizes.append(code.size)
        if len(cache) > REMEMBERED:
            cache.clear()
    every = np.concatenate(all_codes)
    columns = np.unique(every) if codes is None else codes
    positions = np.searchsorted(columns, every).astype(np.int32)
    data = (np.concatenate(counts), positions, np.cumsum(sizes).astype(np.int64))
    return Terms(csr_array(data, shape=(len(sizes) - 1, len(columns))), columns)


def stem_codes(text: str, cache: dict[str, int] | None = None, stemmer: Any = None) -> list[int]:
    """The codes of a text's stems, in order, without stop words and marks.

    Args:
        text: Canonical.
        cache: Codes by word; what is new is added.
        stemmer: An English one; stems of other languages are words less their English-looking endings.
    """
    cached = {} if cache is None else cache
    stem = (stemmer or Stemmer.Stemmer("english", 0)).stemWord
    found_codes = list[int]()
    for token in TOKEN.findall(text):
        code = cached.get(token)
        if code is None:
            code = _code(token, stem)
            cached[token] = code
        if code >= 0:
            found_codes.append(code)
    return found_codes


def _code(token: str, stem: Any) -> int:
    lowered = token.lower()
    if not token[0].isalnum() or lowered in ENGLISH_318:
        return -1
    return crc32(stem(lowered).encode("utf-8", "surrogatepass")) % CODES


def rarest(text: str, count: int, codes: NDArray[np.int32], rarity: NDArray[np.float32]) -> list[str]:
    """The words whose stems are the rarest in a collection, in their order; each stem once, ties to the earlier one.

    Args:
        text: Canonical.
        count: How many, at most.
        codes: Of each stem of the collection, rising, shape (stems,).
        rarity: Of each stem, shape (stems,).
    """
    if not len(codes):
        return []
    stem = Stemmer.Stemmer("english", 0).stemWord
    words = dict[int, str]()
    for token in dict.fromkeys(TOKEN.findall(text)):
        words.setdefault(_code(token, stem), token)
    word_codes = np.array(list(words), np.int32)
    column = np.minimum(np.searchsorted(codes, word_codes), len(codes) - 1)
    score = np.where(codes[column] == word_codes, rarity[column], -1.0)
    best = np.argsort(-score, kind="stable")[:count]
    spelled = list(words.values())
    return [spelled[i] for i in np.sort(best) if score[i] >= 0]


def weigh_stems(counts: Any) -> tuple[Any, NDArray[np.float32]]:
    """BM25's weight of every stem in every text, and every stem's rarity, shape (stems,)."""
    holders = np.bincount(counts.indices, minlength=counts.shape[1])
    n = counts.shape[0]
    rarity = np.log(1 + (n - holders + 0.5) / (holders + 0.5)).astype(np.float32)
    length = np.asarray(counts.sum(axis=1)).ravel()
    saturation = K1 * (1 - B + B * length / max(float(length.mean()) if n else 0.0, 1.0))
    weights = counts.copy()
    row = np.repeat(saturation.astype(np.float32), np.diff(counts.indptr))
    weights.data = counts.data / (counts.data + row) * rarity[counts.indices]
    return weights, rarity


def unit_length(counts: Any, rarity: NDArray[np.float32]) -> Any:
    """TF-IDF rows of length 1."""
    rows = counts.copy()
    rows.data = (1 + np.log(counts.data)) * rarity[counts.indices]
    squares = np.add.reduceat(np.append(rows.data**2, 0), counts.indptr[:-1]) if counts.shape[0] else np.zeros(0)
    squares = np.where(np.diff(counts.indptr) > 0, squares, 1.0)
    rows.data = (rows.data / np.repeat(np.sqrt(squares), np.diff(counts.indptr))).astype(np.float32)
    return rows
