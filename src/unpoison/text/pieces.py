"""The words, numbers and marks of a batch of texts in arrays, as the network of `text.gibberish` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["BUCKETS", "SHAPES", "Numbers", "Tokens", "hashes", "tokens"]

Numbers = NDArray[np.int64]

SPACE, LATIN, DIGIT, MARK, OTHER = range(5)

BASE, INVERSE = 0x9E3779B97F4A7C15, pow(0x9E3779B97F4A7C15, -1, 2**64)
MIX = 0xD6E8FEB86659FD93

BUCKETS = 1024
"""Number of hash buckets for the beginnings of unknown words, and for their endings; a power of two."""

MAX_WORD_LETTERS, MAX_ODD = 16, 3
"""Limits of a word's length and of its number of unknown letter triples."""

SMALL = 0x250

SHAPES = 64
"""Kinds of tokens; each may follow a token directly, a space or a line break."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Words, numbers and marks of a batch of texts, in order.

    Attributes:
        text: The text of each token, shape (n,).
        start: Its start in the joined texts, shape (n,).
        end: Its end, exclusive, shape (n,).
        word: The hash of its characters in lower case, shape (n,).
        first: The bucket of its beginning, in [0, BUCKETS), shape (n,).
        last: The bucket of its ending, shape (n,).
        shape: Its kind and what precedes it, in [0, 3 * SHAPES), shape (n,).
        build: A word's length and unknown letter triples, in [0, MAX_WORD_LETTERS * (MAX_ODD + 1)), shape (n,).
        latin: Whether it is a word of two or more Latin letters, shape (n,).
    """

    text: Numbers
    start: Numbers
    end: Numbers
    word: NDArray[np.uint64]
    first: Numbers
    last: Numbers
    shape: Numbers
    build: Numbers
    latin: NDArray[np.bool_]


@cache
def _classes() -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The class and lower case of each character of the basic plane."""
    kinds = np.full(65_536, OTHER, dtype=np.uint8)
    lower = np.arange(65_536, dtype=np.uint32)
    for code in (*range(SMALL), *range(0x1E00, 0x1F00)):
        sign = chr(code)
        kinds[code] = (
            LATIN if sign.isalpha() else DIGIT if sign.isdecimal() else SPACE if sign.isspace() or code < 32 else MARK
        )
        small = sign.lower()
        lower[code] = ord(small) if len(small) == 1 else code
    kinds[0x300:0x370] = LATIN  # marks on letters
    kinds[0x2000:0x2C00] = MARK
    kinds[0x2C60:0x2C80] = LATIN
    kinds[0x3000:0x3005] = MARK
    kinds[0xE000:0xF900] = MARK
    kinds[0xFE00:0xFE70] = MARK
    kinds[0xFF00:0xFF10] = MARK
    for code in (*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000):
        kinds[code] = SPACE
    return kinds, lower


def tokens(texts: Sequence[str], triples: NDArray[np.uint8]) -> Tokens:
    """The tokens of texts: runs of letters or digits, and marks; a capital after a small letter begins a new token.

    Args:
        texts: The texts.
        triples: A bit for each triple of the letters a to z (26 for others), set if known, shape (2461,).
    """
    codes = _codes("\n".join(texts))
    kind, small = _classes()[0][np.minimum(codes, 0xFFFF)], _lower(codes)
    upper = small != codes
    n = len(codes)

    new = np.empty(n, dtype=np.bool_)
    new[:1] = True
    same = kind[1:] == kind[:-1]
    turn = (kind[1:] == LATIN) & upper[1:] & ~upper[:-1]
    other_mark = (kind[1:] == MARK) & (codes[1:] != codes[:-1])
    new[1:] = ~same | turn | other_mark
    ends_of_texts = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) + 1) - 1
    begins = np.flatnonzero(new)
    stops = np.append(begins[1:], n)
    words = kind[begins] != SPACE
    start, end = begins[words], stops[words]
    sort = kind[start]
    text = np.searchsorted(ends_of_texts, start)

    word = _hashes(small, start, end)
    length, latin = end - start, sort == LATIN

    letters = np.concatenate([small, [0, 0]]).astype(np.int64)
    first = _bucket(*(letters[start + k] * (length > k) for k in range(3)))
    last = _bucket(*(letters[end - 1 - k] * (length > k) for k in range(3)))

    odd = _odd(small, triples)
    build = np.minimum(length, MAX_WORD_LETTERS - 1) * (MAX_ODD + 1)
    build += np.minimum(odd[np.maximum(end - 2, start)] - odd[start], MAX_ODD)
    build[~latin] = 0

    shapes = _shapes(codes, kind, upper, start, end)
    return Tokens(text, start, end, word, first, last, shapes, build, latin & (length > 1))


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _lower(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Code points in lower case; those beyond the basic plane are one."""
    return np.where(codes > 0xFFFF, np.uint32(0xFFFF), _classes()[1][np.minimum(codes, 0xFFFF)])


