"""Which sentences of a suspicious passage make it so, from what Guard already knows of each sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.redaction import Window
from unpoison.kernels.comparisons import middle
from unpoison.kernels.evidence import Signs
from unpoison.kernels.sentences import sentences
from unpoison.kernels.style import Runs, Style, known_to, resemblance

__all__ = ["suspicious_sentences"]

CLAIM = "comes nearest to an answer to the question"
STYLE = "is built as invented claims are"


def suspicious_sentences(
    texts: Sequence[str], signs: Signs, style: Style, probability: NDArray[np.float64], threshold: float
) -> dict[int, list[Window]]:
    """For each passage above the threshold its claiming sentence, and the sentences in the style of claims.

    A sentence is as suspicious as its passage; what remains without it is judged again.

    Args:
        texts: The readings of k passages.
        signs: The evidence on them.
        style: How invented claims are built.
        probability: Of poison, shape (k,).
        threshold: In [0, 1].
    """
    if not (probability > threshold).any():
        return {}
    owner = signs.sentence_owner
    k, first = len(texts), int((owner < 0).sum())  # the question's sentences come first
    inside = owner[signs.runs.sentence] >= 0
    known_runs = known_to(style, Runs(signs.runs.code[inside], signs.runs.sentence[inside]))
    each = resemblance(style, known_runs.code, known_runs.sentence, len(owner))
    typical = middle(resemblance(style, known_runs.code, owner[known_runs.sentence], k))
    windows: dict[int, list[Window]] = {}
    for i, text in enumerate(texts):
        regions = sentences(text)
        if probability[i] > threshold:
            numbers = range(first, first + len(regions))
            windows[i] = [
                Window(*region, float(probability[i]), CLAIM if number == signs.claim[i] else STYLE)
                for number, region in zip(numbers, regions, strict=True)
                if number == signs.claim[i] or each[number] > typical
            ]
        first += len(regions)
    return windows
