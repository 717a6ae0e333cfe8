"""Who says that a text holds a prompt injection: the built-in detector, or a classifier in its place.

Both are flows. The built-in one asks nothing; a classifier is asked through the driver. It sees runs of whole
sentences, and of the worst run each sentence by itself, so that a false alarm costs a sentence and not a passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.models.requests import Flow, classify
from unpoison.text.alignment import Region
from unpoison.text.analysis import analysis, each
from unpoison.text.prompt_injection import THRESHOLD, Injection, injection, injections, unsupported_language
from unpoison.text.sentences import sentences

__all__ = [
    "BUILT_IN",
    "CLASSIFIER",
    "THRESHOLD",
    "Detector",
    "Injection",
    "injection",
    "injections",
    "unsupported_language",
]

MAX_RUN_CHARS = 1_500
"""Characters of a run of sentences: some 300 words, which fit into the 512 tokens that classifiers read. What has more
tokens than its model reads is judged in windows by the model's adapter."""


class Detector(Protocol):
    """Says how likely texts hold an injection, and where the worst one stands."""

    def probabilities(self, texts: Sequence[str], /) -> Flow[NDArray[np.float64]]:
        """Of k texts, in [0, 1], shape (k,)."""

    def worst(self, text: str, /) -> Flow[Injection]:
        """The most suspicious stretch of a text."""

    def unsupported_language(self, text: str, /) -> str | None:
        """The language or script that it cannot judge; None where it can."""


class _BuiltIn:
    """`text.prompt_injection`."""

    def probabilities(self, texts: Sequence[str], /) -> Flow[NDArray[np.float64]]:
        yield from ()  # a flow without requests
        return np.array(each(texts, injections), float)

    def worst(self, text: str, /) -> Flow[Injection]:
        yield from ()
        return injection(text)

    def unsupported_language(self, text: str, /) -> str | None:
        return analysis(text).part(unsupported_language)


class _Run(NamedTuple):
    """A run of whole sentences of a text."""

    text: int
    start: int
    end: int


class _Classifier:
    """A classifier (`models.injection`): one request for all texts, two for a text of which a place is asked."""

    def probabilities(self, texts: Sequence[str], /) -> Flow[NDArray[np.float64]]:
        windows = [_Run(n, *region) for n, text in enumerate(texts) for region in runs(text)]
        likely = yield from classify([texts[run.text][run.start : run.end] for run in windows])
        probability = np.zeros(len(texts))
        np.maximum.at(probability, [run.text for run in windows], likely)
        return probability

    def worst(self, text: str, /) -> Flow[Injection]:
        windows = runs(text)
        likely = yield from classify([text[start:end] for start, end in windows])
        if not windows:
            return Injection(0.0, "")
        (start, end), probability = windows[int(np.argmax(likely))], float(np.max(likely))
        if probability > THRESHOLD:
            begin = start
            parts = [(begin + first, begin + last) for first, last in sentences(text[start:end])]
            alone = yield from classify([text[first:last] for first, last in parts])
            if np.max(alone) > THRESHOLD:
                start, end = parts[int(np.argmax(alone))]
        return Injection(probability, text[start:end], start, end)

    def unsupported_language(self, text: str, /) -> str | None:
        return None


BUILT_IN: Detector = _BuiltIn()
CLASSIFIER: Detector = _Classifier()


def runs(text: str) -> list[Region]:
    """Runs of whole sentences of at most 1,500 characters that cover a text; a longer sentence is cut. O(n) time."""
    runs = list[Region]()
    for start, end in sentences(text):
        for begin in range(start, end, MAX_RUN_CHARS):
            close = min(end, begin + MAX_RUN_CHARS)
            if runs and close - runs[-1][0] <= MAX_RUN_CHARS:
                runs[-1] = runs[-1][0], close
            else:
                runs.append((begin, close))
    return runs
