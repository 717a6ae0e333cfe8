"""Near-copies: texts whose words are the same but for a few in the same places. No model, any language.

A page, and the same page with another name or number in it, tell two stories; whoever wrote the second, a reader of
both should hear of it. Words are compared as written but for case; a character of a script without spaces is a word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from unpoison.text.answers import relation
from unpoison.text.tokens import ENGLISH_318, READ_WORD

__all__ = [
    "FoldedText",
    "Frame",
    "TokenDifference",
    "differ",
    "differences",
    "most_shared",
    "near_copies",
    "split_words",
    "with_unit",
]  # fmt: skip

SHARED = 0.75
"""Share of their distinct words that near-copies have in common, of the text that has more of them."""

MIN_SHARED_WORDS = 4
"""Texts with fewer words in common are too short to be copies."""

MAX_DIFFERENCES = 3
"""Distinct differences up to which two texts are one text that was changed, rather than two by one template."""

MAX_DIFFERENCE_WORDS = 8
"""Words of one text that a difference may hold."""

NEIGHBOURS = 8
"""Texts with the same rare word that are looked at, on either side: in a crowd of copies the nearest will do."""

CANDIDATES = 16
"""Texts that one text is compared with word by word, those with the most words in common."""

SPELLING = 0.65
"""From this share of equal letters on, two words in small letters are spellings of one."""

SHORT_WORD = 3
"""Letters up to which a word in small letters is taken for an article or the like, in whatever language."""

_YEAR = re.compile(r"(?:1\d|20)\d\d")
_EDGES = (
    " \t\n\r.,;:!?\"'()[]\u2013\u2014\u2026\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u3001\u3002\uff01\uff0c\uff1f"
)


class Frame(NamedTuple):
    """A text with places left open, and what near-copies have there.

    Attributes:
        fillings: For each text, by its position, what stands in the open places; at least two texts.
        slots: How many places are open.
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
        """Each word with the next one; at the end the last word alone, and nothing."""
        return [*zip(self.words, self.words[1:]), *((word,) for word in self.words[-1:]), ()]

    @cached_property
    def starts(self) -> list[int]:
        """The characters at which the words start, and the text's length; few texts are ever asked."""
        return [*(match.start() for match in READ_WORD.finditer(self.text)), len(self.text)]

    def slice(self, first: int, last: int) -> str:
        """The words from `first` to before `last` as written."""
        return " ".join(self.text[self.starts[first] : self.starts[last]].split()).strip(_EDGES)


class _Compared(NamedTuple):
    """The words that two texts share, with None for every open place, what each has there, and if that is all.

    `one_word` where they differ in nothing else, and each has one word there.
    """

    shared: tuple[str | None, ...]
    left: str
    right: str
    one_word: bool


class TokenDifference(NamedTuple):
    """Where two texts differ: words from and to, in each."""

    left: tuple[int, int]
    right: tuple[int, int]


def near_copies(texts: Sequence[str], read: Callable[[str], FoldedText] = FoldedText) -> list[Frame]:
    """Find what near-copies disagree on.

    Two texts are near-copies if they share `SHARED` of their words, in the same order, but for at most
    `MAX_DIFFERENCES` differences. A difference counts where a name or number stands in the place of another one, or
    one word of content for one; spellings of one name or amount do not count, nor phrases in small letters, nor words
    that were only added.

    Args:
        texts: Any number; empty ones are near-copies of nothing.
        read: Folds a text, or knows it folded.

    Returns:
        Frames with the fewest open places first, then in the order of their first text. Texts that are equal word by
        word stand in the same frames. A frame all of whose texts stand in frames with fewer places is left out: where
        one text has another name and a second another date, both differ from the original in one thing each.

    Complexity: O(k n) time for k texts of n words in all; of each text at most `CANDIDATES` others are compared.
    """
    folded = [read(text) for text in texts]
    copies: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, text in enumerate(folded):
        copies[tuple(text.words)].append(i)
    firsts = [where[0] for where in copies.values()]
    frames: dict[tuple[str | None, ...], tuple[dict[int, str], int]] = {}
    settled: dict[int, set[tuple[str | None, ...]]] = defaultdict(set)  # by text, where one word makes the difference
    for left, right in _candidates([folded[i] for i in firsts]):
        first, second = firsts[left], firsts[right]
        if not settled[first].isdisjoint(settled[second]):
            continue  # their words can only be different in the same place
        compared = _compare_texts(folded[first], folded[second])
        if compared is None:
            continue
        fillings, _ = frames.setdefault(compared.shared, ({}, compared.shared.count(None)))
        for i, filling in ((first, compared.left), (second, compared.right)):
            fillings.update(dict.fromkeys(copies[tuple(folded[i].words)], filling))
            if compared.one_word:
                settled[i].add(compared.shared)
    ranked = [Frame(dict(sorted(fillings.items())), slots) for fillings, slots in frames.values()]
    ranked.sort(key=lambda frame: (frame.slots, next(iter(frame.fillings))))
    fewest_slots: dict[int, int] = {}  # the fewest open places of the frames that hold a text
    for frame in ranked:
        for i in frame.fillings:
            fewest_slots.setdefault(i, frame.slots)
    return [frame for frame in ranked if any(fewest_slots[i] == frame.slots for i in frame.fillings)]


