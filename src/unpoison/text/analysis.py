"""What there is to know of one text before anything judges it: its words as numbers, its sentences, its windows.

A text is analysed once. What is known of it is kept by its content, so that a passage that is retrieved again costs a
look into a dictionary. Nothing here depends on a question or on other texts, and nothing is learned.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.text.sentences import SENTENCE_END
from unpoison.text.stopwords import ENGLISH_318
from unpoison.utils.recent import Recent

__all__ = [
    "CAPITAL",
    "LONGEST_PART",
    "MARK",
    "SHAPES",
    "STOP",
    "Analysis",
    "analysis",
    "canonical_word",
    "clear",
    "word_hash",
]

Numbers = NDArray[np.int64]

_SINGLE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Characters that are a word each: Han, hiragana, katakana."""

TOKEN: Final = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+(?:['\u2019][^\W_{_SINGLE}]+)*|[^\w\s*]")
"""Words, and marks one by one, but for the stars of markup."""

MAY_END: Final = re.compile("[.!?\u2026\n\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965\u1362\u1367]")
"""How `SENTENCE_END` begins."""

SCALES: Final = (1, 2, 4)
"""So many parts in a row are a window, and the whole text is one."""

LONGEST_PART: Final = 32
"""Words of a part. Most sentences are shorter; a longer one becomes parts that overlap by half."""

FEWEST: Final = 4
"""A part of fewer words, such as "Dr." or a page number, belongs to the one behind it."""

LONGEST_KNOWN: Final = 32
"""Characters of a word that is remembered."""

ENDINGS = ("ing", "tion", "sion", "ment", "ness", "ity", "ly", "ed", "ous", "ive", "al", "est", "er", "able", "ful",
           "ism", "s")  # fmt: skip
SHAPES: Final = ("word", "year", "number", *ENDINGS)
"""What is left of a word that is not looked at as itself, by number."""

CAPITAL: Final = 32
STOP: Final = 64
MARK: Final = 128
"""Flags of `Analysis.kind`: begins with a capital letter, is a stop word, is no word but a mark."""

YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

MOST_TEXTS: Final = 4096
MOST_BYTES: Final = 64 * 2**20
"""How much is kept: so many texts, of so many bytes together with what is known of them."""


class Analysis(NamedTuple):
    """One text of n words and marks.

    Attributes:
        word: The number of each word in lower case without accents, and of each mark: the same number in every text.
            Shape (n,).
        stem: The number of its English stem, shape (n,).
        kind: What it is beside that: its place in `SHAPES`, and the flags `CAPITAL`, `STOP` and `MARK`. Shape (n,).
        sentence: Its sentence, rising, shape (n,).
        first, last: The words and marks of each window, from `first` to before `last`, shape (w,). Windows are the
            parts of the text, which are sentences or pieces of long ones, every 2 and 4 parts in a row, and last of
            all the whole text.
        start, end: Where each window stands in the text, shape (w,).
    """

    word: Numbers
    stem: Numbers
    kind: Numbers
    sentence: Numbers
    first: Numbers
    last: Numbers
    start: Numbers
    end: Numbers


def analysis(text: str) -> Analysis:
    """What is known of a text; made at first sight, and then kept while there is room.

    Time and memory linear in the text. Safe for threads.
    """
    known = _kept.get(text)
    if known is None:
        known = _analysed(text)
        _kept.put(text, known)
    return known


def clear() -> None:
    """Forget all texts."""
    _kept.clear()


def word_hash(word: str) -> int:
    """The number of a word as it is written, 63 bits, the same in every process."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") >> 1


def _analysed(text: str) -> Analysis:
    places = [m.span() for m in TOKEN.finditer(text)]
    tokens = [text[a:b] for a, b in places]
    count = len(tokens)
    short = max(map(len, tokens), default=0) <= LONGEST_KNOWN
    facts = map(_known, tokens) if short else (_known(t) if len(t) <= LONGEST_KNOWN else _facts(t) for t in tokens)
    word, stem, kind = np.frombuffer(b"".join(facts), np.int64).reshape(count, 3).T.copy()
    start, end = np.fromiter(chain.from_iterable(places), np.int64, 2 * count).reshape(count, 2).T
    breaks = np.searchsorted(start, _sentence_ends(text))
    opens = np.zeros(count + 1, np.int64)
    opens[breaks] = 1
    sentence = np.cumsum(opens[:count])
    words = np.flatnonzero(kind < MARK)
    at = np.searchsorted(words, np.unique(breaks))  # in words, of which parts are made
    begin, close = _parts(_merged(at[(at > 0) & (at < len(words))].tolist(), len(words)))
    first, last = _windows(begin, close)
    first, last = words[first], _with_marks(kind, start, end)[words[last - 1]]
    if len(first):
        first[-1], last[-1] = 0, count
    return Analysis(word, stem, kind, sentence, first, last, start[first], end[last - 1])


def _with_marks(kind: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """Behind each word, and the marks that touch it, what comes next; shape (n,)."""
    apart = np.ones(len(kind) + 1, bool)
    apart[1:-1] = (kind[1:] < MARK) | (start[1:] > end[:-1])
    places = np.flatnonzero(apart)
    return np.asarray(places[np.searchsorted(places, np.arange(len(kind)), side="right")])


def _sentence_ends(text: str) -> list[int]:
    """Where `SENTENCE_END` ends; looking for its first characters alone first takes a quarter of the time."""
    ends, reached = list[int](), 0
    for candidate in MAY_END.finditer(text):
        if candidate.start() >= reached and (end := SENTENCE_END.match(text, candidate.start())):
            reached = end.end()
            ends.append(reached)
    return ends


def _windows(begin: Numbers, close: Numbers) -> tuple[Numbers, Numbers]:
    """Every so many parts in a row, and all together."""
    count = len(begin)
    scales = [scale for scale in SCALES if scale <= count]
    if count and count not in scales:
        scales.append(count)
    first = [begin[: count - scale + 1] for scale in scales]
    last = [close[scale - 1 :] for scale in scales]
    return (np.concatenate(first), np.concatenate(last)) if scales else (begin, close)


def _merged(breaks: list[int], count: int) -> list[int]:
    """Where parts begin, and the end: a sentence of less than `FEWEST` words is one with the next."""
    if not count:
        return [0]
    begin = [0]
    for place in breaks:
        if place >= begin[-1] + FEWEST:
            begin.append(place)
    if len(begin) > 1 and count - begin[-1] < FEWEST:
        begin.pop()
    return [*begin, count]


def _parts(edges: list[int]) -> tuple[Numbers, Numbers]:
    """The sentences, and of those of more than `LONGEST_PART` words pieces that overlap by half."""
    begin, close = np.array(edges[:-1], np.int64), np.array(edges[1:], np.int64)
    half = LONGEST_PART // 2
    pieces = np.where(close - begin > LONGEST_PART, -(-(close - begin - half) // half), 1)
    first = np.repeat(begin, pieces) + half * (np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces))
    return first, np.where(np.repeat(pieces, pieces) > 1, np.minimum(first + LONGEST_PART, np.repeat(close, pieces)),
                           np.repeat(close, pieces))  # fmt: skip


def _facts(token: str) -> bytes:
    """The row of a word or mark: `Analysis.word`, `stem` and `kind` as bytes, which join quicker than numbers."""
    if not token[0].isalnum():
        own = word_hash(token)
        return np.array([own, own, MARK], np.int64).tobytes()
    bare = canonical_word(token)
    # A stemmer has state and is cheap to make: one per word needs no lock.
    stem = Stemmer.Stemmer("english", 0).stemWord(bare)
    own = word_hash(bare)
    kind = _shape(bare) + CAPITAL * token[0].isupper() + STOP * (bare in ENGLISH_318)
    return np.array([own, own if stem == bare else word_hash(stem), kind], np.int64).tobytes()


_known = lru_cache(maxsize=32_768)(_facts)  # of about 200 bytes each


def canonical_word(word: str) -> str:
    """A word in lower case, Latin, Greek and Cyrillic without accents: these are form, and can be put on any letter."""
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    bare, based = [], False
    for c in unicodedata.normalize("NFD", lowered):
        if not unicodedata.combining(c):
            based = ord(c) < 0x0530
        elif based:
            continue
        bare.append(c)
    return unicodedata.normalize("NFC", "".join(bare))


def _shape(bare: str) -> int:
    if any(map(str.isdigit, bare)):
        return 1 if YEAR.fullmatch(bare) else 2
    return next((i for i, e in enumerate(ENDINGS, 3) if bare.endswith(e) and len(bare) > len(e) + 2), 0)


def _size(text: str, known: Analysis) -> int:
    return len(text) * 4 + sum(array.nbytes for array in known) + 1024


_kept: Recent[str, Analysis] = Recent(_size, MOST_BYTES, MOST_TEXTS)
