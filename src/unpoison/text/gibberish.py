"""Gibberish: text that no person writes, produced by gradient attacks on a retriever.

Such attacks replace one word piece after another until the text's vector is close to a question's. The result consists
of real words and fragments in an unnatural order, often before or after a natural sentence. So each token is read with
two neighbours on either side, and a text is as suspicious as its worst window of `WINDOW` tokens; text added elsewhere
cannot change that. `data/gibberish.npz` is a network of three small layers, trained by `benchmarks train_gibberish` to
separate texts of many kinds (prose, code, tables, lists, logs) from texts by such attacks. Its weights are integers:
the result is the same on every machine, for a single text or a batch.

Only words in Latin letters are judged; a window without enough of them is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from unpoison.text.analysis import groups
from unpoison.text.languages import other_language

__all__ = ["THRESHOLD", "WINDOW", "are_frequent", "gibberish", "gibberish_of", "network", "tokens"]

Numbers = NDArray[np.int64]

THRESHOLD = 0.5
"""Minimum probability of gibberish; training shifts the scale to this value."""

FOREIGN = 1.4
"""Log-odds less for a text that is not English, whose words look odd because training saw few of them: seven of a
thousand such texts were dropped, and most gradient attacks are above that.
"""

WINDOW = 12
"""Tokens in a window: words, numbers and marks."""

STEP = 3
"""Tokens from the start of one window to the next."""

STEPS = WINDOW // STEP

REACH = 2
"""Neighbours on either side that a token is read with."""


class Gibberish(NamedTuple):
    """The worst window of a text.

    Attributes:
        probability: The probability of gibberish, in [0, 1].
        start: Its start in the text, a character index.
        end: Its end, exclusive; 0 if nothing can be judged.
    """

    probability: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GibberishWeights:
    """The network, as integers stored in floats.

    Attributes:
        words: Hashes of the known words, ascending, shape (v,).
        known: A vector for each, shape (v, d).
        first: A vector for each beginning of an unknown word, shape (BUCKETS, d).
        last: A vector for each ending, shape (BUCKETS, d).
        shape: A vector for each shape, shape (3 * SHAPES, d).
        build: A vector for each build, shape (64, d).
        near: Weights from the neighbours' vectors to the first layer, shape (2 * REACH + 1, d, h).
        near_bias: Bias of the first layer, shape (h,).
        divisor: Scales the first layer to integers from 0 to 255.
        deep: Weights from a window's sums to the second layer, shape (h, g).
        deep_bias: Bias of the second layer, shape (g,).
        deep_divisor: Scales the second layer.
        top: Weights from the second layer to the score, shape (g,).
        top_bias: Bias of the score.
        top_divisor: Scales the score to log-odds.
        triples: The letter triples of known words, as bits.
    """

    words: NDArray[np.uint64]
    known: NDArray[np.float32]
    first: NDArray[np.float32]
    last: NDArray[np.float32]
    shape: NDArray[np.float32]
    build: NDArray[np.float32]
    near: NDArray[np.float32]
    near_bias: NDArray[np.float32]
    divisor: float
    deep: NDArray[np.float64]
    deep_bias: NDArray[np.float64]
    deep_divisor: float
    top: NDArray[np.float64]
    top_bias: float
    top_divisor: float
    triples: NDArray[np.uint8]


@cache
def network() -> GibberishWeights:
    """The network of the package."""
    with (files("unpoison.data") / "gibberish.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return weights({name: arrays[name] for name in arrays.files})


_SCALARS = ("divisor", "deep_divisor", "top_bias", "top_divisor")
_TYPES = {"words": np.uint64, "triples": np.uint8, **dict.fromkeys(("deep", "deep_bias", "top"), np.float64)}


def weights(arrays: Mapping[str, NDArray[np.generic]]) -> GibberishWeights:
    """The network from its file's arrays."""
    values: dict[str, Any] = {name: float(np.asarray(arrays[name], np.float64)) for name in _SCALARS}
    for field in fields(GibberishWeights):
        if field.name not in _SCALARS:
            values[field.name] = np.asarray(arrays[field.name], _TYPES.get(field.name, np.float32))
    return GibberishWeights(**values)


def are_frequent(text: str, start: Numbers, end: Numbers) -> NDArray[np.bool_]:
    """Whether the network knows each of these parts of a text; it knows about 12,000 words, most of them English."""
    number, known = _hashes(_lower(_codes(text)), start, end), network().words
    return np.asarray(known[np.minimum(np.searchsorted(known, number), len(known) - 1)] == number)


BLOCK = 8190
"""Rows per batch, which bounds memory."""

PART = 90
"""Rows of a product: for more, BLAS wakes its other threads, which then wait for the next one at full speed."""

MIN_WORDS = 6
"""Minimum words in Latin letters of a window."""

HIDDEN = 255.0


def gibberish(text: str) -> Gibberish:
    """The probability that a text contains gibberish, and its worst window.

    Args:
        text: The canonical text.

    Returns:
        The probability and position of the worst window; 0 and an empty window if none has `MIN_WORDS` words in Latin
        letters.
    """
    pieces = tokens([text], network().triples)
    scores, firsts = worst(pieces, 1, network())
    first = int(firsts[0])
    if first < 0:
        return Gibberish(0.0, 0, 0)
    last = min(first + WINDOW, len(pieces.start)) - 1
    return Gibberish(float(_probabilities(scores, [text])[0]), int(pieces.start[first]), int(pieces.end[last]))


def gibberish_of(texts: Sequence[str]) -> NDArray[np.float64]:
    """The probabilities of `gibberish` for a batch of texts, which is faster: shape (k,), values in [0, 1]."""
    values = np.zeros(len(texts))
    for begin, end in groups(texts):
        group = texts[begin:end]
        values[begin:end] = _probabilities(worst(tokens(group, network().triples), len(group), network())[0], group)
    return values


