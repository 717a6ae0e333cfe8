"""Hashes of character and word n-grams, and the positions of sentences, for a batch of texts.

Characters are folded (case, accents, digits); a word is a run of letters or one ideograph. All operations work on
arrays of code points, so the time depends only on the number of characters, and the hashes of a text do not depend on
the other texts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHARACTER_GRAMS", "WORD_GRAMS", "HashedNgrams", "hash_ngrams"]

CHARACTER_GRAMS = 3
"""Hashes per character: of the three, four and five characters from it on."""

WORD_GRAMS = 5
"""Hashes per word: alone, with the next word, with the next two, with the second next, with the third next."""

MAX_WORD_CHARS = 32
"""Maximum characters of a word; a longer run of letters is split."""

MAX_SENTENCE_WORDS, PART = 24, 12
"""A sentence, or a line of a table or file, with more words is split into parts of this number at most."""

PERIOD = 4
"""An n-gram that repeats one at most this number of places before does not count: it hashes to 0."""

PAD = "\n" * 8
"""Separates texts; longer than an n-gram of characters."""

TABLE, PLAIN = 0x10000, 0x3000
"""Code points from the first on are not distinguished; those below the second may have a case or an accent."""

SPACE, LETTER, IDEOGRAPH, MARK = range(4)
IDEOGRAPHS = ((0x3005, 0x3008), (0x3040, 0x3100), (0x3400, 0xA000), (0xF900, 0xFB00), (0xFF66, 0xFFA0))
HANGUL = ((0x3130, 0x3190), (0xA960, 0xA980), (0xAC00, 0xD800))

STOPS = ".!?\u2026"
CLOSERS = "\"'\u201d\u2019)]"
LONE_STOPS = "\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965\u1362\u1367"

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SALT = tuple(np.uint64(0xC2B2AE3D27D4EB4F + 2 * i * 0x165667B19E3779F9 & 0xFFFFFFFFFFFFFFFF) for i in range(8))


class HashedNgrams(NamedTuple):
    """The hashes of texts; positions refer to the joined texts.

    Attributes:
        characters: Hashes by position, shape (`CHARACTER_GRAMS`, n).
        words: Hashes by word, shape (`WORD_GRAMS`, n words).
        word_start: The start of each word, ascending, shape (n words,).
        begin: The start of each text, shape (k,).
        start, end: The start and end of each sentence with a word, shape (n sentences,).
        text: The text of each sentence, ascending, shape (n sentences,).
    """

    characters: NDArray[np.uint64]
    words: NDArray[np.uint64]
    word_start: NDArray[np.int64]
    begin: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    text: NDArray[np.int64]


def hash_ngrams(texts: Sequence[str]) -> HashedNgrams:
    """The hashes and sentences of k texts. O(n) time and memory for n characters."""
    fold, kinds = _tables()
    joined = PAD.join(["", *texts, ""])
    codes = np.minimum(np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32), TABLE - 1)
    length = np.fromiter(map(len, texts), np.int64, len(texts))
    begin = np.cumsum(length + len(PAD)) - length
    kind = kinds[codes]
    mixed = fold[codes] * _ODD
    mixed ^= mixed >> np.uint64(29)
    word_start, word_end = _words(kind)
    bound = _bounds(codes, kind)
    start, end = _sentences(bound, word_start)
    return HashedNgrams(
        _of_characters(mixed, bound),
        _of_words(_hashes(mixed, word_start, word_end), np.searchsorted(bound, word_start, side="right")),
        word_start,
        begin,
        start,
        end,
        np.searchsorted(begin, start, side="right") - 1,
    )


@cache
def _tables() -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """The folded form and the class of each code point."""
    fold = np.arange(TABLE, dtype=np.uint64)
    kind = np.full(TABLE, MARK, np.uint8)
    for code, character in enumerate(map(chr, range(PLAIN))):
        if character.isspace():
            kind[code], fold[code] = SPACE, 32
            continue
        decimal = character.isdecimal()
        fold[code] = ord("0") if decimal else ord(unicodedata.normalize("NFKD", character.lower())[0])
        if character.isalnum() or unicodedata.category(character)[0] == "M" or character == "_":
            kind[code] = LETTER
    for ranges, value in ((HANGUL, LETTER), (IDEOGRAPHS, IDEOGRAPH)):
        for first, last in ranges:
            kind[first:last] = value
    kind[PLAIN] = SPACE
    return fold, kind


@cache
def _sentence_marks() -> NDArray[np.uint8]:
    """By code point: 1 for a stop, 2 for a closing quotation mark or bracket, 3 for a stop that needs no space."""
    table = np.zeros(TABLE, np.uint8)
    for value, marks in enumerate((STOPS, CLOSERS, LONE_STOPS), 1):
        table[[ord(mark) for mark in marks]] = value
    return table


def _words(kind: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The start and end of each word."""
    letter, ideograph = kind == LETTER, kind == IDEOGRAPH
    edge = np.empty(len(kind), bool)
    edge[0], edge[1:] = letter[0], letter[1:] != letter[:-1]
    start = np.flatnonzero(edge & letter | ideograph)
    end = np.flatnonzero(np.append((edge & ~letter)[1:] | ideograph[:-1], False)) + 1
    parts = -(-(end - start) // MAX_WORD_CHARS)
    if len(parts) and parts.max() > 1:
        nth = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        start = np.repeat(start, parts) + MAX_WORD_CHARS * nth
        end = np.minimum(start + MAX_WORD_CHARS, np.repeat(end, parts))
    return start, end


def _hashes(mixed: NDArray[np.uint64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each word's characters and their places."""
    if not len(start):
        return np.zeros(0, np.uint64)
    length = end - start
    first = np.cumsum(length) - length
    place = np.arange(length.sum()) - np.repeat(first, length)
    power = np.cumprod(np.full(MAX_WORD_CHARS, _SALT[0]))
    return np.asarray(np.add.reduceat(mixed[np.repeat(start, length) + place] * power[place], first), np.uint64)


def _of_words(word: NDArray[np.uint64], sentence: NDArray[np.int64]) -> NDArray[np.uint64]:
    """n-grams of the words of each sentence, padded with 0 at its end."""
    later = np.zeros((3, len(word)), np.uint64)
    for k in range(1, min(len(word), 4)):
        later[k - 1, :-k] = np.where(sentence[k:] == sentence[:-k], word[k:], 0)
    grams = np.empty((WORD_GRAMS, len(word)), np.uint64)
    grams[0] = word
    grams[1] = word * _SALT[1] + later[0]
    grams[2] = grams[1] * _SALT[2] + later[1]
    grams[3] = word * _SALT[3] + later[1]
    grams[4] = word * _SALT[4] + later[2]
    return _mix_bits(grams, sentence)


def _of_characters(mixed: NDArray[np.uint64], bound: NDArray[np.int64]) -> NDArray[np.uint64]:
    """n-grams of characters; those that cross the end of a sentence hash to 0."""
    grams = np.zeros((CHARACTER_GRAMS, len(mixed)), np.uint64)
    grams[0, :-2] = (mixed[:-2] * _SALT[5] + mixed[1:-1]) * _SALT[6] + mixed[2:]
    grams[1, :-3] = grams[0, :-3] * _SALT[7] + mixed[3:]
    grams[2, :-4] = grams[1, :-4] * _SALT[7] + mixed[4:]
    grams = _mix_bits(grams)
    for size, row in enumerate(grams, 3):
        for before in range(1, size):
            row[np.maximum(bound - before, 0)] = 0
    return grams


def _mix_bits(grams: NDArray[np.uint64], sentence: NDArray[np.int64] | None = None) -> NDArray[np.uint64]:
    """Mix the upper bits of n-grams, which are the ones to use; 0 for n-grams that repeat one just before."""
    grams ^= grams >> np.uint64(31)
    grams *= _ODD
    again = np.zeros(grams.shape, bool)
    for k in range(1, min(PERIOD, grams.shape[1] - 1) + 1):
        same = grams[:, k:] == grams[:, :-k]
        again[:, k:] |= same if sentence is None else same & (sentence[k:] == sentence[:-k])
    grams[again] = 0
    return grams


def _bounds(codes: NDArray[np.uint32], kind: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The starts of sentences, ascending."""
    mark = _sentence_marks()[codes]
    ended = np.zeros(len(codes), bool)
    stopped, closer = mark == 1, mark == 2
    for _ in range(3):
        ended[1:] |= stopped[:-1]
        stopped[1:] = stopped[:-1] & closer[1:]
        stopped[0] = False
    return np.flatnonzero(ended & (kind == SPACE) | (codes == 10) | (mark == 3)) + 1


def _sentences(bound: NDArray[np.int64], word: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The start and end of each sentence with a word; long sentences are split."""
    first = np.searchsorted(word, bound)
    some = np.flatnonzero(first[1:] > first[:-1])
    start, end, first, last = bound[some], bound[some + 1], first[some], first[some + 1]
    count = last - first
    parts = np.where(count > MAX_SENTENCE_WORDS, -(-count // PART), 1)
    if not len(parts) or parts.max() == 1:
        return start, end
    total, number = np.repeat(count, parts), np.repeat(parts, parts)
    nth = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    cut = word[np.repeat(first, parts) + total * nth // number]
    start = np.where(nth == 0, np.repeat(start, parts), cut)
    end = np.where(nth == number - 1, np.repeat(end, parts), np.append(cut[1:], 0))
    return start, end
