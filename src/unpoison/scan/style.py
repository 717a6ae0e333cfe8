"""How much each unit is built as invented claims are, the whole of it, whatever it says and is asked.

A lie among honest sentences is found by what the defense says of it. A text that was made as a whole shows another
sign: not even its most innocent sentence is built as people's are. So of every text the average and the least
suspicious sentence count, by the style that `guard.crafted` reads with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.crafted import Crafted
from unpoison.text.analysis import each, words_of

__all__ = ["LEAST", "invention_odds"]

Matrix = NDArray[np.float64]

LEAST, MOST = -6.0, 4.0
"""What is farther from people's texts, or nearer to invented ones, counts as this."""

MIN_TOKENS = 10
"""Words and marks of a sentence that has a style; a shorter one is built as its few words must be."""


def invention_odds(texts: Sequence[str]) -> Matrix:
    """The log-odds, roughly, that each text as a whole is an invented claim, by how it is built, shape (n,).

    Args:
        texts: n canonical texts. One without words looks as innocent as any.

    Complexity: O(words) time but for sorting.
    """
    odds = np.full(len(texts), LEAST)
    for i, (known, style) in enumerate(zip(words_of(texts), each(texts, Crafted.load().styles))):
        if len(style):
            length = known.last - known.first
            # the last window is the whole
            odds[i] = (style[-1] + style[length >= min(MIN_TOKENS, length.max())].min()) / 2
    return np.asarray(np.clip(odds, LEAST, MOST))
