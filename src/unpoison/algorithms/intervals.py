"""Confidence intervals of shares and means, and tests whether two defenses differ.

Every interval is two-sided. Undefined values are nan, never 0. Randomness comes from the given seed only. The interval
and the p-value of a difference are consistent: the interval excludes 0 exactly if p is below 1 - level (for levels up
to 0.999).

The tests compare all of this with `scipy.stats`, which takes a second to import, requires whole counts for Wilson's
interval, and keeps resamples without a denominator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil, inf, isfinite, isnan, nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.errors import OptionError

__all__ = [
    "Difference", "Estimate", "bootstrap_ratio", "holm", "paired_bootstrap", "paired_shares", "wilson",
]  # fmt: skip

RESAMPLES = 2000
"""Number of bootstrap resamples."""
_BLOCK = 2_000_000
"""Indices per batch, so that a bootstrap over any number of questions needs at most about 50 MB."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval.

    Attributes:
        value: The point estimate, nan if undefined.
        low, high: The ends of the interval, nan if undefined.
        count: The number of questions (or trials).
    """

    value: float
    low: float
    high: float
    count: int

    @property
    def defined(self) -> bool:
        return not isnan(self.value)

    @property
    def hits(self) -> int:
        """The number of successes, if the value is a share of the count; 0 if undefined."""
        return round(self.value * self.count) if self.defined else 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; None if undefined."""
        return _finite_row(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two paired series.

    Attributes:
        value: Mean of second minus first.
        low, high: The ends of the interval, nan if the pairs do not determine it.
        probability: The two-sided p-value of no difference, by the test of the function; nan likewise.
        count: Pairs with two defined values.
    """

    value: float
    low: float
    high: float
    probability: float
    count: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; None stands for what is undefined."""
        return _finite_row(self)


def _finite_row(figure: Estimate | Difference) -> dict[str, Any]:
    return {name: value if isfinite(value) else None for name, value in asdict(figure).items()}


def wilson(successes: int, trials: int, level: float = 0.95) -> Estimate:
    """Wilson's score interval for a share (Wilson 1927); it stays within [0, 1] and is valid for few trials.

    Raises:
        OptionError: A level outside (0, 1), or more successes than trials.
    """
    _check(successes, trials, level)
    return Estimate(nan, nan, nan, 0) if trials == 0 else _wilson(successes / trials, trials, level)


def bootstrap_ratio(
    numerators: ArrayLike, denominators: ArrayLike, *, shares: bool = False, level: float = 0.95, seed: int = 0
) -> Estimate:
    """A pooled share, sum of numerators by sum of denominators, resampled by question.

    The passages of one question are correlated, so resampling passages would understate the uncertainty.

    Args:
        numerators: One value per question, shape (n,).
        denominators: The same questions, shape (n,).
        shares: Each numerator is a part of its denominator. Then binary outcomes, or equal shares, get Wilson's
            interval over questions: resampling equal values would give an interval of length 0.
        level: Confidence level.
        seed: Of `numpy.random.default_rng`.

    Returns:
        nan if the denominators sum to 0; `count` is the number of questions with a denominator above 0. Equal ratios
        that are no shares have a value without an interval.
    """
    _check(0, 0, level)
    above, below = np.asarray(numerators, float), np.asarray(denominators, float)
    count = int(np.count_nonzero(below))
    if count == 0:
        return Estimate(nan, nan, nan, 0)
    value, parts = float(above.sum() / below.sum()), above[below > 0] / below[below > 0]
    equal = bool(np.ptp(parts) == 0)
    if shares and (equal or (np.isin(parts, (0, 1)).all() and len(np.unique(below[below > 0])) == 1)):
        return _wilson(value, count, level)
    if equal:
        return Estimate(value, nan, nan, count)
    drawn = np.stack([above, below])
    top, bottom = np.concatenate([drawn[:, rows].sum(2) for rows in _resamples(above.size, seed)], axis=1)
    low, high = np.quantile(top[bottom > 0] / bottom[bottom > 0], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), count)


