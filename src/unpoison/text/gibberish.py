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
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from unpoison.text.analysis import analysis, groups
from unpoison.text.languages import is_mixed, other_language
from unpoison.text.pieces import Numbers, Tokens, hashes, tokens
from unpoison.utils.assets import array_folder

__all__ = ["THRESHOLD", "WINDOW", "are_frequent", "gibberish", "gibberish_of", "network"]

THRESHOLD = 0.5
"""Minimum probability of gibberish; training shifts the scale to this value."""

FOREIGN = 1.4
"""Log-odds less for a text that is not English, whose words look odd because training saw few of them: seven of a
thousand such texts were dropped, and most gradient attacks are above that; of Hindi that mixes in English words, 29.
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
    """The network of the package.

    Raises:
        ModelError: Its file was changed.
    """
    with np.load(array_folder() / "gibberish.npz", allow_pickle=False) as arrays:
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
    number, known = hashes(text, start, end), network().words
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
    start, end = int(pieces.start[first]), int(pieces.end[last])
    return Gibberish(_probability(float(scores[0]), text, text[start:end]), start, end)


def gibberish_of(texts: Sequence[str]) -> NDArray[np.float64]:
    """The probabilities of `gibberish` for a batch of texts, which is faster: shape (k,), values in [0, 1]."""
    values = np.zeros(len(texts))
    for begin, end in groups(texts):
        group = texts[begin:end]
        scores = worst(tokens(group, network().triples), len(group), network())[0]
        values[begin:end] = 1 / (1 + np.exp(-np.maximum(scores, -700.0)))
        values[begin:end][np.isneginf(scores)] = 0.0
    for i in np.flatnonzero(values > THRESHOLD).tolist():  # few: their windows are read again
        values[i] = analysis(texts[i]).part(gibberish).probability
    return values


def _probability(score: float, text: str, window: str) -> float:
    foreign = score > 0 and (is_mixed(window) or other_language(text) is not None)
    return float(1 / (1 + np.exp(-max(score - FOREIGN * foreign, -700.0))))


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
