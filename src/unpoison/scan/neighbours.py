"""Which units stand near each: by the rare words of a question made from it.

Units are rows of a sparse table of stems, which are known by their hashes: no vocabulary to keep or to agree on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.text.tokens import ENGLISH_318

__all__ = [
    "NEAREST", "Terms", "by_words", "likeness", "rarest", "stem_codes", "table", "unit_length",
    "weigh_stems",
]  # fmt: skip

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


Positions = NDArray[np.int32]
Matrix = NDArray[np.float32]

NEAREST = 9
"""Neighbours of a unit: with it ten, the usual retrieval."""

TERMS = 14
"""Rarest stems of a question that are looked up."""

HOLDERS = 1_500
"""A stem that more units hold says little, and is looked up only where a question has no rarer ones."""

BLOCK = 256
"""Questions that are looked up at once."""


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


def likeness(near: Positions, rows: Any) -> NDArray[np.float32]:
    """TF-IDF cosine of every unit to each of its neighbours, shape of `near`. O(n) time, blocks in memory."""
    cosines = np.zeros(near.shape, np.float32)
    width = near.shape[1]
    for start in range(0, len(near), BLOCK):
        some = near[start : start + BLOCK]
        own = rows[np.repeat(np.arange(start, start + len(some)), width)]
        products = own.multiply(rows[np.maximum(some, 0).ravel()]).sum(axis=1)
        cosines[start : start + len(some)] = np.where(some >= 0, np.asarray(products).reshape(some.shape), 0)
    return cosines
