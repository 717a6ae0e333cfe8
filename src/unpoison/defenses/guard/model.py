"""What Guard has learned: numbers in JSON files, and how they turn evidence into probabilities.

`benchmarks/train_guard.py` fits them. Three steps: the first judges each passage by its own evidence; the second by the
same evidence and what the first thought of the passages that resemble it, so that copies by one hand convict each other
while agreement among passages that look innocent convicts nobody; the third compares with the set, for where innocent
passages look suspicious too, on a page of the web that answers the question head-on, suspicion means less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import OptionError
from unpoison.kernels.comparisons import middle
from unpoison.kernels.evidence import Signs
from unpoison.kernels.style import SHORTEST, Runs, Style, known_to, resemblance, run_code
from unpoison.kernels.trees import Trees, evaluate

__all__ = [
    "COMPANY",
    "WORDING",
    "WORDING_ALONE",
    "GuardModel",
    "Judgement",
    "as_log_odds",
    "as_probability",
    "company",
    "setting",
    "trees_of",
    "wording",
]

Matrix = NDArray[np.float64]

WORDING = ("wording", "wording_contrast", "wording_claim", "wording_most", "wording_least", "set_wording",
           "set_wording_most")  # fmt: skip
"""Columns that say how much a passage and its sentences are built as invented claims are (`kernels.style`)."""

COMPANY = ("suspicion", "suspicion_contrast", "suspicious_support", "suspicious_words", "suspicious_mates",
           "suspicious_others", "suspicious_most")  # fmt: skip
"""Columns of the second step: what the first thought of the passage and of those that resemble it."""

WORDING_ALONE = ("wording", "wording_claim", "wording_most", "wording_least")
"""Of these the columns that look at one passage."""

MARGIN = 1.5
"""Texts of other kinds than the training's lose more: thresholds are half as strict again as was needed there."""

STEEPEST = 8.0
"""Sums beyond this count as this."""


@dataclass(frozen=True)
class GuardModel:
    """Coefficients for one kind of embedding.

    Attributes:
        columns: The evidence that the trees look at, in order; `WORDING` stands behind them.
        style: How invented claims are built, and how other texts are.
        first, second: The trees of the first two steps.
        alone_columns, alone: Columns that do not depend on the other passages, and trees over these.
        slope, alone_slope, context, base: The second step's sum s and the sum a of the trees `alone` become the
            log-odds slope * s + alone_slope * a + context . setting + base.
        bound: How far the company may lift a passage's log-odds above its own suspicion.
        ordinary: The level of the sets that the thresholds were set for (`WindowModel.level`), in log-odds.
        damage: Shares of clean passages, rising.
        thresholds: The probability above which at most that share is dropped, on each clean data set of the training.
        calibration: Twelve hexadecimal digits that stand for all of these: equal where the same texts get the same
            probabilities.
    """

    columns: tuple[str, ...]
    style: Style
    first: Trees
    second: Trees
    alone_columns: tuple[str, ...]
    alone: Trees
    slope: float
    alone_slope: float
    context: Matrix
    base: float
    bound: float
    ordinary: float
    damage: tuple[float, ...]
    thresholds: tuple[float, ...]
    calibration: str

    @classmethod
    @cache
    def load(cls, name: str) -> Self:
        """The shipped coefficients: `lexical` or `minilm`."""
        return cls.from_numbers(_load_numbers(name), _shipped_style())

    @classmethod
    def of(cls, data: Mapping[str, Any], style: Mapping[str, Any]) -> Self:
        """Read what `benchmarks/train_guard.py` wrote."""
        return cls.from_numbers(data, cls.style_of(style))

    @classmethod
    def from_numbers(cls, data: Mapping[str, Any], style: Style) -> Self:
        """From numbers that were checked, and a style."""
        return cls(
            columns=tuple(data["columns"]),
            style=style,
            first=trees_of(data["first"]),
            second=trees_of(data["second"]),
            alone_columns=tuple(data["alone_columns"]),
            alone=trees_of(data["alone"]),
            slope=data["calibration"]["slope"],
            alone_slope=data["calibration"]["alone"],
            context=np.array(data["calibration"]["context"]),
            base=data["calibration"]["base"],
            bound=data["bound"],
            ordinary=data["ordinary"],
            damage=tuple(data["damage"]),
            thresholds=tuple(data["thresholds"]),
            calibration=_fingerprint(data, style),
        )

    @staticmethod
    def style_of(data: Mapping[str, Any]) -> Style:
        """The style from its runs in words and their weights."""
        codes = np.array([run_code(text) for text in data["runs"]], np.int64)
        order = np.argsort(codes)
        return Style(codes[order], np.array(list(data["runs"].values()))[order], data["base"])

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
        return float(np.interp(damage / MARGIN, self.damage, self.thresholds))

    def judge(self, signs: Signs) -> Judgement:
        """The three steps for the passages of one question."""
        rows = np.column_stack([*(signs.columns[name] for name in self.columns), *wording(signs, self.style)])
        around = company(evaluate(self.first, rows), signs)
        sums = self.sums(rows, around)
        where = setting(sums, signs)
        names = (*self.columns, *WORDING)
        alone = evaluate(self.alone, rows[:, [names.index(name) for name in self.alone_columns]])
        return Judgement(rows, around, where, as_probability(self.odds(sums, alone, where)), alone)

    def sums(self, rows: Matrix, around: Matrix) -> Matrix:
        """What the second step says of rows of evidence, with what the first said of the others, shape (n,)."""
        return evaluate(self.second, np.hstack([rows, around]))

    def odds(self, sums: Matrix, alone: Matrix, where: Matrix) -> Matrix:
        """Log-odds of poison from the sums of the second step and of the trees `alone`, in the setting of a set.

        All of shape (n,), the setting (3,).
        """
        bounded, by_itself = (np.clip(values, -STEEPEST, STEEPEST) for values in (sums, alone))
        shift = float(where @ self.context) + self.base
        return np.asarray(self.slope * bounded + self.alone_slope * by_itself + shift)


