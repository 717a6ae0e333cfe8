"""Nearest units, by the rare words of a question generated from each.

Units are rows of a sparse table of hashed stems, so no vocabulary is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from unpoison.text.analysis import english_stem
from unpoison.text.tokens import ENGLISH_318

__all__ = [
    "NEAREST", "Terms", "by_words", "likeness", "rarest", "stem_codes", "table", "unit_length", "weigh_stems",
]  # fmt: skip

TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\w\s]")

CODES = 2**24
"""Number of hash codes; collisions make rare stems slightly less rare."""

K1, B = 1.5, 0.75
"""BM25 parameters."""


class Terms(NamedTuple):
    """Stem counts of texts.

    Attributes:
        counts: Shape (n, stems), sparse float32.
        codes: The code of each column, ascending.
    """

    counts: Any
    codes: NDArray[np.int32]


def table(texts: Iterable[str], codes: NDArray[np.int32] | None = None) -> Terms:
    """Count stems: O(n) time and memory for n words.

    Args:
        texts: Canonical texts.
        codes: The stems to count, in this order; by default all that occur.
    """
    from scipy.sparse import csr_array

    counts, all_codes, sizes = [np.zeros(0, np.float32)], [np.zeros(0, np.int32)], [0]
    for text in texts:
        code, count = np.unique(np.array(stem_codes(text), np.int32), return_counts=True)
        if codes is not None:
            wanted = np.isin(code, codes)
            code, count = code[wanted], count[wanted]
        all_codes.append(code)
        counts.append(count.astype(np.float32))
        sizes.append(code.size)
    every = np.concatenate(all_codes)
    columns = np.unique(every) if codes is None else codes
    positions = np.searchsorted(columns, every).astype(np.int32)
    data = (np.concatenate(counts), positions, np.cumsum(sizes).astype(np.int64))
    return Terms(csr_array(data, shape=(len(sizes) - 1, len(columns))), columns)


def stem_codes(text: str) -> list[int]:
    """The codes of the stems of a canonical text, in order, without stop words and punctuation."""
    return [code for code in (_code(token[:MAX_TOKEN]) for token in TOKEN.findall(text)) if code >= 0]


MAX_TOKEN = 60
"""Characters of a word that are told apart."""


@lru_cache(maxsize=2**15)  # some 200 bytes each
def _code(token: str) -> int:
    lowered = token.lower()
    if not token[0].isalnum() or lowered in ENGLISH_318:
        return -1
    return crc32(english_stem(lowered).encode("utf-8", "surrogatepass")) % CODES


def rarest(text: str, count: int, codes: NDArray[np.int32], rarity: NDArray[np.float32]) -> list[str]:
    """The words with the rarest stems of a collection, in the order of the text; ties go to the earlier word.

    Args:
        text: The canonical text.
        count: Maximum number of words.
        codes: Codes of the collection's stems, ascending, shape (stems,).
        rarity: Rarity of each stem, shape (stems,).
    """
    if not len(codes):
        return []
    words = dict[int, str]()
    for token in dict.fromkeys(TOKEN.findall(text)):
        words.setdefault(_code(token[:MAX_TOKEN]), token)
    word_codes = np.array(list(words), np.int32)
    column = np.minimum(np.searchsorted(codes, word_codes), len(codes) - 1)
    score = np.where(codes[column] == word_codes, rarity[column], -1.0)
    best = np.argsort(-score, kind="stable")[:count]
    spelled = list(words.values())
    return [spelled[i] for i in np.sort(best) if score[i] >= 0]


def weigh_stems(counts: Any) -> tuple[Any, NDArray[np.float32]]:
    """The BM25 weight of each stem in each text, and the rarity of each stem, shape (stems,)."""
    holders = np.bincount(counts.indices, minlength=counts.shape[1])
    n = counts.shape[0]
    rarity = np.log(1 + (n - holders + 0.5) / (holders + 0.5)).astype(np.float32)
    length = np.asarray(counts.sum(axis=1)).ravel()
    saturation = K1 * (1 - B + B * length / max(float(length.mean()) if n else 0.0, 1.0))
    row = np.repeat(saturation.astype(np.float32), np.diff(counts.indptr))
    return _with_data(counts, counts.data / (counts.data + row) * rarity[counts.indices]), rarity


def _with_data(counts: Any, data: NDArray[np.float32]) -> Any:
    """Other numbers in the same places of a table, whose indices are shared, not copied."""
    return type(counts)((data, counts.indices, counts.indptr), shape=counts.shape)


def unit_length(counts: Any, rarity: NDArray[np.float32]) -> Any:
    """TF-IDF rows of unit length."""
    data = (1 + np.log(counts.data)) * rarity[counts.indices]
    squares = np.add.reduceat(np.append(data**2, 0), counts.indptr[:-1]) if counts.shape[0] else np.zeros(0)
    squares = np.where(np.diff(counts.indptr) > 0, squares, 1.0)
    return _with_data(counts, (data / np.repeat(np.sqrt(squares), np.diff(counts.indptr))).astype(np.float32))


Positions = NDArray[np.int32]
Matrix = NDArray[np.float32]

NEAREST = 9
"""Neighbours of a unit; with the unit itself ten, a usual retrieval."""

TERMS = 14
"""Maximum number of stems of a question to look up, the rarest first."""

HOLDERS = 1_500
"""A stem in more units is looked up only if a question has no rarer ones."""

BLOCK = 256
"""Questions per batch."""


def by_words(
    questions: Sequence[str],
    weights: Any,
    rarity: NDArray[np.float32],
    codes: NDArray[np.int32],
    own: NDArray[np.int32] | None = None,
    owner: NDArray[np.int32] | None = None,
) -> Iterator[Positions]:
    """The best units for each question by BM25, at most `NEAREST`, without units of the question's own document.

    Args:
        questions: q texts.
        weights: BM25 weights of n units, shape (n, stems), sparse.
        rarity: Rarity of each stem, shape (stems,).
        codes: Code of each stem, shape (stems,).
        own: The document that each question was generated from; None for other questions.
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
    """Indicator rows of the rarest stems of each question."""
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
    """The best units; ties, up to rounding, go to the earlier unit."""
    rounded = np.round(score.astype(np.float64), 4)
    if len(units) > 4 * count:
        near = np.argpartition(-rounded, count - 1)[:count]
        near = np.flatnonzero(rounded >= rounded[near].min())
        units, rounded = units[near], rounded[near]
    return np.asarray(units[np.lexsort((units, -rounded))][:count], np.int32)


def likeness(near: Positions, rows: Any) -> NDArray[np.float32]:
    """TF-IDF cosine of each unit to its neighbours, shape of `near`. O(n) time, one block in memory at a time."""
    cosines = np.zeros(near.shape, np.float32)
    width = near.shape[1]
    for start in range(0, len(near), BLOCK):
        some = near[start : start + BLOCK]
        own = rows[np.repeat(np.arange(start, start + len(some)), width)]
        products = own.multiply(rows[np.maximum(some, 0).ravel()]).sum(axis=1)
        cosines[start : start + len(some)] = np.where(some >= 0, np.asarray(products).reshape(some.shape), 0)
    return cosines
