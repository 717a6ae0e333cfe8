"""Cached analysis of one text: its words as numbers, its sentences, and the results of checks on it alone.

The parts of an `Analysis` are computed on first use and cached by the text's content, so that a passage that is
retrieved again costs one dictionary lookup. Every part is a function of the text only: not of a question, not of other
texts. `each` computes a part of many texts at once, in arrays.
"""

from __future__ import annotations

import re
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.text.tokens import ENGLISH_318, without_accents
from unpoison.utils.lru_cache import LRUCache
from unpoison.utils.threads import check_stopped

__all__ = [
    "CAPITAL", "MARK", "MAX_PART_WORDS", "SHAPES", "STOP", "Words", "analysis", "canonical_word", "clear", "each",
    "english_stem", "groups", "word_hash", "words_of",
]  # fmt: skip

Numbers = NDArray[np.int64]

T = TypeVar("T")

_SINGLE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Characters that are words by themselves: Han, hiragana, katakana."""

TOKEN: Final = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+(?:['\u2019][^\W_{_SINGLE}]+)*|[^\w\s*]")
"""Words, and single punctuation marks, without the asterisks of markup."""

_APART: Final = re.compile(f"({TOKEN.pattern})")

SENTENCE_END: Final = re.compile(  # it begins with a class, which passes over all other characters at once
    r"[.!?\u2026\n\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965\u1362\u1367](?:"
    r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]]*\s+|(?<=\n)\n*|(?<![.!?\u2026\n]))"
)
"""The rule that the detector of crafted texts was fitted on; `text.sentences` also handles abbreviations."""

SCALES: Final = (1, 2, 4)
"""Numbers of consecutive parts in a window; the whole text is a window too."""

MAX_PART_WORDS: Final = 32
"""Maximum words of a part. Most sentences are shorter; a longer one becomes parts that overlap by half."""

MIN_PART_WORDS: Final = 4
"""Minimum words of a part; a shorter one, such as "Dr." or a page number, joins the next."""

MAX_WORD_CHARS: Final = 32
"""Maximum characters of a word that is cached."""

ENDINGS = ("ing", "tion", "sion", "ment", "ness", "ity", "ly", "ed", "ous", "ive", "al", "est", "er", "able", "ful",
           "ism", "s")  # fmt: skip
SHAPES: Final = ("word", "year", "number", *ENDINGS)
"""Word shapes, by number: what the detectors see of a word that is not in their vocabulary."""

_SHAPE_OF: Final = {ending: shape for shape, ending in enumerate(ENDINGS, SHAPES.index(ENDINGS[0]))}

CAPITAL: Final = 32
STOP: Final = 64
MARK: Final = 128
"""Flags of `Words.kind`: begins with a capital letter, is a stop word, is a punctuation mark."""

YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

MAX_TEXTS: Final = 16_384
MAX_BYTES: Final = 128 * 2**20
"""Limits of the cache: number of texts, and bytes with their analyses."""

TOGETHER: Final = 65_536
"""Maximum characters of texts in one batch, which bounds memory; a longer text is a batch by itself."""


class Words(NamedTuple):
    """The n words and punctuation marks of one text.

    Attributes:
        word: The hash of each word in lower case without accents, and of each mark: the same in every text. Shape (n,).
        stem: The hash of its English stem, shape (n,).
        kind: Its index in `SHAPES`, plus the flags `CAPITAL`, `STOP` and `MARK`. Shape (n,).
        sentence: The number of its sentence, ascending, shape (n,).
        first, last: The words and marks of each window, `last` exclusive, shape (w,). Windows are the parts of the text
            (sentences, or pieces of long ones), every 2 and 4 consecutive parts, and finally the whole text.
        start, end: The position of each window in the text, shape (w,).
    """

    word: Numbers
    stem: Numbers
    kind: Numbers
    sentence: Numbers
    first: Numbers
    last: Numbers
    start: Numbers
    end: Numbers


class Analysis:
    """The cached results for one text.

    Attributes:
        text: The text.
    """

    __slots__ = ("_parts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts: dict[Any, tuple[Any]] = {}

    def part(self, make: Callable[[str], T]) -> T:
        """The result of a function of the text, computed once; the function object is the key, so no `lambda`."""
        known = self._parts.get(make)
        if known is not None:
            return known[0]  # type: ignore[no-any-return]
        check_stopped()
        made = make(self.text)
        self._keep(make, made)
        return made

    @property
    def words(self) -> Words:
        """Its words and marks."""
        return words_of([self.text])[0]

    def _keep(self, make: object, made: object) -> None:
        self._parts[make] = (made,)
        _kept.grow(self.text, 128 + _bytes(made))


def analysis(text: str) -> Analysis:
    """The analysis of a text, cached within the limits. Thread-safe."""
    known = _kept.get(text)
    if known is None:
        known = Analysis(text)
        _kept.put(text, known)
    return known


def each(texts: Sequence[str], judge: Callable[[Sequence[str]], Sequence[T] | NDArray[Any]]) -> list[T]:
    """The result of a batch function for each of k texts, computed once per text.

    Args:
        texts: k texts.
        judge: Maps n texts to n results; the result of a text must not depend on the others. It is called with at most
            `TOGETHER` characters at once.
    """
    known = [analysis(text) for text in texts]
    parts = [one._parts.get(judge) for one in known]
    if None not in parts:
        return [part[0] for part in parts if part is not None]
    new = {one.text: one for one, part in zip(known, parts) if part is None}
    fresh: dict[str, T] = {}
    unread = list(new)
    for begin, end in groups(unread):
        check_stopped()
        group = unread[begin:end]
        said = judge(group)
        fresh.update(zip(group, said.tolist() if isinstance(said, np.ndarray) else said, strict=True))
    for text, one in new.items():
        one._keep(judge, fresh[text])
    return [fresh[one.text] if part is None else part[0] for one, part in zip(known, parts)]


def words_of(texts: Sequence[str]) -> list[Words]:
    """The words and marks of each of k texts. Linear time and memory."""
    return each(texts, _words_of)


def clear() -> None:
    """Clear the cache."""
    _kept.clear()


def groups(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Bounds of batches of texts with at most `TOGETHER` characters, or of one longer text."""
    begins, size = [0], 0
    for i, text in enumerate(texts):
        if size and size + len(text) > TOGETHER:
            begins.append(i)
            size = 0
        size += len(text)
    return list(pairwise([*begins, len(texts)])) if texts else []