def _probabilities(scores: NDArray[np.float64], texts: Sequence[str]) -> NDArray[np.float64]:
    doubts = [FOREIGN * (score > 0 and other_language(text) is not None) for score, text in zip(scores, texts)]
    values = 1 / (1 + np.exp(-np.maximum(scores - doubts, -700.0)))
    return np.where(np.isneginf(scores), 0.0, values)


def worst(pieces: Tokens, count: int, weights: GibberishWeights) -> tuple[NDArray[np.float64], Numbers]:
    """The highest score of each of `count` texts, -inf if nothing can be judged, and the first token of that window."""
    best, where = np.full(count, -np.inf), np.full(count, -1, dtype=np.int64)
    if not len(pieces.text):
        return best, where
    sizes = np.bincount(pieces.text, minlength=count)
    firsts = np.cumsum(sizes) - sizes
    # Each text begins at a step, after an empty one, so that tokens of different texts are no neighbours.
    steps = np.maximum(-(-sizes // STEP), STEPS) + 1
    begins = np.cumsum(steps) - steps + 1
    rows = np.arange(len(pieces.text)) + (begins * STEP - firsts)[pieces.text]
    total = int(begins[-1] + steps[-1])
    sums = _steps(pieces, rows, total, weights)
    latin = np.bincount(rows // STEP, weights=pieces.latin, minlength=total)
    here = np.repeat(np.arange(count), steps - STEPS)
    start = np.arange(len(here)) - np.repeat(np.cumsum(steps - STEPS) - (steps - STEPS), steps - STEPS) + begins[here]
    words = sum((latin[start + k] for k in range(1, STEPS)), latin[start])
    enough = np.flatnonzero(words >= MIN_WORDS)
    first = start[enough]
    stretches = sum((sums[first + k] for k in range(1, STEPS)), sums[first]).astype(np.float64)
    deep = np.floor((_product(stretches, weights.deep) + weights.deep_bias) / weights.deep_divisor)
    scores = np.full(len(start), -np.inf)
    scores[enough] = (np.clip(deep, 0, HIDDEN) @ weights.top + weights.top_bias) / weights.top_divisor
    best = np.maximum.reduceat(scores, np.cumsum(steps - STEPS) - (steps - STEPS))
    at = np.flatnonzero((scores == best[here]) & np.isfinite(scores))
    texts, position = np.unique(here[at], return_index=True)
    where[texts] = firsts[texts] + (start[at[position]] - begins[texts]) * STEP
    return best, where


def _steps(pieces: Tokens, rows: Numbers, total: int, weights: GibberishWeights) -> NDArray[np.float32]:
    """The sums of the first layer over each step's tokens: shape (total, h)."""
    sums = np.zeros((total, weights.near_bias.shape[0]), dtype=np.float32)
    width = weights.near.shape[1]
    near = weights.near.reshape(-1, weights.near.shape[2])
    for low in range(0, total * STEP, BLOCK):
        high = min(low + BLOCK, total * STEP)
        begin, end = np.searchsorted(rows, (low - REACH, high + REACH))
        vectors = np.zeros((high - low + 2 * REACH, width), dtype=np.float32)
        vectors[rows[begin:end] - (low - REACH)] = _vectors(pieces, slice(begin, end), weights)
        beside = sliding_window_view(vectors.ravel(), len(near))[::width]
        hidden = _product(np.ascontiguousarray(beside), near)
        hidden += weights.near_bias
        hidden *= np.float32(1 / weights.divisor)
        np.clip(np.floor(hidden, out=hidden), 0, HIDDEN, out=hidden)
        there = np.zeros((high - low, 1), dtype=np.float32)
        begin, end = np.searchsorted(rows, (low, high))
        there[rows[begin:end] - low] = 1
        hidden *= there
        sums[low // STEP : high // STEP] = hidden.reshape(-1, STEP, hidden.shape[1]).sum(axis=1)
    return sums


def _product(rows: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """`rows @ weights` on this thread alone; the sums are of integers, so no order changes them."""
    return np.concatenate([rows[low : low + PART] @ weights for low in range(0, max(len(rows), 1), PART)])


def _vectors(pieces: Tokens, part: slice, weights: GibberishWeights) -> NDArray[np.float32]:
    """The vector of each token."""
    word = pieces.word[part]
    place = np.minimum(np.searchsorted(weights.words, word), len(weights.words) - 1)
    unknown = np.flatnonzero(weights.words[place] != word)
    vectors = weights.known[place]
    vectors[unknown] = weights.first[pieces.first[part][unknown]] + weights.last[pieces.last[part][unknown]]
    vectors += weights.shape[pieces.shape[part]]
    vectors += weights.build[pieces.build[part]]
    return vectors


SPACE, LATIN, DIGIT, MARK, OTHER = range(5)

BASE, INVERSE = 0x9E3779B97F4A7C15, pow(0x9E3779B97F4A7C15, -1, 2**64)
MIX = 0xD6E8FEB86659FD93

BUCKETS = 1024
"""Number of hash buckets for the beginnings of unknown words, and for their endings."""

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

    def at(positions: Numbers) -> Numbers:
        inside = (positions >= start) & (positions < end)
        return np.where(inside, small[np.clip(positions, 0, n - 1)], 0).astype(np.int64)

    first = _bucket(at(start), at(start + 1), at(start + 2))
    last = _bucket(at(end - 1), at(end - 2), at(end - 3))

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
    return np.asarray((mixed ^ (mixed >> 13)) % BUCKETS)


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
