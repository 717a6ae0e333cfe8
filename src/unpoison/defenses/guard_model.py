"""What Guard has learned: numbers in a JSON file, and how they turn evidence into probabilities.

`benchmarks/train_guard.py` fits them. Two passes: the first judges each passage by its own evidence, the second by the
same evidence and what the first thought of the passages that resemble it. So copies by one hand convict each other,
while agreement among passages that look innocent convicts nobody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import OptionError
from unpoison.kernels.evidence import Signs, middle
from unpoison.kernels.trees import Trees, evaluate

__all__ = ["COMPANY", "WORDING", "GuardModel", "company", "table", "wording_columns"]

Matrix = NDArray[np.float64]

WORDING = ("wording", "wording_contrast", "set_wording", "set_wording_most")
"""Columns made of the wording score, a linear score of `kernels.wording.HABITS`."""

COMPANY = ("suspicion", "suspicion_contrast", "suspicious_support", "suspicious_words", "suspicious_mates",
           "suspicious_others", "suspicious_most")  # fmt: skip
"""Columns of the second pass: what the first thought of the passage and of those that resemble it."""

STEEPEST = 8.0
"""Log-odds beyond this count as this."""

WIDEST = 4.0
"""Habits this many deviations from the mean count as this many."""


@dataclass(frozen=True)
class GuardModel:
    """Coefficients for one kind of embedding.

    Attributes:
        columns: The evidence that the trees look at, in order; `WORDING` stands behind them.
        habit_mean, habit_scale, habit_weights: The wording score, shapes (h,).
        habit_base: Its constant.
        first, second: The trees of the two passes.
        slope, base: The second pass's sum s becomes the probability 1 / (1 + exp(-(slope * s + base))).
        damage: Shares of clean passages, rising.
        thresholds: The probability above which at most that share is dropped, on each clean data set of the training.
    """

    columns: tuple[str, ...]
    habit_mean: Matrix
    habit_scale: Matrix
    habit_weights: Matrix
    habit_base: float
    first: Trees
    second: Trees
    slope: float
    base: float
    damage: tuple[float, ...]
    thresholds: tuple[float, ...]

    @classmethod
    @cache
    def load(cls, name: str) -> Self:
        """The shipped coefficients: `lexical` or `minilm`."""
        text = (files("unpoison.data") / f"guard-{name}.json").read_text(encoding="utf-8")
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read what `benchmarks/train_guard.py` wrote."""
        wording = data["wording"]
        return cls(
            columns=tuple(data["columns"]),
            habit_mean=np.array(wording["mean"]),
            habit_scale=np.array(wording["scale"]),
            habit_weights=np.array(wording["weights"]),
            habit_base=wording["base"],
            first=_trees(data["first"]),
            second=_trees(data["second"]),
            slope=data["calibration"]["slope"],
            base=data["calibration"]["base"],
            damage=tuple(data["damage"]),
            thresholds=tuple(data["thresholds"]),
        )

    def threshold(self, damage: float) -> float:
        """The probability above which at most a share `damage` of clean passages is expected to be dropped.

        Raises:
            OptionError: A share for which no threshold was fitted.
        """
        if not self.damage[0] <= damage <= self.damage[-1]:
            raise OptionError(
                f"damage must lie between {self.damage[0]} and {self.damage[-1]}, for which thresholds were fitted, "
                f"got {damage}; or set threshold yourself"
            )
        return float(np.interp(damage, self.damage, self.thresholds))

    def table(self, found: Signs) -> Matrix:
        """The evidence as the trees of the first pass see it, shape (k, columns)."""
        deviations = np.clip((found.habits - self.habit_mean) / self.habit_scale, -WIDEST, WIDEST)
        return table(found, self.columns, deviations @ self.habit_weights + self.habit_base)

    def odds(self, rows: Matrix, around: Matrix) -> Matrix:
        """Log-odds of poison for rows of evidence, with what the first pass said of the others, shape (n,)."""
        return self.slope * evaluate(self.second, np.hstack([rows, around])) + self.base

    def judged(self, rows: Matrix, around: Matrix) -> Matrix:
        """The same as probabilities."""
        return np.asarray(1 / (1 + np.exp(-self.odds(rows, around))))


def table(found: Signs, columns: tuple[str, ...], wording: Matrix) -> Matrix:
    """The columns of that name, then `WORDING`."""
    return np.column_stack([*(found.columns[name] for name in columns), *wording_columns(wording)])


def wording_columns(score: Matrix) -> tuple[Matrix, ...]:
    """`WORDING` from the score, each of shape (k,)."""
    typical = middle(score)
    return score, score - typical, np.full(len(score), typical), np.full(len(score), score.max())


def company(sums: Matrix, found: Signs) -> Matrix:
    """`COMPANY` from the log-odds of the first pass, shape (k, 7)."""
    k = len(sums)
    odds = np.clip(sums, -STEEPEST, STEEPEST)
    apart = ~np.eye(k, dtype=bool)
    others = np.where(apart, 1 / (1 + np.exp(-odds)), 0.0)
    near, alike = np.where(apart, np.clip(found.residual, 0, 1), 0.0), np.where(apart, found.overlap, 0.0)
    return np.column_stack([
        odds,
        odds - middle(odds),
        (near * others).max(axis=1),
        (alike * others).max(axis=1),
        (near * others).sum(axis=1) / (near.sum(axis=1) + 0.3),
        others.sum(axis=1) / max(k - 1, 1),
        others.max(axis=1),
    ])  # fmt: skip


def _trees(data: Mapping[str, Any]) -> Trees:
    return Trees(
        np.array(data["features"], np.int64), np.array(data["thresholds"]), np.array(data["leaves"]), data["base"]
    )
