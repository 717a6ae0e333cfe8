"""What was found out about texts, kept by their content: the same passages come back with many questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.utils.recent import Recent

__all__ = ["Remembered"]

MOST_BYTES = 32 * 2**20
MOST_TEXTS = 16_384


class Remembered:
    """A function of texts, each judged by itself, that looks at no text twice while there is room.

    Args:
        judge: From k texts to k numbers, shape (k,); what it says of a text does not depend on the others.
    """

    def __init__(self, judge: Callable[[Sequence[str]], NDArray[np.float64]]) -> None:
        self._judge = judge
        self._kept: Recent[str, float] = Recent(lambda text, _: 4 * len(text) + 128, MOST_BYTES, MOST_TEXTS)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The numbers of k texts, shape (k,)."""
        numbers = [self._kept.get(text) for text in texts]
        new = list(dict.fromkeys(text for text, number in zip(texts, numbers) if number is None))
        if not new:
            return np.array(numbers, float)
        fresh = dict(zip(new, self._judge(new).tolist(), strict=True))
        for text, number in fresh.items():
            self._kept.put(text, number)
        return np.array([fresh[text] if number is None else number for text, number in zip(texts, numbers)], float)

    def clear(self) -> None:
        """Forget all texts."""
        self._kept.clear()