def _bytes(part: object) -> int:
    """Approximate memory of a part; classes with more than numbers implement `__sizeof__`."""
    if isinstance(part, np.ndarray):
        return 128 + part.nbytes
    return 64 + sum(map(_bytes, part)) if isinstance(part, tuple) else sys.getsizeof(part)


def word_hash(word: str) -> int:
    """A hash of a word as written, 63 bits, the same in every process."""
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") >> 1


def _words_of(texts: Sequence[str]) -> list[Words]:
    """Analyse all texts at once: positions refer to their concatenation, with one character between texts."""
    pieces = _APART.split("\n".join(texts))  # separators and tokens alternate
    tokens = pieces[1::2]
    short = max(map(len, tokens), default=0) <= MAX_WORD_CHARS
    facts = map(_known, tokens) if short else (_known(t) if len(t) <= MAX_WORD_CHARS else _facts(t) for t in tokens)
    word, stem, kind = np.frombuffer(b"".join(facts), np.int64).reshape(-1, 3).T.copy()
    character = np.array([0, *accumulate(len(text) + 1 for text in texts)], np.int64)  # one character between texts
    start, end = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))[:-1].reshape(-1, 2).T
    token = np.searchsorted(start, character)
    text_of = np.repeat(np.arange(len(texts)), np.diff(token))
    ends = [
        np.array([stop.end() for stop in SENTENCE_END.finditer(text)], np.int64) + at
        for text, at in zip(texts, character.tolist())
    ]
    breaks = np.unique(np.searchsorted(start, np.concatenate(ends)))
    opens = np.zeros(len(tokens) + 1, np.int64)
    opens[breaks] = 1
    sentence = np.cumsum(opens[:-1])
    sentence -= sentence[token[text_of]]
    words = np.flatnonzero(kind < MARK)
    begin, close = _parts(*_sentences(np.searchsorted(words, breaks), np.searchsorted(words, token)))
    first, last = _windows(begin, close, text_of[words[begin]])
    owner = text_of[words[first]]
    first, last = words[first], _with_marks(kind, start, end)[words[last - 1]]
    window = np.searchsorted(owner, np.arange(len(texts) + 1))
    whole = window[1:][np.diff(window) > 0] - 1  # the whole text is its last window
    first[whole], last[whole] = token[owner[whole]], token[owner[whole] + 1]
    begins, stops = start[first] - character[owner], end[last - 1] - character[owner]
    first, last = first - token[owner], last - token[owner]
    return [
        Words(
            *(column[a:b].copy() for column in (word, stem, kind, sentence)),
            *(column[c:d].copy() for column in (first, last, begins, stops)),
        )
        for (a, b), (c, d) in zip(_pairs(token), _pairs(window))
    ]


def _pairs(edges: Numbers) -> Iterator[tuple[int, int]]:
    return pairwise(edges.tolist())


