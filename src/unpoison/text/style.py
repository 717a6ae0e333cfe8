"""In whose hand a text is written: how far its runs of words and shapes are those of generated claims.

Words that suit every topic, and marks, count as themselves; any other word becomes its outer shape, so that nothing is
learned of a topic. A text's style is a sum over its runs of one to three, over the root of its length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.text.analysis import CAPITAL, MARK, SHAPES, Words

__all__ = ["MAX_RUN_WORDS", "Style", "ranges", "root", "run_codes"]

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint64]

MAX_RUN_WORDS: Final = 3
FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
CAPITALISED: Final = 50
"""The shape of a word with a capital letter that does not count as itself."""
MIN_WORDS: Final = 4
"""A text of fewer words and marks is judged as if it had so many."""


class Style(NamedTuple):
    """What runs say.

    Attributes:
        general: The numbers of the words that count as themselves, rising, the upper 32 bits.
        code: The runs that say anything, rising, the upper 32 bits, shape (f,).
        weight: What each says, whole numbers, whose sums are exact whatever stands before; shape (f,).
        unit: The log-odds of a weight of 1.
        base: What is added once.
    """

    general: NDArray[np.uint32]
    code: NDArray[np.uint32]
    weight: Matrix
    unit: float
    base: float

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read what `benchmarks/training/train_crafted.py` wrote."""
        scale, base = (float(value) for value in data["style_scale"])
        return cls(data["general"], data["code"], data["weight"].astype(np.float64), scale, base)

    def windows(self, texts: Sequence[Words]) -> list[Matrix]:
        """The style of each window of k texts, shape (w,) each. O(n log f) time."""
        words, windows = ([0, *accumulate(len(text[i]) for text in texts)] for i in (0, -1))
        apart = np.repeat(np.arange(len(texts)) << 32, np.diff(words))
        word, kind, sentence = (np.concatenate([text[i] for text in texts]) for i in (0, 2, 3))
        codes = run_codes(word, kind, sentence + apart, self.general)
        behind = np.repeat(words[:-1], np.diff(windows))
        first = np.concatenate([text.first for text in texts]) + behind
        last = np.concatenate([text.last for text in texts]) + behind
        style = self.sums([self.places(code) for code in codes], first, last)
        return [style[begin:end].copy() for begin, end in pairwise(windows)]

    def places(self, codes: Codes) -> Numbers:
        """Where the runs stand in `code`, -1 for none."""
        upper = (codes >> np.uint64(32)).astype(np.uint32)
        place = np.minimum(np.searchsorted(self.code, upper), len(self.code) - 1)
        return np.where((self.code[place] == upper) & (codes > 0), place, -1)

    def sums(self, places: list[Numbers], first: Numbers, last: Numbers) -> Matrix:
        """The styles of stretches, from the places of the runs that begin at each word or mark."""
        total = np.zeros(len(first))
        padded = np.append(self.weight, 0.0)  # place -1
        for shorter, place in enumerate(places):
            total += ranges(padded[place], first, np.maximum(last - shorter, first))
        return np.asarray(total * self.unit / root(last - first) + self.base)


def root(lengths: Numbers) -> Matrix:
    """What sums over so many words and marks are divided by."""
    return np.sqrt(np.maximum(lengths, MIN_WORDS))


def ranges(values: NDArray[Any], first: Numbers, last: Numbers) -> Matrix:
    """The sum of the values of each range."""
    total = np.zeros(len(values) + 1)
    np.cumsum(values, out=total[1:])
    return np.asarray(total[last] - total[first])


def run_codes(word: Numbers, kind: Numbers, sentence: Numbers, general: NDArray[np.uint32]) -> list[Codes]:
    """The runs of one, two and three that begin at each word or mark, 0 where the sentence ends before; shape (n,)."""
    upper = (word >> 31).astype(np.uint32)
    place = np.minimum(np.searchsorted(general, upper), len(general) - 1)
    mark = kind >= MARK
    itself = (general[place] == upper) | mark
    shape = kind & (CAPITAL - 1)
    capital = ((kind & CAPITAL) > 0) & ~mark
    shape = np.where(capital & (shape != SHAPES.index("year")) & (shape != SHAPES.index("number")), CAPITALISED, shape)
    token = (np.where(itself, word, shape + 1) + 7 * (itself & capital)).view(np.uint64) * FACTOR
    made, code = [token], token
    for length in range(1, MAX_RUN_WORDS):
        code = (code[:-1] ^ (code[:-1] >> np.uint64(29))) * FACTOR + token[length:]
        whole = np.zeros(len(token), np.uint64)
        whole[: len(code)] = np.where(sentence[:-length] == sentence[length:], code, 0)
        made.append(whole)
    return made
