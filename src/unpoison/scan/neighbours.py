"""Nearest units, by the rare words of a question generated from each.

Units are rows of a table of hashed stems, so no vocabulary is needed; a large table stands in a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from unpoison.text.analysis import english_stem
from unpoison.text.tokens import ENGLISH_318
from unpoison.utils.files import Spilled

__all__ = ["NEAREST", "Positions", "Terms", "by_words", "likeness", "rarest", "stem_codes", "table"]

TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\w\s]")

CODES = 2**24
"""Number of hash codes; collisions make rare stems slightly less rare."""

K1, B = 1.5, 0.75
"""BM25 parameters."""


@dataclass(frozen=True)
class Terms:
    """Stem counts of n texts.

    Attributes:
        rows: The codes of the stems of each text, ascending, and their counts, shape (2, stems of the text).
        codes: The codes of all stems, ascending, shape (stems,).
        holders: The number of texts that hold each, shape (stems,).
        words: Mean number of words of a text.
    """

    rows: Sequence[NDArray[np.int32]]
    codes: NDArray[np.int32]
    holders: NDArray[np.int32]
    words: float

    @cached_property
    def rarity(self) -> NDArray[np.float32]:
        """The inverse document frequency of each stem, shape (stems,)."""
        odds = 1 + (len(self.rows) - self.holders + 0.5) / (self.holders + 0.5)
        return np.asarray(np.log(odds), np.float32)

    def columns(self, codes: NDArray[np.int32]) -> NDArray[np.intp]:
        """The index of each code among `codes`, -1 for an unknown one."""
        if not len(self.codes):
            return np.full(len(codes), -1)
        place = np.searchsorted(self.codes, codes)
        return np.where(self.codes.take(place, mode="clip") == codes, place, -1)

    def counts(self, rows: Sequence[NDArray[np.int32]]) -> Any:
        """Counts of these stems in some texts, sparse, shape (texts, stems)."""
        from scipy.sparse import csr_array

        code, count = np.concatenate([np.zeros((2, 0), np.int32), *rows], axis=1)
        column = np.searchsorted(self.codes, code).astype(np.int32)
        ends = np.cumsum([0, *(row.shape[1] for row in rows)])
        return csr_array((count.astype(np.float32), column, ends), shape=(len(rows), len(self.codes)))

    def weights(self, rows: Sequence[NDArray[np.int32]]) -> Any:
        """The BM25 weight of each stem in some texts."""
        counts = self.counts(rows)
        length = np.asarray(counts.sum(axis=1)).ravel()
        saturation = K1 * (1 - B + B * length / max(self.words, 1.0))
        row = np.repeat(saturation.astype(np.float32), np.diff(counts.indptr))
        counts.data = counts.data / (counts.data + row) * self.rarity[counts.indices]
        return counts

    def unit_length(self, rows: Sequence[NDArray[np.int32]]) -> Any:
        """TF-IDF rows of unit length."""
        counts = self.counts(rows)
        data = (1 + np.log(counts.data)) * self.rarity[counts.indices]
        squares = np.add.reduceat(np.append(data**2, 0), counts.indptr[:-1]) if len(rows) else np.zeros(0)
        squares = np.where(np.diff(counts.indptr) > 0, squares, 1.0)
        counts.data = (data / np.repeat(np.sqrt(squares), np.diff(counts.indptr))).astype(np.float32)
        return counts


def table(texts: Iterable[str]) -> Terms:
    """Count the stems of canonical texts: O(n) time for n words; the counts stand in a file if they are many."""
    rows, holders, words = Spilled[NDArray[np.int32]](), np.zeros(CODES, np.int32), 0
    for text in texts:
        row = _counted(text)
        rows.append(row)
        holders[row[0]] += 1
        words += int(row[1].sum())
    codes = np.flatnonzero(holders).astype(np.int32)
    return Terms(rows, codes, holders[codes], words / max(len(rows), 1))


def _counted(text: str) -> NDArray[np.int32]:
    """A row of `Terms`."""
    found = sorted(Counter(stem_codes(text)).items())
    return np.array(found, np.int32).reshape(-1, 2).T


def stem_codes(text: str) -> list[int]:
    """The codes of the stems of a canonical text, in order, without stop words and punctuation."""
    return [code for code in (_code(token[:MAX_TOKEN]) for token in TOKEN.findall(text)) if code >= 0]


MAX_TOKEN = 60
"""Maximum characters of a word; longer ones are cut."""


@lru_cache(maxsize=2**15)  # some 200 bytes each
def _code(token: str) -> int:
    lowered = token.lower()
    if not token[0].isalnum() or lowered in ENGLISH_318:
        return -1
    return crc32(english_stem(lowered).encode("utf-8", "surrogatepass")) % CODES


def rarest(text: str, count: int, terms: Terms) -> list[str]:
    """The words with the rarest stems of a collection, in the order of the text; ties go to the earlier word.

    Args:
        text: The canonical text.
        count: Maximum number of words.
        terms: Stems of the collection.
    """
    if not len(terms.codes):
        return []
    words = dict[int, str]()
    for token in dict.fromkeys(TOKEN.findall(text)):
        words.setdefault(_code(token[:MAX_TOKEN]), token)
    columns = terms.columns(np.array(list(words), np.int32))
    score = np.where(columns >= 0, terms.rarity[columns], -1.0)
    best = np.argsort(-score, kind="stable")[:count]
    spelled = list(words.values())
    return [spelled[i] for i in np.sort(best) if score[i] >= 0]


Positions = NDArray[np.int32]

NEAREST = 9
"""Neighbours of a unit; with the unit itself ten passages, a usual retrieval."""

TERMS = 14
"""Maximum number of stems of a question to look up, the rarest first."""

HOLDERS = 1_500
"""A stem in more units is looked up only if a question has no rarer ones."""

BLOCK = 256
"""Questions per batch."""

UNITS = 2**13
"""Units per batch: some 50 MiB of weights."""


def by_words(
    questions: Iterable[str], terms: Terms, own: NDArray[np.int32] | None = None, owner: NDArray[np.int32] | None = None
) -> Positions:
    """The best units for each question by BM25, best first, without units of the question's own document.

    Args:
        questions: q texts.
        terms: Stems of n units.
        own: The document that each question was generated from; None for other questions.
        owner: The document of each unit, with `own`.

    Returns:
        Shape (q, `NEAREST`), -1 for none.

    Complexity: O(q) time for questions of at most `TERMS` stems that at most `HOLDERS` units hold; O(q) memory.
    """
    wanted = _query_rows(questions, terms)
    near = np.full((wanted.shape[0], NEAREST), -1, np.int32)
    best = np.zeros(near.shape)
    for first in range(0, len(terms.rows), UNITS):
        offered = terms.weights(terms.rows[first : first + UNITS]).T.tocsr()
        for start in range(0, len(near), BLOCK):
            scores = (wanted[start : start + BLOCK] @ offered).tocsr()
            for i in range(start, start + scores.shape[0]):
                units, score = _row(scores, i - start)
                if not len(units):
                    continue
                units = units + first
                if own is not None and owner is not None:
                    foreign = owner[units] != own[i]
                    units, score = units[foreign], score[foreign]
                held = near[i] >= 0
                units, score = np.append(near[i][held], units), np.append(best[i][held], score)
                order = _best(units, score, NEAREST)
                near[i, : len(order)], best[i, : len(order)] = units[order], score[order]
    return near


def _query_rows(questions: Iterable[str], terms: Terms) -> Any:
    """Indicator rows of the rarest stems of each question."""
    rows = list[NDArray[np.int32]]()
    for question in questions:
        stems = terms.columns(_counted(question)[0])
        stems = stems[stems >= 0]
        rare = stems[np.lexsort((stems, -terms.rarity[stems]))][:TERMS]
        usual = terms.holders[rare] > HOLDERS
        codes = np.sort(terms.codes[rare[:2] if usual.all() else rare[~usual]])
        rows.append(np.stack([codes, np.ones_like(codes)]))
    return terms.counts(rows)


def _row(scores: Any, i: int) -> tuple[NDArray[Any], NDArray[Any]]:
    cells = slice(scores.indptr[i], scores.indptr[i + 1])
    return scores.indices[cells], scores.data[cells]


def _best(units: NDArray[Any], score: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Positions of the best units; ties, up to rounding, go to the earlier unit."""
    rounded, some = np.round(score.astype(np.float64), 4), np.arange(len(units))
    if len(units) > 4 * count:
        near = np.argpartition(-rounded, count - 1)[:count]
        some = np.flatnonzero(rounded >= rounded[near].min())
    return np.asarray(some[np.lexsort((units[some], -rounded[some]))][:count])


def likeness(near: Positions, terms: Terms) -> NDArray[np.float32]:
    """TF-IDF cosine of each unit to its neighbours, shape of `near`. O(n) time, one block in memory at a time."""
    cosines = np.zeros(near.shape, np.float32)
    width = near.shape[1]
    for start in range(0, len(near), BLOCK):
        some = near[start : start + BLOCK]
        held, places = np.unique(np.maximum(some, 0).ravel(), return_inverse=True)
        own = terms.unit_length(terms.rows[start : start + len(some)])[np.repeat(np.arange(len(some)), width)]
        theirs = terms.unit_length([terms.rows[i] for i in held.tolist()])[places]
        products = own.multiply(theirs).sum(axis=1)
        cosines[start : start + len(some)] = np.where(some >= 0, np.asarray(products).reshape(some.shape), 0)
    return cosines
