"""Guard's threshold from a user's own retrievals, without labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.screenings import Screening
from unpoison.errors import InputError, OptionError, clip

__all__ = ["Calibration", "calibrate_threshold"]


class Calibration(NamedTuple):
    """A threshold, and its effect on the retrievals it was calibrated on.

    Attributes:
        threshold: Passages above it are dropped.
        passages, questions: Number in the calibration data.
        dropped: Passages above the threshold.
        touched: Questions with such a passage.
        default: The threshold of the screenings themselves.
        default_dropped, default_touched: The same counts for the default threshold.
    """

    threshold: float
    passages: int
    questions: int
    dropped: int
    touched: int
    default: float
    default_dropped: int
    default_touched: int


def calibrate_threshold(screenings: Iterable[Screening], damage: float = 0.02) -> Calibration:
    """The lowest threshold that drops at most a share `damage` of the passages.

    The retrievals are assumed to be clean. A few poisoned ones raise the threshold and lower recall; they do no other
    harm.

    Args:
        screenings: Guard's, of retrievals without attack.
        damage: The share of clean passages that may be lost, in [0, 1).

    Raises:
        OptionError: `damage` is out of range.
        InputError: There are too few passages to measure such a share, or screenings without probabilities.
    """
    if not 0 <= damage < 1:
        raise OptionError(f"damage must be a share in [0, 1), got {clip(damage)}")
    retrievals = list(screenings)
    missing = next((s.defense for s in retrievals if len(s.passages) and "probability" not in s.evidence), None)
    if missing is not None:
        raise InputError(f"screenings by {missing} hold no probabilities; pass those of guard")
    parts = [s.evidence["probability"] for s in retrievals if len(s.passages)]
    values = np.sort(np.concatenate([*parts, np.zeros(0)]))[::-1]
    allowed = int(np.floor(damage * len(values) + 1e-9))
    if not len(values) or (damage > 0 and allowed < 1):
        least = 1 if damage == 0 else int(np.ceil(1 / damage))
        raise InputError(
            f"{len(values):,} passages are too few to measure a damage of {damage:g}; give at least {least:,}, "
            "better ten times as many"
        )
    # Rounded up, so that the printed value drops no more passages than the exact one.
    threshold = min(1.0, float(np.ceil(values[allowed] * 1e5) / 1e5)) if allowed < len(values) else 0.0
    default = max(float(s.evidence["threshold"]) for s in retrievals if len(s.passages))
    counts = [count for bar in (threshold, default) for count in _count_above(parts, bar)]
    dropped, touched, default_dropped, default_touched = counts
    return Calibration(threshold, len(values), len(parts), dropped, touched, default, default_dropped, default_touched)


def _count_above(parts: Iterable[NDArray[np.float64]], threshold: float) -> tuple[int, int]:
    """Passages above a threshold, and questions with such a passage."""
    above = [int((part > threshold).sum()) for part in parts]
    return sum(above), sum(count > 0 for count in above)
