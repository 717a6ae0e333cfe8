"""What Guard asks of a language model where wording cannot tell: do the passages' answers contradict each other?

A false name in a true passage, or a single fluent lie, looks like any other passage. RADAR's reading shows it: each
passage is read alone, and the minimum cut over the answers separates those that contradict the most consistent ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.radar import Radar
from unpoison.kernels.evidence import Signs
from unpoison.requests import Flow
from unpoison.types import Passage, Query

__all__ = ["Opinion", "ambiguous", "consulted"]

Matrix = NDArray[np.float64]

DOUBTFUL = 0.2
"""A passage with at least this probability, and still kept, is ambiguous."""

CLAIM = 0.5
"""A sentence with at least this share of the question's words tries to answer it."""


class Opinion(NamedTuple):
    """What the comparison of answers said.

    Attributes:
        conflict: For each passage the mean contradiction with the trusted answers, shape (k,); 0 for the trusted.
        rival: The trusted passage that it contradicts most, -1 for none, shape (k,).
        read: How many passages were read, one model call each.
    """

    conflict: Matrix
    rival: NDArray[np.int64]
    read: int


def ambiguous(found: Signs, probability: Matrix, threshold: float) -> bool:
    """Whether wording leaves open whom to believe: a doubtful passage is kept, or several try to answer."""
    kept = probability <= threshold
    doubtful = kept & (probability >= DOUBTFUL)
    return bool(doubtful.any() or (kept & (found.columns["claim"] >= CLAIM)).sum() > 1)


def consulted(radar: Radar, query: Query, passages: tuple[Passage, ...], kept: NDArray[np.intp]) -> Flow[Opinion]:
    """Read the kept passages and find those that the cut puts against the rest.

    A passage that does not answer, or that merely differs, is not held against its author: only contradiction counts.
    """
    screening = yield from radar.screening(query, tuple(passages[i] for i in kept))
    conflict, rival = np.zeros(len(passages)), np.full(len(passages), -1)
    trusted = np.array(sorted(screening.kept_indices), dtype=int)
    answering = set(screening.evidence["answering"].tolist())
    for i in screening.dropped_indices:
        if i in answering and len(trusted):
            against = screening.evidence["conflict"][i, trusted]
            conflict[kept[i]], rival[kept[i]] = against.mean(), kept[trusted[against.argmax()]]
    return Opinion(conflict, rival, len(kept))