def paired_bootstrap(
    first: ArrayLike, second: ArrayLike, *, shares: bool = False, level: float = 0.95, seed: int = 0
) -> Difference:
    """Compare two defenses on the same questions: mean of second minus first, resampled by question.

    The p-value is (b + 1) / (R + 1) for the b of R resamples on the other side of no difference, doubled; so it is
    never 0, and never smaller than R allows. The ends of the interval are the resampled means at which it would cross
    1 - level.

    Args:
        first: One value per question, shape (n,).
        second: The same questions in the same order; pairs with a nan are left out.
        shares: The values are in [0, 1]. Then equal gains get the interval and p-value of `paired_shares`; otherwise
            equal gains get none, because resampling equal values would give an interval of length 0.
        level: Confidence level.
        seed: Of `numpy.random.default_rng`.

    Raises:
        OptionError: Series of different lengths.
    """
    _check(0, 0, level)
    a, b = np.asarray(first, float), np.asarray(second, float)
    _check_pairs(a.size, b.size)
    gains = (b - a)[~np.isnan(b - a)]
    if gains.size == 0:
        return Difference(nan, nan, nan, nan, 0)
    value = float(gains.mean())
    if np.ptp(gains) == 0:
        return _share_difference(gains, level) if shares else Difference(value, nan, nan, nan, gains.size)
    means = np.sort(np.concatenate([gains[rows].mean(1) for rows in _resamples(gains.size, seed)]))
    most = ceil((1 - level) * (len(means) + 1) / 2) - 2  # resamples on the other side with which p is still below
    low, high = (means[most], means[-1 - most]) if most >= 0 else (-inf, inf)
    crossing = int(min((means <= 0).sum(), (means >= 0).sum()))
    return Difference(value, float(low), float(high), min(1.0, 2 * (crossing + 1) / (len(means) + 1)), gains.size)


def paired_shares(first: Sequence[bool], second: Sequence[bool], *, level: float = 0.95) -> Difference:
    """Compare two defenses on paired yes/no outcomes: the difference of the shares, second minus first.

    The p-value is McNemar's exact one. The interval is Agresti and Min's (2005), which is Wald's after adding half a
    pair to each of the four cells, so that outcomes without differences get an interval of positive length. It is
    widened to contain 0 if the exact test does not exclude 0.

    Raises:
        OptionError: Series of different lengths, or a level outside (0, 1).
    """
    _check(0, 0, level)
    _check_pairs(len(first), len(second))
    if not len(first):
        return Difference(nan, nan, nan, nan, 0)
    gains = np.asarray(second, float) - np.asarray(first, float)
    return _share_difference(gains, level)


def holm(probabilities: Sequence[float]) -> list[float]:
    """p-values of one family of tests, corrected for the family-wise error rate (Holm 1979).

    Returns:
        In the given order; nan stays nan and is not counted.
    """
    values = np.asarray(probabilities, float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    corrected = np.full(len(values), nan)
    corrected[order] = np.maximum.accumulate(np.arange(len(order), 0, -1) * values[order]).clip(max=1)
    return corrected.tolist()


def _exact(gained: int, lost: int) -> float:
    """The two-sided exact p-value of equally likely gains and losses."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def _share_difference(gains: NDArray[np.float64], level: float) -> Difference:
    """Gains in [-1, 1] of equal magnitude, or 0: see `paired_shares`."""
    probability = _exact(int((gains > 0).sum()), int((gains < 0).sum()))
    size = gains.size + 2
    centre = gains.sum() / size
    half = NormalDist().inv_cdf((1 + level) / 2) * sqrt(((np.abs(gains).sum() + 1) / size - centre**2) / size)
    low, high = float(max(-1.0, centre - half)), float(min(1.0, centre + half))
    if probability >= 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(float(gains.mean()), low, high, probability, gains.size)


def _wilson(share: float, trials: int, level: float) -> Estimate:
    """Wilson's interval; for a mean over trials that are not binary it is conservative."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return Estimate(share, low, high, trials)


def _check_pairs(first: int, second: int) -> None:
    if first != second:
        raise OptionError(f"paired values must cover the same questions, got {first} and {second}; align them by id")


def _check(successes: int, trials: int, level: float) -> None:
    if not 0 < level < 1:
        raise OptionError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
    if not 0 <= successes <= trials:
        raise OptionError(f"successes must be between 0 and trials, got {successes} of {trials}")


def _resamples(size: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Blocks of resampled positions, together shape (RESAMPLES, size)."""
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK // size)
    for start in range(0, RESAMPLES, rows):
        yield rng.integers(size, size=(min(rows, RESAMPLES - start), size))