def _with_marks(kind: Numbers, start: Numbers, end: Numbers) -> Numbers:
    """For each word, the index after the punctuation that touches it; shape (n,)."""
    apart = np.ones(len(kind) + 1, bool)
    apart[1:-1] = (kind[1:] < MARK) | (start[1:] > end[:-1])
    places = np.flatnonzero(apart)
    return np.asarray(places[np.searchsorted(places, np.arange(len(kind)), side="right")])


def _windows(begin: Numbers, close: Numbers, text: Numbers) -> tuple[Numbers, Numbers]:
    """Runs of 1, 2 and 4 consecutive parts of a text, and all of them together, in the order of texts.

    Parts are given by their words from `begin` to `close` (exclusive), and by ascending texts.
    """
    first, last, owner = list[Numbers](), list[Numbers](), list[Numbers]()
    for scale in SCALES:
        row = np.flatnonzero(text[scale - 1 :] == text[: max(len(text) - scale + 1, 0)])
        first.append(begin[row])
        last.append(close[row + scale - 1])
        owner.append(text[row])
    texts, at, parts = np.unique(text, return_index=True, return_counts=True)
    more = ~np.isin(parts, SCALES)
    first.append(begin[at[more]])
    last.append(close[(at + parts - 1)[more]])
    owner.append(texts[more])
    order = np.argsort(np.concatenate(owner), kind="stable")
    return np.concatenate(first)[order], np.concatenate(last)[order]


def _sentences(breaks: Numbers, texts: Numbers) -> tuple[Numbers, Numbers]:
    """The range of words of each sentence; one with fewer than `MIN_PART_WORDS` words joins the next.

    Args:
        breaks: The words before which a sentence ends.
        texts: The first word of each text, and the number of words.
    """
    edges, at = list[int](), 0
    places = breaks.tolist()
    for begin, close in _pairs(texts):
        if begin == close:
            continue
        edges.append(begin)
        own = len(edges)
        while at < len(places) and places[at] < close:
            if places[at] >= edges[-1] + MIN_PART_WORDS:
                edges.append(places[at])
            at += 1
        if len(edges) > own and close - edges[-1] < MIN_PART_WORDS:
            edges.pop()
    first = np.array(edges, np.int64)
    return first, np.append(first, texts[-1])[1:] if edges else first


def _parts(begin: Numbers, close: Numbers) -> tuple[Numbers, Numbers]:
    """The sentences; those of more than `MAX_PART_WORDS` words are split into pieces that overlap by half."""
    half = MAX_PART_WORDS // 2
    pieces = np.where(close - begin > MAX_PART_WORDS, -(-(close - begin - half) // half), 1)
    nth = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first, last = np.repeat(begin, pieces) + half * nth, np.repeat(close, pieces)
    return first, np.where(np.repeat(pieces, pieces) > 1, np.minimum(first + MAX_PART_WORDS, last), last)


def _facts(token: str) -> bytes:
    """The row of a word or mark: `Words.word`, `stem` and `kind` as bytes, which are faster to join than numbers."""
    if not token[0].isalnum():
        own = word_hash(token)
        return _ROW(own, own, MARK)
    bare = canonical_word(token)
    stem = english_stem(bare)
    own = word_hash(bare)
    kind = _shape(bare) + CAPITAL * token[0].isupper() + STOP * (bare in ENGLISH_318)
    return _ROW(own, own if stem == bare else word_hash(stem), kind)


_stemmers = threading.local()
_ROW = struct.Struct("=3q").pack
_known = lru_cache(maxsize=32_768)(_facts)  # about 200 bytes each


def canonical_word(word: str) -> str:
    """A word in lower case, without accents on Latin, Greek and Cyrillic letters."""
    lowered = word.lower()
    return lowered if lowered.isascii() else without_accents(lowered)


def english_stem(word: str) -> str:
    """The stem of a word in lower case."""
    stemmer = getattr(_stemmers, "english", None)
    if stemmer is None:  # it is stateful, so each thread has its own
        stemmer = _stemmers.english = Stemmer.Stemmer("english", 0)
    stem: str = stemmer.stemWord(word)
    return stem


def _shape(bare: str) -> int:
    if not bare.isalpha() and any(map(str.isdigit, bare)):
        return 1 if YEAR.fullmatch(bare) else 2
    return next((_SHAPE_OF[bare[-n:]] for n in (4, 3, 2, 1) if len(bare) > n + 2 and bare[-n:] in _SHAPE_OF), 0)


_kept: LRUCache[str, Analysis] = LRUCache(lambda text, _: 1024 + sys.getsizeof(text), MAX_BYTES, MAX_TEXTS)