class Judgement(NamedTuple):
    """What the steps made of k passages.

    Attributes:
        rows: The evidence, `WORDING` behind it, shape (k, columns).
        around: `COMPANY`, shape (k, 7).
        where: The set as a whole, see `setting`, shape (3,).
        probability: Of poison, at even odds of clean and poison, shape (k,).
        alone: Log-odds of poison by what does not depend on the other passages, shape (k,).
    """

    rows: Matrix
    around: Matrix
    where: Matrix
    probability: Matrix
    alone: Matrix


def wording(signs: Signs, style: Style) -> tuple[Matrix, ...]:
    """`WORDING`, each of shape (k,): of the whole passage, of its claim, and of its sentences."""
    k, owner = len(signs.residual), signs.sentence_owner
    inside = owner[signs.runs.sentence] >= 0
    lengths = np.bincount(signs.runs.sentence[inside], minlength=len(owner))
    known_runs = known_to(style, Runs(signs.runs.code[inside], signs.runs.sentence[inside]))
    whole = resemblance(style, known_runs.code, owner[known_runs.sentence], k)
    each = resemblance(style, known_runs.code, known_runs.sentence, len(owner))
    long = lengths >= SHORTEST
    claim, most, least = whole.copy(), whole.copy(), whole.copy()
    claimed = np.flatnonzero(signs.claim >= 0)
    claimed = claimed[long[signs.claim[claimed]]]
    claim[claimed] = each[signs.claim[claimed]]
    np.maximum.at(most, owner[long], each[long])
    np.minimum.at(least, owner[long], each[long])
    typical = middle(whole)
    return (whole, whole - typical, claim, most, least, np.full(k, typical), np.full(k, whole.max()))


def setting(sums: Matrix, signs: Signs) -> Matrix:
    """How suspicious even the innocent passages are, and how near the set is to the question, shape (3,).

    The sum that a fifth of the passages is below, which many poisons do not move and one odd passage does not either;
    mean similarity; mean share of the question's words.
    """
    ranked = np.sort(np.clip(sums, -STEEPEST, STEEPEST))
    low = ranked[int(0.2 * (len(ranked) - 1))]
    return np.array([low, signs.columns["set_similarity"][0], signs.columns["coverage"].mean()])


def company(sums: Matrix, signs: Signs) -> Matrix:
    """`COMPANY` from the sums of the first step, shape (k, 7)."""
    k = len(sums)
    odds = np.clip(sums, -STEEPEST, STEEPEST)
    apart = ~np.eye(k, dtype=bool)
    others = np.where(apart, as_probability(odds), 0.0)
    near, alike = np.where(apart, np.clip(signs.residual, 0, 1), 0.0), np.where(apart, signs.overlap, 0.0)
    return np.column_stack([
        odds,
        odds - middle(odds),
        (near * others).max(axis=1),
        (alike * others).max(axis=1),
        (near * others).sum(axis=1) / (near.sum(axis=1) + 0.3),
        others.sum(axis=1) / max(k - 1, 1),
        others.max(axis=1),
    ])  # fmt: skip


def as_probability(odds: Matrix) -> Matrix:
    """Log-odds as probabilities."""
    return np.asarray(1 / (1 + np.exp(-odds)))


def as_log_odds(probability: Matrix) -> Matrix:
    """Probabilities as log-odds, which stay finite."""
    likely = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(likely) - np.log1p(-likely))


def _load_numbers(name: str) -> Any:
    return json.loads((files("unpoison.data") / f"guard-{name}.json").read_text(encoding="utf-8"))


@cache
def _shipped_style() -> Style:
    """One for all kinds of embedding: it looks at texts alone."""
    return GuardModel.style_of(_load_numbers("style"))


def _fingerprint(data: Mapping[str, Any], style: Style) -> str:
    digest = blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=6)
    for part in style:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def trees_of(data: Mapping[str, Any]) -> Trees:
    """Trees from their lists in a JSON file."""
    return Trees(
        np.array(data["features"], np.int64), np.array(data["thresholds"]), np.array(data["leaves"]), data["base"]
    )
