"""Since when more is dropped than before: one change in a series of counts, by its likelihood."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

__all__ = ["DropTimeline", "Onset", "Point", "onset", "timeline"]

MAX_POINTS = 400
"""Points of a time line; a longer log has wider ones."""

HOURS = (1, 6, 24, 168, 720, 8760, 87_600, 876_000)
"""Widths that a point may have."""

SURE = 10.0
"""Natural logarithm of how many times likelier the counts have to be with the change than without."""

RISE = 1.5
"""A smaller rise is no onset."""


@dataclass(frozen=True, slots=True)
class Point:
    """What happened in a stretch of time.

    Attributes:
        start: Seconds since 1970.
        rows, seen, dropped: Answers, documents in them, and those dropped.
    """

    start: int
    rows: int
    seen: int
    dropped: int


@dataclass(frozen=True, slots=True)
class DropTimeline:
    """A log over time.

    Attributes:
        width: Seconds of a point.
        points: Those in which anything happened, in the order of time.
    """

    width: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Onset:
    """A rise of what is dropped.

    Attributes:
        time: Since when, seconds since 1970.
        before, after: The share of documents that was dropped.
        rise: after / before, at most 1000.
    """

    time: int
    before: float
    after: float
    rise: float


def timeline(hours: Iterable[tuple[int, int, int, int]]) -> DropTimeline:
    """Points of the smallest width of which there are at most `MAX_POINTS`.

    Args:
        hours: (hour since 1970, rows, seen, dropped), in the order of time.
    """
    counts_of: dict[int, list[int]] = {}
    level = 0
    for hour, *counts in hours:  # one pass: points are merged as soon as they become too many
        held = counts_of.setdefault(hour // HOURS[level], [0, 0, 0])
        counts_of[hour // HOURS[level]] = [a + b for a, b in zip(held, counts)]
        while len(counts_of) > MAX_POINTS and level + 1 < len(HOURS):
            level += 1
            wider: dict[int, list[int]] = {}
            for at, held in counts_of.items():
                key = at * HOURS[level - 1] // HOURS[level]
                wider[key] = [a + b for a, b in zip(wider.get(key, [0, 0, 0]), held)]
            counts_of = wider
    width = HOURS[level] * 3600
    return DropTimeline(width, tuple(Point(at * width, *counts) for at, counts in sorted(counts_of.items())))


def onset(line: DropTimeline) -> Onset | None:
    """The moment that best divides a log into one share of drops before and a higher one after.

    Both sides are binomial (a likelihood ratio for one change point; Hinkley and Hinkley, 1970). None where the rise is
    less than `RISE`, or the counts are not exp(`SURE`) times likelier with it.
    """
    if len(line.points) < 2:
        return None
    seen = np.array([point.seen for point in line.points], float)
    dropped = np.array([point.dropped for point in line.points], float)
    n, d = np.cumsum(seen)[:-1], np.cumsum(dropped)[:-1]
    rest, left = seen.sum() - n, dropped.sum() - d
    gain = (
        _likelihood(d, n) + _likelihood(left, rest) - _likelihood(dropped.sum(keepdims=True), seen.sum(keepdims=True))
    )
    before, after = d / np.maximum(n, 1), left / np.maximum(rest, 1)
    gain = np.where((after > RISE * before) & (n > 0), gain, -np.inf)
    best = int(gain.argmax())
    if gain[best] < SURE:
        return None
    rise = min(after[best] / before[best], 1000.0) if before[best] else 1000.0
    return Onset(line.points[best + 1].start, float(before[best]), float(after[best]), float(rise))


def _likelihood(dropped: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest log-likelihood of so many drops, but for the number of their orders."""
    share = dropped / np.maximum(seen, 1)
    log_likelihood = xlogy(dropped, share) + xlogy(seen - dropped, 1 - share)
    return np.asarray(log_likelihood, np.float64)
