"""Doubles of the models that few tests need; the others are shipped in `unpoison.models.doubles`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray


class FakeCrossEncoder:
    """Scores from a function.

    Args:
        scores: `f(first, second)`. None gives equal texts 1, others 0.

    Attributes:
        calls: The pairs of each call so far.
    """

    def __init__(self, scores: Callable[[str, str], float] | None = None) -> None:
        self.name = "fake"
        self.calls: list[tuple[tuple[str, str], ...]] = []
        self._score = scores or (lambda first, second: float(first == second))

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,)."""
        self.calls.append(tuple(pairs))
        return np.array([self._score(*pair) for pair in pairs], np.float64)


class FakeInjectionClassifier:
    """Probabilities from a function, or from words.

    Args:
        probability: `f(text)`; or words, of which a text with any has 0.99 and one without 0.01.

    Attributes:
        calls: The texts of each call so far.
    """

    def __init__(self, probability: Callable[[str], float] | Sequence[str] = ("ignore",)) -> None:
        self.name = "fake"
        self.calls: list[tuple[str, ...]] = []
        self._probability = probability

    def probabilities(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """Shape (n,)."""
        self.calls.append(tuple(texts))
        return np.array([self._of(text) for text in texts], np.float64)

    def _of(self, text: str) -> float:
        if callable(self._probability):
            return self._probability(text)
        return 0.99 if any(word in text.lower() for word in self._probability) else 0.01


class FakeLanguageModel:
    """Log-probabilities without a model: a word is the likelier the oftener it occurred before in the text."""

    name = "fake"

    def logprobs(self, texts: Sequence[str], /) -> list[NDArray[np.float64]]:
        """One array of shape (T - 1,) for each text of T words."""
        arrays = list[NDArray[np.float64]]()
        for words in map(str.split, texts):
            seen = Counter[str]()
            likelihoods = list[float]()
            for place, word in enumerate(words):
                seen[word] += 1
                likelihoods.append(np.log(seen[word] / (seen[word] + 100)) if place else 0.0)
            arrays.append(np.array(likelihoods[1:], float))
        return arrays
