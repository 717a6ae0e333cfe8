"""Orders in a text as it is written and as it is meant (`kernels.respelling`), whichever is more like one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels import orders
from unpoison.kernels.orders import Order
from unpoison.kernels.respelling import respelled
from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["order", "suspicions"]


class _Known:
    """The words of orders, and function words."""

    def __init__(self) -> None:
        self.lexicon = orders.shipped().lexicon

    def __contains__(self, word: object) -> bool:
        return word in ENGLISH_318 or bool(self.lexicon.kinds(str(word)))


@cache
def _known() -> _Known:
    return _Known()


def order(text: str) -> Order:
    """`kernels.orders.order`, of the reading that is more like an order; the places are those in `text`.

    Complexity: O(n log n) time in the text's length.
    """
    found = orders.order(text)
    meant = respelled(text, _known(), accents=True, layout=False)
    if meant is None:
        return found
    other = orders.order(meant.text)
    if other.probability <= found.probability:
        return found
    return other._replace(start=int(meant.start[other.start]), end=int(meant.end[other.end - 1]))


def suspicions(texts: Sequence[str]) -> NDArray[np.float64]:
    """`order(text).probability` for each of k texts, in less time; shape (k,)."""
    probability = orders.suspicions(texts)
    read = (respelled(text, _known(), accents=True, layout=False) for text in texts)
    meant = {i: one.text for i, one in enumerate(read) if one}
    if meant:
        changed = list(meant)
        probability[changed] = np.maximum(probability[changed], orders.suspicions(list(meant.values())))
    return probability
