"""Orders: stretches of a text that address the model that reads it instead of the person who does.

Words that orders are made of come in kinds ("ignore" voids, "instructions" guide, "reply" answers, ...). A *sign* is
one kind followed by another within so many words, and a stretch of text is as suspicious as the distinct signs in it
say together. No sign has a negative weight, so nothing that is added around a stretch clears it; marks and quotation
can only add to it. `data/orders.json` holds kinds, words and weights; `benchmarks/train_orders.py` fits them.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from math import exp
from typing import NamedTuple

__all__ = ["REACH", "THRESHOLD", "WINDOW", "Lexicon", "Order", "Weights", "loaded", "order", "shipped", "signs_of"]

REACH = (1, 2, 4, 8, 24)
"""How many words further the second kind of a sign may stand: near, further on, behind a question."""

FAR = frozenset({"asked", "when"})
"""The kinds that a question may follow."""

FIRST_GAP = 2
"""The same behind the beginning of a sentence: "Please explain", "Assistant, write"."""

WINDOW = 28
"""Words in the stretch whose signs count together."""

THRESHOLD = 0.5
"""The probability from which a stretch is called an order; the fit shifts its scale so that it is this one."""

LONGEST_QUOTE = 160
"""Characters of an order that a reason shows."""

LONGEST_WORD = 24
"""Longer words are of no kind."""

MOST_KNOWN = 16_384
"""Words whose kinds are remembered, of at most 24 characters each."""

START = "start"
"""The kind of what stands before a sentence."""

Kinds = tuple[str, str, int]
"""A sign: a kind, the kind that follows, and within how many words."""

Wanted = dict[str, tuple[Kinds, ...]]
"""Signs by their second kind."""

_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_TOKEN = re.compile(
    rf"https?://[^\s)\]>\"']+|!\[|\[/?inst\]|<<?/?sys|<\|[a-z_]{{1,16}}|\$\{{|#{{2,6}}(?= )|[{_IDEOGRAPH}]"
    rf"|[^\W_{_IDEOGRAPH}]+|[.!?:\n\u3002\uff01\uff1f\uff1a\"\u201c\u201d\u201e\u00ab\u300c]",
    re.IGNORECASE,
)
_BREAK = frozenset('.!?:\n\u3002\uff01\uff1f\uff1a"\u201c\u201d\u201e\u00ab\u300c')
_MARKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("?\uff1f", ("asks",)),
    **dict.fromkeys('"\u201c\u201d\u201e\u00ab\u300c', ("quote",)),
}
_ENDS = re.compile(r"[.!?\u3002\uff01\uff1f\n]")


class Lexicon:
    """Which words are of which kinds.

    Args:
        kinds: Words by kind, parted by spaces; a star stands for any ending.
    """

    def __init__(self, kinds: dict[str, str]) -> None:
        self._whole: dict[str, tuple[str, ...]] = {}
        self._begun: dict[str, tuple[str, ...]] = {}
        for kind, words in kinds.items():
            for word in words.split():
                table, key = (self._begun, word[:-1]) if word.endswith("*") else (self._whole, word)
                table[key] = (*table.get(key, ()), kind)
        self._lengths = sorted({len(word) for word in self._begun})
        self._known: dict[str, tuple[str, ...]] = {}

    def kinds(self, word: str) -> tuple[str, ...]:
        """The kinds of a word in lower case."""
        found = self._known.get(word)
        if found is None:
            if len(word) > LONGEST_WORD:
                return ()
            begun = (
                kind for length in self._lengths for kind in self._begun.get(word[:length], ()) if len(word) >= length
            )
            found = tuple(dict.fromkeys((*self._whole.get(word, ()), *begun)))
            if len(self._known) < MOST_KNOWN:
                self._known[word] = found
        return found

    def written_whole(self, word: str) -> tuple[str, ...]:
        """The kinds of a word that has no endings."""
        return self._whole.get(word, ())


class Weights(NamedTuple):
    """What the signs say.

    Attributes:
        lexicon: The words.
        bias: Log-odds of a stretch without any sign.
        weight: What each sign adds, 0 or more, by its two kinds and the reach.
    """

    lexicon: Lexicon
    bias: float
    weight: dict[Kinds, float]

    @property
    def wanted(self) -> Wanted:
        """The signs that have a weight, by their second kind."""
        return _wanted(tuple(self.weight))


class Order(NamedTuple):
    """The most suspicious stretch of a text.

    Attributes:
        probability: Of being an order, in [0, 1].
        quote: The sentence or sentences around it, at most 160 characters; empty where there is no sign.
        start, end: Where it stands in the text, from its first sign to its last; both 0 where there is none.
    """

    probability: float
    quote: str
    start: int = 0
    end: int = 0


class Sign(NamedTuple):
    """One sign in a text: what it is, the number of its last word, and where it stands in the text."""

    kinds: Kinds
    word: int
    start: int
    end: int


def order(text: str, weights: Weights | None = None) -> Order:
    """The stretch of a text that is most like an order.

    Args:
        text: Canonical.
        weights: Other than the shipped ones.

    Complexity: O(n) time in the text's length; memory for the signs of one stretch.
    """
    used = shipped() if weights is None else weights
    total, best, span = 0.0, 0.0, (0, 0)
    inside = deque[Sign]()
    count: dict[Kinds, int] = {}
    for sign in signs_of(text, used.lexicon, used.wanted):
        inside.append(sign)
        count[sign.kinds] = count.get(sign.kinds, 0) + 1
        total += used.weight[sign.kinds] * (count[sign.kinds] == 1)
        while inside[0].word <= sign.word - WINDOW:
            gone = inside.popleft().kinds
            count[gone] -= 1
            total -= used.weight[gone] * (count[gone] == 0)
        if total > best:
            best, span = total, (inside[0].start, sign.end)
    probability = 1 / (1 + exp(-max(min(best + used.bias, 50.0), -50.0)))
    return Order(probability, _quoted(text, *span) if best else "", *span)


def signs_of(text: str, lexicon: Lexicon, wanted: Wanted | None = None) -> Iterator[Sign]:
    """The signs of a text, in the order of their last words. O(n) time.

    Args:
        text: Canonical.
        lexicon: The kinds of words.
        wanted: Which signs, by their second kind; all by default.
    """
    last: dict[str, tuple[int, int]] = {START: (-1, 0)}  # the word and the place where each kind was met last
    word, fresh = -1, True
    for match in _TOKEN.finditer(text):
        token, place = match[0], match.start()
        if token in _BREAK:
            fresh = True
            kinds: tuple[str, ...] = _MARKS.get(token, ())
        else:
            word += 1
            if fresh:
                last[START] = word - 1, place
                fresh = False
            kinds = _kinds(text, token, place, lexicon)
        for kind in kinds:
            for sign in _possible(kind, last) if wanted is None else wanted.get(kind, ()):
                met = last.get(sign[0])
                if met is not None and word - met[0] <= sign[2]:
                    yield Sign(sign, word, met[1], match.end())
        for kind in kinds:
            last[kind] = word, place


def _possible(kind: str, last: Iterable[str]) -> list[Kinds]:
    """The signs that end in a kind, with those before it that were met."""
    near = REACH[:-1]
    return [
        (before, kind, reach)
        for before in last
        if before != kind
        for reach in ((FIRST_GAP,) if before == START else REACH if before in FAR else near)
    ]


def _kinds(text: str, written: str, start: int, lexicon: Lexicon) -> tuple[str, ...]:
    if len(written) == 1 and written > "\u3000":  # ideographs are words of two to four, without spaces between
        return tuple(kind for n in (2, 3, 4) for kind in lexicon.written_whole(text[start : start + n]))
    if written[:4].lower() == "http" and "://" in written:
        return ("link", "carrier") if "=" in written or "{" in written else ("link",)
    return lexicon.kinds(written.lower())


def _quoted(text: str, start: int, end: int) -> str:
    """What stands there, with the rest of its sentences as far as there is room."""
    room = max(LONGEST_QUOTE - (end - start), 0)
    begin = start
    for found in _ENDS.finditer(text, max(start - room, 0), start):
        begin = found.end()
    if begin == start and start <= room:
        begin = 0
    close = _ENDS.search(text, end, min(end + room, len(text)))
    until = close.end() if close else end
    return " ".join(text[begin:until].split())[:LONGEST_QUOTE]


@cache
def shipped() -> Weights:
    """The weights of this package."""
    return loaded(json.loads((files("unpoison") / "data" / "orders.json").read_text(encoding="utf-8")))


@lru_cache(maxsize=8)
def _wanted(signs: tuple[Kinds, ...]) -> Wanted:
    found: dict[str, list[Kinds]] = {}
    for sign in signs:
        found.setdefault(sign[1], []).append(sign)
    return {kind: tuple(own) for kind, own in found.items()}


def loaded(data: dict[str, object]) -> Weights:
    """Weights as `orders.json` holds them."""
    kinds: dict[str, str] = data["kinds"]  # type: ignore[assignment]
    bias: float = data["bias"]  # type: ignore[assignment]
    rows: Sequence[tuple[str, str, int, float]] = data["signs"]  # type: ignore[assignment]
    return Weights(Lexicon(kinds), bias, {(first, second, reach): weight for first, second, reach, weight in rows})
