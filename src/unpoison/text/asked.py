"""What stretches of texts have of a question: its words, its phrases, and how much beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.text.analysis import MARK, STOP, Words
from unpoison.text.style import FACTOR, ranges

__all__ = ["COLUMNS", "QuestionTerms", "TextWords", "beside"]

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

COLUMNS: Final = ("coverage", "echo", "news", "length")

MAX_TERMS: Final = 64
"""Distinct words, and phrases, of a question that count; people ask in fewer."""


class QuestionTerms(NamedTuple):
    """A question's distinct telling stems (all where it has no other) and phrases of three stems, rising."""

    stems: Numbers
    phrases: Numbers

    @classmethod
    def of(cls, question: Words) -> Self:
        """At most `MAX_TERMS` of each."""
        word = question.kind < MARK
        stems, stop = question.stem[word], (question.kind[word] & STOP) > 0
        telling = stems[~stop] if (~stop).any() else stems
        return cls(np.unique(telling)[:MAX_TERMS], np.unique(_phrases(stems))[:MAX_TERMS])


class TextWords(NamedTuple):
    """The words of k texts behind each other, without marks.

    Attributes:
        stem: Of each word, shape (n,).
        stop: Whether it is a stop word, shape (n,).
        first, last: The words of each stretch, from `first` to before `last`, shape (w,).
        owner: The text of each stretch, shape (w,).
        begin: Where each text begins, and the end, shape (k + 1,).
    """

    stem: Numbers
    stop: NDArray[np.bool_]
    first: Numbers
    last: Numbers
    owner: Numbers
    begin: Numbers

    @classmethod
    def of(cls, texts: Sequence[Words]) -> Self:
        """All windows of k texts, at least one."""
        kind = np.concatenate([text.kind for text in texts])
        word = kind < MARK
        before = np.concatenate([[0], np.cumsum(word)])
        begin = np.cumsum([0, *(len(text.kind) for text in texts)])
        owner = np.repeat(np.arange(len(texts)), [len(text.first) for text in texts])
        first = np.concatenate([text.first for text in texts]) + begin[owner]
        last = np.concatenate([text.last for text in texts]) + begin[owner]
        stem = np.concatenate([text.stem for text in texts])[word]
        return cls(stem, (kind[word] & STOP) > 0, before[first], before[last], owner, before[begin])


def beside(wanted: QuestionTerms, spoken: TextWords) -> Matrix:
    """`COLUMNS` of each stretch, shape (w, 4).

    `coverage` and `echo` are the shares of the question's words and phrases that stand in it, `news` the logarithm of
    how many telling words it has beside them, `length` that of all words. O(n) time for each word of the question.
    """
    first, last, stem = spoken.first, spoken.last, spoken.stem
    hit = _places(wanted.stems, stem)
    new = ~spoken.stop & (hit < 0)
    phrase = np.full(len(stem), -1)
    phrase[: max(len(stem) - 2, 0)] = _places(wanted.phrases, _phrases(stem))
    return np.column_stack([
        _distinct(hit, len(wanted.stems), first, last) / max(len(wanted.stems), 1),
        _distinct(phrase, len(wanted.phrases), first, np.maximum(last - 2, first)) / max(len(wanted.phrases), 1),
        np.log1p(ranges(new, first, last)),
        np.log1p(np.maximum(last - first, 1)),
    ])  # fmt: skip


def _phrases(stem: Numbers) -> Numbers:
    """A number for every three stems in a row."""
    own = stem.view(np.uint64) if stem.flags.c_contiguous else stem.astype(np.uint64)
    return ((own[:-2] * FACTOR + own[1:-1]) * FACTOR + own[2:]).view(np.int64)


def _places(table: Numbers, values: Numbers) -> Numbers:
    """Where values stand in a rising table, -1 for those that do not."""
    if not len(table):
        return np.full(len(values), -1)
    place = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[place] == values, place, -1)


def _distinct(place: Numbers, count: int, first: Numbers, last: Numbers) -> Matrix:
    """How many of `count` things each stretch holds at least once."""
    total, at = np.zeros(len(first)), np.flatnonzero(place >= 0)
    what = place[at]
    low, high = np.searchsorted(at, first), np.searchsorted(at, last)
    for thing in range(count):
        total += ranges(what == thing, low, high) > 0
    return total
