"""Which units may be near-copies of each other, whatever words they begin with: by a sketch of their three-word runs.

A sketch is the smallest hashes of a text's runs of words (Broder, 1997, "On the resemblance and containment of
documents"). One changed word touches three runs, so near-copies share most of their sketch, in any language.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from unpoison.text.near_duplicates import most_shared, split_words

__all__ = ["copy_candidates"]

SKETCH = 8
"""Hashes that are kept of a text."""

MIN_SHARED = 2
"""Hashes that near-copies share at least: texts of which one sentence is equal often share one."""

MIN_LENGTH = 0.7
"""The share of the longer one's characters that the shorter of two near-copies has."""

REMEMBERED = 2**18
"""Words whose hashes are remembered while sketches are made."""

_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd ones, one for each place in a run; the upper bits of the sum are mixed."""


def copy_candidates(texts: Iterable[str]) -> dict[int, list[int]]:
    """The other texts that share most of a text's sketch, for each text that has any.

    Args:
        texts: n of them, of any language.

    Complexity: O(n) time for n words, O(texts) memory. In a crowd of copies each text has some of the others only.
    """
    cache = dict[str, int]()
    sketches, lengths = list[NDArray[np.uint64]](), list[int]()
    for text in texts:
        sketches.append(_sketch(text, cache))
        lengths.append(len(text))
    number = np.repeat(np.arange(len(sketches)), [len(sketch) for sketch in sketches])
    value = np.concatenate([np.zeros(0, np.uint64), *sketches])
    order = np.lexsort((number, value))
    number, value = number[order], value[order]
    same, several = value[1:] == value[:-1], np.zeros(len(value), bool)
    several[1:] |= same
    several[:-1] |= same
    candidates = dict[int, list[int]]()
    for left, others in most_shared(number[several], value[several], len(sketches), MIN_SHARED).items():
        for right in others:
            if min(lengths[left], lengths[right]) < MIN_LENGTH * max(lengths[left], lengths[right]):
                continue
            candidates.setdefault(left, []).append(right)
            candidates.setdefault(right, []).append(left)
    return candidates


def _sketch(text: str, cache: dict[str, int]) -> NDArray[np.uint64]:
    """The smallest hashes of a text's runs of three words, each once, shape (at most SKETCH,)."""
    codes = list[int]()
    for word in split_words(text):
        code = cache.get(word)
        if code is None:
            code = cache[word] = crc32(word.encode("utf-8", "surrogatepass"))
        codes.append(code)
    if len(cache) > REMEMBERED:
        cache.clear()
    if len(codes) < len(_FACTORS):
        return np.zeros(0, np.uint64)
    word_hashes = np.array(codes, np.uint64)
    count = len(codes) - len(_FACTORS) + 1
    runs = sum((word_hashes[i : i + count] + np.uint64(1)) * factor for i, factor in enumerate(_FACTORS))
    runs = np.asarray(runs ^ (runs >> np.uint64(29))) * _FACTORS[1]
    runs ^= runs >> np.uint64(32)
    if count > 4 * SKETCH:  # the text may repeat a run; few texts do so often
        runs = np.partition(runs, 4 * SKETCH)[: 4 * SKETCH]
    return np.unique(runs)[:SKETCH]
