"""Near-copies: texts that differ only in a few words at the same places. No model, any language.

A page, and a copy with another name or number, contradict each other, and the user should know. Words are compared
without case; a character of a script without spaces is a word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from unpoison.text.answers import relation
from unpoison.text.tokens import ENGLISH_318, READ_WORD
from unpoison.utils.assets import read_data

__all__ = [
    "BEGINNING", "FoldedText", "Frame", "differ", "differences", "diverge", "near_copies", "split_words", "with_unit",
]  # fmt: skip

SHARED = 0.75
"""Minimum share of common distinct words of near-copies, relative to the text with more of them."""

MIN_SHARED_WORDS = 4
"""Minimum number of common words; shorter texts are not compared."""

MAX_DIFFERENCES = 3
"""Maximum number of distinct differences; texts with more share a template and are not copies."""

MAX_DIFFERENCE_WORDS = 8
"""Maximum words of a difference in each text."""

BEGINNING = 300
"""Characters in which most texts that are no near-copies already differ too much."""

CANDIDATES = 16
"""Number of texts to compare with a text word by word, those with the most common words."""

TOGETHER = 64
"""Number of texts whose common words with all others are counted at once."""

SPELLING = 0.65
"""Minimum share of equal letters in two spellings of a lower-case word."""

SHORT_WORD = 3
"""Maximum letters of a lower-case word that is assumed to be an article or similar, in any language."""

_YEAR = re.compile(r"(?:1\d|20)\d\d")
_EDGES = read_data("characters.json")["edges"]


class Frame(NamedTuple):
    """The common words of near-copies, with open slots, and the differing words in the slots.

    Attributes:
        fillings: The words in the slots of each text, by its position; at least two texts.
        slots: The number of slots.
    """

    fillings: dict[int, str]
    slots: int


def split_words(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    return list(map(str.casefold, READ_WORD.findall(text)))


class FoldedText:
    """A text as words, folded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = split_words(text)
        self.distinct = frozenset(self.words)

    def __sizeof__(self) -> int:
        return 600 + 4 * len(self.text) + 300 * len(self.words)

    @cached_property
    def pairs(self) -> list[tuple[str, ...]]:
        """Each word with the next one; then the last word alone, and an empty tuple."""
        return [*zip(self.words, self.words[1:]), *((word,) for word in self.words[-1:]), ()]

    @cached_property
    def starts(self) -> list[int]:
        """The start of each word, and the text's length; computed on demand, because few texts need it."""
        return [*(match.start() for match in READ_WORD.finditer(self.text)), len(self.text)]

    def slice(self, first: int, last: int) -> str:
        """The words from `first` to before `last` as written."""
        return " ".join(self.text[self.starts[first] : self.starts[last]].split()).strip(_EDGES)


class _Compared(NamedTuple):
    """The common words of two texts, with None for every slot, and the words of each text in the slots."""

    shared: tuple[str | None, ...]
    left: str
    right: str


class TokenDifference(NamedTuple):
    """A difference of two texts: the range of words in each."""

    left: tuple[int, int]
    right: tuple[int, int]


def near_copies(texts: Sequence[str], read: Callable[[str], FoldedText] = FoldedText) -> list[Frame]:
    """Find near-copies and their differences.

    Two texts are near-copies if they share `SHARED` of their words, in the same order, with at most `MAX_DIFFERENCES`
    differences. A difference counts if a name or number replaces another, or one content word replaces one. Spellings
    of one name or amount, lower-case phrases and added words do not count.

    Args:
        texts: Any number; an empty text is a near-copy of nothing.
        read: Folds a text, or looks it up in a cache.

    Returns:
        Frames, those with the fewest slots first, then by their first text. Texts with equal words are in the same
        frames. A frame is left out if all its texts are in frames with fewer slots: if one copy has another name and a
        second copy another date, each differs from the original in one place.

    Complexity: O(k n) time for k texts of n words in all; of each text at most `CANDIDATES` others are compared.
    """
    folded = [read(text) for text in texts]
    copies: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, text in enumerate(folded):
        copies[tuple(text.words)].append(i)
    firsts = [where[0] for where in copies.values()]
    frames: dict[tuple[str | None, ...], tuple[dict[int, str], int]] = {}
    for left, right in _candidates([folded[i] for i in firsts]):
        first, second = firsts[left], firsts[right]
        compared = _compare_texts(folded[first], folded[second])
        if compared is None:
            continue
        fillings, _ = frames.setdefault(compared.shared, ({}, compared.shared.count(None)))
        for i, filling in ((first, compared.left), (second, compared.right)):
            fillings.update(dict.fromkeys(copies[tuple(folded[i].words)], filling))
    ranked = [Frame(dict(sorted(fillings.items())), slots) for fillings, slots in frames.values()]
    ranked.sort(key=lambda frame: (frame.slots, next(iter(frame.fillings))))
    fewest_slots: dict[int, int] = {}  # of the frames that contain a text
    for frame in ranked:
        for i in frame.fillings:
            fewest_slots.setdefault(i, frame.slots)
    return [frame for frame in ranked if any(fewest_slots[i] == frame.slots for i in frame.fillings)]


