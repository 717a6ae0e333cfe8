"""How sure a measured share or mean is, and whether two defenses differ.

Every interval is two-sided. Undefined values are nan, never 0. Randomness comes from the given seed only. The interval
and the p-value of a difference are one computation: the interval leaves out 0 exactly where p is below 1 - level (for
levels up to 0.999).

Tests compare all of it with `scipy.stats`, which takes a second to import, wants whole counts for Wilson's interval,
and keeps resamples that have no denominator.
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
    "Difference",
    "Estimate",
    "bootstrap_ratio",
    "holm",
    "paired_bootstrap",
    "paired_shares",
    "wilson",
]

RESAMPLES = 2000
"""Bootstrap samples of an interval."""
_BLOCK = 2_000_000
"""Indices drawn at once, so that a bootstrap over any number of questions stays within some 50 MB."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval.

    Attributes:
        value: The point estimate, nan where it is undefined.
        low, high: The ends of the interval, nan where it is undefined.
        count: How many questions (or trials) stand behind it.
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
        """How many said yes, where the value is a share of the count; 0 where it is undefined."""
        return round(self.value * self.count) if self.defined else 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; None stands for what is undefined."""
        return _finite_row(self)


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better the second of two paired series is.

    Attributes:
        value: Mean of second minus first.
        low, high: The ends of the interval, nan where the pairs say nothing of how sure the value is.
        probability: The two-sided p-value of no difference, by the test that the function names; nan likewise.
        count: Pairs in which both values are defined.
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
    """Wilson's score interval for a share (Wilson 1927); stays within [0, 1] and is sound for few trials.

    Raises:
        OptionError: A level outside (0, 1), or more successes than trials.
    """
    _check(successes, trials, level)
    if trials == 0:
        return Estimate(nan, nan, nan, 0)
    return _wilson(successes / trials, trials, level)


def bootstrap_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    *,
    shares: bool = False,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """A pooled share, sum of numerators by sum of denominators, resampled by question.

    Passages of one question stand or fall together, so resampling passages would understate the uncertainty.

    Args:
        numerators: One value per question, shape (n,).
        denominators: The same questions, shape (n,).
        shares: Each numerator is a part of its denominator. Then questions that all say yes or no, or that all have
            the same share, get Wilson's interval over questions: resampling equal values would call them certain.
        level: Confidence level.
        resamples: Bootstrap resamples.
        seed: Of `numpy.random.default_rng`.

    Returns:
        nan where the denominators sum to 0; `count` is the number of questions with a denominator above 0. Ratios that
        are no shares and all equal have a value without an interval: resampling them would call it certain.
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
    top, bottom = np.concatenate([drawn[:, rows].sum(2) for rows in _resamples(above.size, resamples, seed)], axis=1)
    low, high = np.quantile(top[bottom > 0] / bottom[bottom > 0], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value, float(low), float(high), count)


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    shares: bool = False,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Compare two defenses on the same questions: mean of second minus first, resampled by question.

    The p-value is (b + 1) / (R + 1) for the b of R resamples on the other side of no difference, doubled; so it is
    never 0, and never smaller than R allows. The ends of the interval are the resampled means at which it would cross
    1 - level.

    Args:
        first: One value per question, shape (n,).
        second: The same questions in the same order; pairs with a nan are left out.
        shares: The values lie in [0, 1]. Then gains that are all equal get interval and p-value of `paired_shares`;
            others that are all equal get none, for resampling equal values would call them certain.
        level: Confidence level.
        resamples: Bootstrap resamples.
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
    means = np.sort(np.concatenate([gains[rows].mean(1) for rows in _resamples(gains.size, resamples, seed)]))
    most = ceil((1 - level) * (len(means) + 1) / 2) - 2  # resamples on the other side with which p is still below
    low, high = (means[most], means[-1 - most]) if most >= 0 else (-inf, inf)
    crossing = int(min((means <= 0).sum(), (means >= 0).sum()))
    return Difference(value, float(low), float(high), min(1.0, 2 * (crossing + 1) / (len(means) + 1)), gains.size)


def paired_shares(first: Sequence[bool], second: Sequence[bool], *, level: float = 0.95) -> Difference:
    """Compare two defenses on paired yes/no outcomes: the difference of the shares, second minus first.

    The p-value is McNemar's exact one. The interval holds every difference that is not excluded: 0 by that test, any
    other by Agresti and Min's (2005), which is Wald's after half a pair is added to each of the four cells, so that
    outcomes that never differ are not called certain to be equal. It excludes 0 wherever the exact test does.

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
    """p-values of one family of tests, corrected so that one false alarm in all stays as likely as in one (Holm 1979).

    Returns:
        In the order given; nan stays nan and is not counted.
    """
    values = np.asarray(probabilities, float)
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]
    corrected = np.full(len(values), nan)
    corrected[order] = np.maximum.accumulate(np.arange(len(order), 0, -1) * values[order]).clip(max=1)
    return corrected.tolist()


def _exact(gained: int, lost: int) -> float:
    """The two-sided exact p-value of as many gains as losses."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def _share_difference(gains: NDArray[np.float64], level: float) -> Difference:
    """Gains in [-1, 1] that are equal but for their sign, or 0: see `paired_shares`."""
    probability = _exact(int((gains > 0).sum()), int((gains < 0).sum()))
    size = gains.size + 2
    centre = gains.sum() / size
    half = NormalDist().inv_cdf((1 + level) / 2) * sqrt(((np.abs(gains).sum() + 1) / size - centre**2) / size)
    low, high = float(max(-1.0, centre - half)), float(min(1.0, centre + half))
    if probability >= 1 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    return Difference(float(gains.mean()), low, high, probability, gains.size)


def _wilson(share: float, trials: int, level: float) -> Estimate:
    """Wilson's interval; the share may be a mean over trials that are no yes or no, for which it is too long."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return Estimate(share, low, high, trials)


def _check_pairs(first: int, second: int) -> None:
    if first != second:
        raise OptionError(
            f"paired values must cover the same questions, got {first} and {second}; align them by question id"
        )


def _check(successes: int, trials: int, level: float) -> None:
    if not 0 < level < 1:
        raise OptionError(f"level must be between 0 and 1, got {level}; 0.95 is usual")
    if not 0 <= successes <= trials:
        raise OptionError(f"successes must be between 0 and trials, got {successes} of {trials}")


def _resamples(size: int, resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Blocks of resampled positions, together shape (resamples, size)."""
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK // size)
    for start in range(0, resamples, rows):
        yield rng.integers(size, size=(min(rows, resamples - start), size))
