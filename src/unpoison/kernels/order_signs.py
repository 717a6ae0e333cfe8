"""Signs: what a text holds that orders to a model are made of, and where.

Words come in *kinds*. A *sign* is a kind by itself, or one kind followed by another within so many words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALONE",
    "BLOCK",
    "FAR",
    "NEAR",
    "START",
    "Kinds",
    "Lexicon",
    "Occurrences",
    "OrderSigns",
    "SignTable",
    "occurrences_apart",
    "occurrences_in",
    "pairs",
    "signs",
]

Positions = NDArray[np.intp]

Kinds = tuple[str, str, int]
"""A sign: a kind, the kind that follows, and within how many words."""

ALONE = "alone"
"""Stands for the first kind of a sign that is one kind by itself, within 0 words."""

START = "start"
"""The kind of what stands before a sentence."""

MARKS = 3
"""The kinds up to this number are those of marks: where a sentence begins, a question mark, quotation marks."""

NEAR = 8
"""How many words most signs reach."""

FAR = 24
"""How many words those reach that a question may stand between: "when you are asked", a question, "say"."""

BLOCK = 2048
"""Words whose pairs are looked at together, which bounds memory."""

LONGEST_WORD = 24
"""Longer words are of no kind."""

MOST_KNOWN = 16_384
"""Words whose kinds are remembered, of at most 24 characters each."""

_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_IS_IDEOGRAPH = re.compile(f"[{_IDEOGRAPH}]")
_TOKEN = re.compile(
    rf"https?://[^\s)\]>\"']+|!\[|\[/?inst\]|<<?/?sys|<\|[a-z_]{{1,16}}|\$\{{|<!--|#{{2,6}}(?= )|[{_IDEOGRAPH}]+"
    rf"|[^\W_{_IDEOGRAPH}]+|[.!?:\n\u3002\uff01\uff1f\uff1a\"\u201c\u201d\u201e\u00ab\u300c]",
    re.IGNORECASE,
)
_BREAK = frozenset('.!?:\n\u3002\uff01\uff1f\uff1a"\u201c\u201d\u201e\u00ab\u300c')
_MARKS: dict[str, str] = {
    **dict.fromkeys("?\uff1f", "asks"),
    **dict.fromkeys('"\u201c\u201d\u201e\u00ab\u300c', "quote"),
}


class Lexicon:
    """Which words are of which kinds.

    Args:
        kinds: Words by kind, parted by spaces; a star stands for any ending.

    Attributes:
        cached: The kinds of words that were asked for, as they were written; the most frequent words are all there.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.names = (ALONE, START, "asks", "quote", "link", "carrier", *kinds)
        self.names = tuple(dict.fromkeys(self.names))
        self.number = {name: i for i, name in enumerate(self.names)}
        self._whole: dict[str, tuple[int, ...]] = {}
        self._begun: dict[str, tuple[int, ...]] = {}
        for kind, words in kinds.items():
            for word in words.split():
                table, key = (self._begun, word[:-1]) if word.endswith("*") else (self._whole, word)
                table[key] = (*table.get(key, ()), self.number[kind])
        self._lengths = sorted({len(word) for word in self._begun})
        firsts = {word[0] for word in self._whole if _IS_IDEOGRAPH.match(word)}
        self._first = re.compile(f"[{''.join(sorted(firsts))}]" if firsts else "(?!)")
        self.cached: dict[str, tuple[int, ...]] = {}

    def kinds(self, word: str) -> tuple[int, ...]:
        """The kinds of a word, by their numbers."""
        kinds = self.cached.get(word)
        if kinds is None:
            lowered = word.lower()
            if max(len(word), len(lowered)) > LONGEST_WORD:
                return ()
            begun = (kind for length in self._lengths if length <= len(lowered)
                     for kind in self._begun.get(lowered[:length], ()))  # fmt: skip
            kinds = tuple(dict.fromkeys((*self._whole.get(lowered, ()), *begun)))
            if len(self.cached) >= MOST_KNOWN:
                self.cached.clear()  # so that nobody can fill it for good with words that nobody uses
            self.cached[word] = kinds
        return kinds

    def unspaced(self, text: str, start: int, end: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Where a word of ideographs begins, and its kinds. Most begin none, and are passed over by the pattern."""
        for match in self._first.finditer(text, start, end):
            at = match.start()
            if kinds := self.beginning(text, at):
                yield at, kinds

    def beginning(self, text: str, start: int) -> tuple[int, ...]:
        """The kinds of the ideographs that begin here: they are words of two to four, without spaces between."""
        words = {text[start : start + n]: None for n in (2, 3, 4)}  # at the end of a text they are the same
        return tuple(kind for word in words for kind in self._whole.get(word, ()))


class Occurrences(NamedTuple):
    """The kinds that a text holds, in its order: of each the number of its word, of its token, and its place."""

    kind: NDArray[np.int64]
    word: NDArray[np.int64]
    token: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


class SignTable:
    """The signs that are looked for.

    Args:
        code: first kind * kinds + second kind, rising; a kind by itself has the first kind 0.
        reach: Within how many words.
        far: Which kinds are looked for `FAR` words ahead, by their numbers.
    """

    def __init__(self, code: NDArray[np.int64], reach: NDArray[np.int64], far: NDArray[np.bool_]) -> None:
        self.code, self.reach, self.far = code, reach, far
        # Every code by itself: looking one up is ten times as quick as searching for it.
        self.begin = np.searchsorted(code, np.arange(len(far) ** 2 + 1)).astype(np.int32)


class OrderSigns(NamedTuple):
    """The signs that a text holds, by sign and then by place: which, the numbers of both words, and the places."""

    sign: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


def occurrences_in(text: str, lexicon: Lexicon) -> Occurrences:
    """The kinds that a text holds. O(n) time."""
    return occurrences_apart([text], lexicon, 0)[0]


def occurrences_apart(texts: Sequence[str], lexicon: Lexicon, apart: int) -> tuple[Occurrences, NDArray[np.int64]]:
    """The kinds that several texts hold, as if these were one: many small texts cost little more than one. O(n) time.

    Args:
        texts: k texts.
        lexicon: Which words are of which kinds.
        apart: The words between two texts, as many as no sign and no stretch reaches over.

    Returns:
        What is met, words and tokens numbered through all texts, places in each text; and the numbers of the words
        before which the texts begin, shape (k,). What stands before a text's first word counts as one word, the last
        one in front of it.
    """
    rows, begin = list[tuple[int, int, int, int, int]](), list[int]()
    words = tokens = 0
    for text in texts:
        begin.append(words)
        words, tokens = _collected(text, lexicon, rows, words, tokens)
        words += apart + 1
    return Occurrences(*np.array(rows, np.int64).reshape(-1, 5).T), np.array(begin, np.int64)


def _collected(
    text: str, lexicon: Lexicon, rows: list[tuple[int, int, int, int, int]], words: int, tokens: int
) -> tuple[int, int]:
    """Add the kinds of a text to those found, and count its words and tokens."""
    fresh = True
    between, marks = words, set[str]()  # which marks stand between two words: a thousand of them say no more than one
    number, cached, kinds_of = lexicon.number, lexicon.cached, lexicon.kinds
    for match in _TOKEN.finditer(text):
        token = match[0]
        tokens += 1
        if token in _BREAK:
            fresh = True
            if words != between:
                between, marks = words, set()
            mark = _MARKS.get(token)
            if mark is not None and mark not in marks:
                marks.add(mark)
                rows.append((number[mark], words - 1, tokens, *match.span()))
            continue
        if fresh:
            start = match.start()
            rows.append((number[START], words - 1, tokens - 1, start, start))
            fresh = False
        kinds = cached.get(token)  # of most words, and most are of none
        if kinds is None:
            start, end = match.span()
            if _IS_IDEOGRAPH.match(token):  # a run of them, each a word
                for at, some in lexicon.unspaced(text, start, end):
                    rows.extend((kind, words + at - start, tokens + at - start, at, at + 1) for kind in some)
                words += end - start
                tokens += end - start
                continue
            if token[:4].lower() == "http" and "://" in token:
                kinds = (number["link"], number["carrier"]) if "=" in token or "{" in token else (number["link"],)
            else:
                kinds = kinds_of(token)
        if kinds:
            start, end = match.span()
            rows += [(kind, words, tokens, start, end) for kind in kinds]
        words += 1
    return words, tokens


def pairs(occurrences: Occurrences, far: NDArray[np.bool_]) -> Iterator[tuple[Positions, Positions]]:
    """Which of the kinds met follow which, as positions in `occurrences`, in blocks; every kind also with itself.

    Args:
        occurrences: What was met.
        far: Which kinds reach `FAR` words, by their numbers; the others reach `NEAR`.
    """
    everything = np.arange(len(occurrences.kind))
    distant = np.flatnonzero(far[occurrences.kind])
    for first in range(0, len(everything), BLOCK):
        second = everything[first : first + BLOCK]
        yield second, second
        words = occurrences.word[second]
        near = np.searchsorted(occurrences.word, words - NEAR)
        yield _joined(occurrences, everything, near, second, second)
        lower = np.searchsorted(occurrences.word[distant], words - FAR)
        upper = np.searchsorted(occurrences.word[distant], words - NEAR)
        yield _joined(occurrences, distant, lower, upper, second)


def _joined(
    occurrences: Occurrences, firsts: Positions, lower: Positions, upper: Positions, second: Positions
) -> tuple[Positions, Positions]:
    """Each second kind with the first ones from a lower to an upper position among those; none with its own token."""
    counts = upper - lower
    behind = np.cumsum(counts)
    i = firsts[np.arange(behind[-1]) - np.repeat(behind - counts - lower, counts)]
    j = np.repeat(second, counts)
    keep = occurrences.token[i] != occurrences.token[j]
    return i[keep], j[keep]


def signs(occurrences: Occurrences, table: SignTable) -> OrderSigns:
    """The signs of a table that a text holds, each with the nearest first kind. O(n log n) time."""
    parts = [_in_table(occurrences, table, i, j) for i, j in pairs(occurrences, table.far)]
    if not parts:
        return OrderSigns(*(np.zeros(0, np.int64) for _ in OrderSigns._fields))
    sign, i, j = (np.concatenate(part) for part in zip(*parts))
    size = len(occurrences.kind)
    sign, j, i = _parted(np.sort((sign * size + j) * size + i), size)
    nearest = np.append((sign[1:] != sign[:-1]) | (j[1:] != j[:-1]), True)[: len(sign)]
    sign, i, j = sign[nearest], i[nearest], j[nearest]
    # A mark stands between two words: a stretch that begins with it does not hold the word before.
    first = np.minimum(occurrences.word[i] + (occurrences.kind[i] <= MARKS), occurrences.word[j])
    return OrderSigns(sign, first, occurrences.word[j], occurrences.start[i], occurrences.end[j])


def _parted(code: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], ...]:
    """Three numbers of one: (first * size + second) * size + third."""
    rest, third = np.divmod(code, size)
    return *np.divmod(rest, size), third


def _in_table(
    occurrences: Occurrences, table: SignTable, i: Positions, j: Positions
) -> tuple[Positions, Positions, Positions]:
    """The signs that pairs of kinds make, with the pairs."""
    code = occurrences.kind[j] if i is j else occurrences.kind[i] * len(table.far) + occurrences.kind[j]
    lower = table.begin[code]
    counts = table.begin[code + 1] - lower
    some = np.flatnonzero(counts)  # few pairs make one
    i, j, lower, counts = i[some], j[some], lower[some], counts[some]
    behind = np.cumsum(counts)
    sign = np.arange(counts.sum()) - np.repeat(behind - counts - lower, counts)
    i, j = np.repeat(i, counts), np.repeat(j, counts)
    near = occurrences.word[j] - occurrences.word[i] <= table.reach[sign]
    return sign[near], i[near], j[near]