def _candidates(read: Sequence[FoldedText]) -> Iterator[tuple[int, int]]:
    """Pairs of texts that share enough words; of each text the `CANDIDATES` later ones that share most."""
    holders = Counter(chain.from_iterable(text.distinct for text in read))
    column = {word: at for at, word in enumerate(word for word, number in holders.items() if number > 1)}
    has = np.zeros((len(read), len(column)), np.float32)
    for row, text in zip(has, read):
        row[[column[word] for word in text.distinct if word in column]] = 1
    size = np.array([len(text.distinct) for text in read])
    for i, row in enumerate(has):
        shared = has[i + 1 :] @ row
        enough = np.flatnonzero(shared >= np.maximum(MIN_SHARED_WORDS, SHARED * np.maximum(size[i + 1 :], size[i])))
        yield from ((i, i + 1 + j) for j in enough[np.argsort(-shared[enough], kind="stable")][:CANDIDATES].tolist())


def most_shared(text: NDArray[np.int64], group: NDArray[Any], number: int, least: int = 1) -> dict[int, list[int]]:
    """For each text the later texts that share most with it, at most `CANDIDATES`, of equals the first ones first.

    Args:
        text: Of each entry its text, rising within a group, shape (n,).
        group: What it is, equal ones one after the other, shape (n,).
        number: How many texts there are.
        least: Entries that two texts have to share.

    Complexity: O(n log n). An entry is paired with the next `NEIGHBOURS` of its group.
    """
    steps = np.arange(len(text))[:, None] + np.arange(1, NEIGHBOURS + 1)
    inside = steps < len(text)
    steps = np.minimum(steps, len(text) - 1)
    inside &= group[steps] == group[:, None]
    pairs, first, count = np.unique(
        (text[:, None] * number + text[steps])[inside], return_index=True, return_counts=True
    )
    pairs, first, count = pairs[count >= least], first[count >= least], count[count >= least]
    left, right = np.divmod(pairs, number)
    most: dict[int, list[int]] = {}
    for pair in np.lexsort((first, -count, left)):
        nearest = most.setdefault(int(left[pair]), [])
        if len(nearest) < CANDIDATES:
            nearest.append(int(right[pair]))
    return most


def _compare_texts(left: FoldedText, right: FoldedText) -> _Compared | None:
    """Where two near-copies differ in what counts; None where they do not, or are not near-copies."""
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
    one_word = [(b - a, d - c) for (a, b), (c, d) in places] == [(1, 1)]
    ours, theirs = ", ".join(first for first, _ in fillings), ", ".join(second for _, second in fillings)
    return _Compared(tuple(frame), ours, theirs, one_word)


def differences(one: FoldedText, other: FoldedText) -> list[TokenDifference] | None:
    """Where two texts differ in their words; None where they differ in too much. Linear time."""
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


def _step(left: Sequence[tuple[str, ...]], right: Sequence[tuple[str, ...]]) -> tuple[int, int] | None:
    """The fewest words to go on in each text until both go on alike, with two equal words or their end.

    Of equally few as many in one as in the other.
    """
    steps = [(left.index(pair), right.index(pair)) for pair in set(left).intersection(right)]
    return min(steps, key=lambda step: (sum(step), abs(step[0] - step[1]), step[0]), default=None)


def differ(left: str, right: str) -> bool:
    """Whether two fillings of one place say different things.

    Each holds a name or number, that is something beside small letters, or they are one word for one.
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
    """A bare number with the word behind it, which is often its unit: "30 days"."""
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
