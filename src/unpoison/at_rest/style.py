"""How much each unit is built as invented claims are, the whole of it, whatever it says and is asked.

A lie among honest sentences is found by what the defense says of it. A text that was made as a whole shows another
sign: not even its most innocent sentence is built as people's are. So of every text the average and the least
suspicious sentence count, by both of Guard's styles: with marks and capitals, and without, for layout misleads one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.model import GuardModel
from unpoison.defenses.guard.windows import WindowModel
from unpoison.kernels.style import SHORTEST, known_to, resemblance, runs
from unpoison.kernels.tokenized import tokenize
from unpoison.kernels.window_evidence import window_signs

__all__ = ["LEAST", "invention_odds"]

Matrix = NDArray[np.float64]

LEAST, MOST = -6.0, 4.0
"""What is farther from people's texts, or nearer to invented ones, counts as this."""

BLOCK = 64
"""Texts that are read at once."""


def invention_odds(texts: Sequence[str]) -> Matrix:
    """The log-odds, roughly, that each text as a whole is an invented claim, by how it is built, shape (n,).

    Args:
        texts: n canonical texts. One without words looks as innocent as any.

    Complexity: O(words) time but for sorting; memory of one block.
    """
    odds = np.full(len(texts), LEAST)
    for start in range(0, len(texts), BLOCK):
        some = texts[start : start + BLOCK]
        odds[start : start + len(some)] = (_as_written(some) + _plain(some)) / 2
    return np.asarray(np.clip(odds, LEAST, MOST))


def _as_written(texts: Sequence[str]) -> Matrix:
    style, tokenized = GuardModel.load("lexical").style, tokenize(texts)
    all_runs = runs(tokenized)
    runs_with_weight, owner = known_to(style, all_runs), tokenized.sentence_owner
    whole = resemblance(style, runs_with_weight.code, owner[runs_with_weight.sentence], len(texts))
    each = resemblance(style, runs_with_weight.code, runs_with_weight.sentence, len(owner))
    least = _least(each, owner, np.bincount(all_runs.sentence, minlength=len(owner)), len(texts))
    has_words = np.bincount(owner, minlength=len(texts)) > 0
    return np.where(has_words, (whole + least) / 2, LEAST)


def _plain(texts: Sequence[str]) -> Matrix:
    """The same by windows, each as long as it is."""
    signs = window_signs("", texts, WindowModel.load().style)
    each, words = signs.columns[:, 0], np.expm1(signs.columns[:, 5])
    total = np.bincount(signs.owner, words, len(texts))
    whole = np.bincount(signs.owner, each * words, len(texts)) / np.maximum(total, 1)
    return np.where(total > 0, (whole + _least(each, signs.owner, words, len(texts))) / 2, LEAST)


def _least(each: Matrix, owner: NDArray[np.int64], length: NDArray[np.generic], count: int) -> Matrix:
    """The lowest of each text's long sentences, or where it has none, of its longest; shape (count,)."""
    longest = np.zeros(count)
    np.maximum.at(longest, owner, length.astype(float))
    counts = length >= np.minimum(SHORTEST, longest)[owner]
    least = np.full(count, np.inf)
    np.minimum.at(least, owner[counts], each[counts])
    return np.where(np.isfinite(least), least, LEAST)