def _candidates(read: Sequence[FoldedText]) -> Iterator[tuple[int, int]]:
    """Pairs of texts with enough common words: for each text, the `CANDIDATES` later ones with the most."""
    holders = Counter(chain.from_iterable(text.distinct for text in read))
    column = {word: at for at, word in enumerate(word for word, number in holders.items() if number > 1)}
    has = np.zeros((len(read), len(column)), np.float32)
    for row, text in zip(has, read):
        row[[column[word] for word in text.distinct if word in column]] = 1
    least = np.maximum(MIN_SHARED_WORDS, [SHARED * len(text.distinct) for text in read])
    for begin in range(0, len(read), TOGETHER):
        shared = np.triu(has[begin : begin + TOGETHER] @ has.T, begin + 1)
        alike = shared >= np.maximum(least[begin : begin + TOGETHER, None], least)
        for i in np.flatnonzero(alike.any(axis=1)).tolist():
            found = np.flatnonzero(alike[i])
            found = found[np.argsort(-shared[i, found], kind="stable")]
            yield from ((begin + i, j) for j in found[:CANDIDATES].tolist())


def _compare_texts(left: FoldedText, right: FoldedText) -> _Compared | None:
    """The relevant differences of two near-copies; None if there are none, or the texts are not near-copies."""
    places = differences(left, right)
    if places is None:
        return None
    frame: list[str | None] = []
    fillings: dict[tuple[str, str], None] = {}
    at = 0
    for difference in places:
        frame += left.words[at : difference.left[0]]
        at = difference.left[1]
        first, second = left.slice(*difference.left), right.slice(*difference.right)
        if first and second and differ(first, second):
            frame.append(None)
            fillings[with_unit(left, difference.left, first), with_unit(right, difference.right, second)] = None
    frame += left.words[at:]
    if not fillings:
        return None
    ours, theirs = ", ".join(first for first, _ in fillings), ", ".join(second for _, second in fillings)
    return _Compared(tuple(frame), ours, theirs)


def differences(one: FoldedText, other: FoldedText) -> list[TokenDifference] | None:
    """The differences of two texts by words; None if there are too many. Linear time."""
    left, right = one.words, other.words
    n, m = len(left), len(right)
    places: list[TokenDifference] = []
    distinct = set()
    i = j = 0
    while True:
        while i < n and j < m and left[i] == right[j]:
            i, j = i + 1, j + 1
        if i == n and j == m:
            return places
        step = _step(one.pairs[i : i + MAX_DIFFERENCE_WORDS + 1], other.pairs[j : j + MAX_DIFFERENCE_WORDS + 1])
        if step is None:
            return None
        difference = TokenDifference((i, i + step[0]), (j, j + step[1]))
        distinct.add((*left[i : difference.left[1]], None, *right[j : difference.right[1]]))
        if len(distinct) > MAX_DIFFERENCES:
            return None
        places.append(difference)
        i, j = difference.left[1], difference.right[1]


def diverge(left: FoldedText, right: FoldedText) -> bool:
    """Whether the beginnings of two texts show that `differences` is None; each has `BEGINNING` characters."""
    whole = min(len(left.words), len(right.words)) - 1  # the last word may be cut
    at = next((i for i in range(max(whole, 0)) if left.words[i] != right.words[i]), whole)
    end = at + MAX_DIFFERENCE_WORDS + 1
    return end < whole and _step(left.pairs[at:end], right.pairs[at:end]) is None


def _step(left: Sequence[tuple[str, ...]], right: Sequence[tuple[str, ...]]) -> tuple[int, int] | None:
    """The fewest words to skip in each text until both continue with two equal words, or end."""
    steps = [(left.index(pair), right.index(pair)) for pair in set(left).intersection(right)]
    return min(steps, key=lambda step: (sum(step), abs(step[0] - step[1]), step[0]), default=None)


def differ(left: str, right: str) -> bool:
    """Whether two fillings of a slot differ in meaning.

    Each contains a name or number (not only lower-case letters), or one word replaces one word.
    """
    judged = relation("", left, right)
    if judged.sure or judged.same >= judged.rival:
        return judged.rival > judged.same
    ours, theirs = (READ_WORD.findall(part) for part in (left, right))
    if not set(map(str.casefold, ours)) - ENGLISH_318 or not set(map(str.casefold, theirs)) - ENGLISH_318:
        return False
    if not any(map(str.islower, (left, right))):
        return True
    alike = Levenshtein.normalized_similarity(left.casefold(), right.casefold()) >= SPELLING
    return len(ours) == len(theirs) == 1 and not alike and max(len(left), len(right)) > SHORT_WORD


def with_unit(text: FoldedText, words: tuple[int, int], filling: str) -> str:
    """A bare number with the next word, which is often its unit: "30 days"."""
    last = words[1]
    if (
        not filling[-1:].isdigit()
        or _YEAR.fullmatch(filling)
        or last == len(text.words)
        or text.words[last] in ENGLISH_318
    ):
        return filling
    between = text.text[text.starts[last - 1] + len(text.words[last - 1]) : text.starts[last]]
    return text.slice(words[0], last + 1) if not between.strip() else filling