def hashes(text: str, start: Numbers, end: Numbers) -> NDArray[np.uint64]:
    """A hash of each of these parts of a text in lower case, as `Tokens.word` has it. Linear time."""
    return _hashes(_lower(_codes(text)), start, end)


def _hashes(small: NDArray[np.uint32], start: Numbers, end: Numbers) -> NDArray[np.uint64]:
    """A hash of each token's lower-case characters: a polynomial modulo 2 ** 64, from differences of prefix sums."""
    n = len(small)
    powers, back = (np.full(n + 1, base, dtype=np.uint64) for base in (BASE, INVERSE))
    powers[0] = back[0] = 1
    sums = np.zeros(n + 1, dtype=np.uint64)
    np.cumsum((small.astype(np.uint64) + np.uint64(1)) * np.cumprod(powers)[:n], out=sums[1:])
    mixed = (sums[end] - sums[start]) * np.cumprod(back)[start]
    return (mixed ^ (mixed >> np.uint64(29))) * np.uint64(MIX)


def _bucket(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    mixed = a * 961_748_927 + b * 982_451_653 + c * 776_531_401
    return np.asarray((mixed ^ (mixed >> 13)) & (BUCKETS - 1))


def _odd(small: NDArray[np.uint32], triples: NDArray[np.uint8]) -> Numbers:
    """The number of unknown letter triples that begin before each character, shape (n + 1,)."""
    counts = np.zeros(len(small) + 1, dtype=np.int64)
    if len(small) > 2:
        letter = np.where((small >= 97) & (small <= 122), small.astype(np.int64) - 97, 26)
        index = (letter[:-2] * 27 + letter[1:-1]) * 27 + letter[2:]
        known = (triples[index >> 3] >> (index & 7).astype(np.uint8)) & 1
        plain = (letter[:-2] < 26) & (letter[1:-1] < 26) & (letter[2:] < 26)
        np.cumsum(plain & (known == 0), out=counts[1:-2])
        counts[-2:] = counts[-3]
    return counts


def _shapes(
    codes: NDArray[np.uint32], kind: NDArray[np.uint8], upper: NDArray[np.bool_], start: Numbers, end: Numbers
) -> Numbers:
    """The kind of each token: by case for words, length for numbers, character and repetition for marks."""
    sort, length, capital = kind[start], end - start, upper[start]
    foreign = np.concatenate(([0], np.cumsum((codes > 127) & (kind == LATIN))))
    shape = np.where(capital & upper[end - 1] & (length > 1), 2, np.where(capital, 1, 0))
    shape[length == 1] += 3  # 3, 4
    shape[(foreign[end] > foreign[start])] = 5
    shape = np.where(sort == DIGIT, 6 + np.minimum(length, 5), shape)  # 7 to 11
    mark = np.where(codes[start] < 128, _ASCII_MARKS[np.minimum(codes[start], 127)], 45)
    mark = np.where((length > 1) & (sort == MARK), 46 + (codes[start] == 46), mark)
    shape = np.where(sort == MARK, mark, shape)
    shape = np.where(sort == OTHER, 48 + np.minimum(length, 3), shape)  # 49 to 51
    before = np.maximum(start - 1, 0)
    gap = np.where((kind[before] == SPACE) | (start == 0), np.where((codes[before] == 10) | (start == 0), 2, 1), 0)
    return np.asarray(shape + SHAPES * gap, np.int64)


_ASCII_MARKS = np.full(128, 45, dtype=np.int64)
_ASCII_MARKS[[ord(sign) for sign in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"]] = 12 + np.arange(32)
