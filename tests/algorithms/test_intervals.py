import math
from dataclasses import asdict

import numpy as np
import pytest

from unpoison.algorithms.intervals import bootstrap_ratio, holm, paired_bootstrap, paired_shares, wilson
from unpoison.errors import OptionError


def test_wilson_agrees_with_the_textbook():
    estimate = wilson(14, 100)
    assert (estimate.value, estimate.count) == (0.14, 100)
    assert (estimate.low, estimate.high) == pytest.approx((0.08526, 0.22138), abs=1e-5)


@pytest.mark.parametrize(("successes", "trials", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 0), (1, 2, 95)])
def test_impossible_counts_and_levels_are_refused(successes, trials, level):
    with pytest.raises(OptionError):
        wilson(successes, trials, level)


def test_an_estimate_says_what_it_counts_and_what_it_cannot():
    assert wilson(3, 7).hits == 3
    assert wilson(3, 7).to_dict() == {**asdict(wilson(3, 7))}
    undefined = wilson(0, 0)
    assert (undefined.defined, undefined.hits) == (False, 0)
    assert undefined.to_dict() == {"value": None, "low": None, "high": None, "count": 0}


def test_a_ratio_is_pooled_not_averaged():
    ratio = bootstrap_ratio([1, 0, 0], [1, 9, 0])
    assert (ratio.value, ratio.count) == (0.1, 2)
    assert ratio.low <= 0.1 <= ratio.high
    assert math.isnan(bootstrap_ratio([0, 0], [0, 0]).value)


def test_a_paired_difference_is_surer_than_two_separate_ones():
    rng = np.random.default_rng(5)
    hard = rng.random(200)  # what both defenses find hard
    difference = paired_bootstrap(hard, hard + 0.05 + rng.normal(0, 0.01, 200))
    assert difference.value == pytest.approx(0.05, abs=0.005)
    assert 0.04 < difference.low < difference.high < 0.06
    assert difference.probability == 2 / 2001, "(b + 1) / (R + 1), doubled: a bootstrap never proves a p of 0"


def test_paired_values_must_pair():
    with pytest.raises(OptionError, match="same questions"):
        paired_bootstrap([1, 2], [1])
    with pytest.raises(OptionError, match="same questions"):
        paired_shares([True], [])
    assert paired_bootstrap([1.0, math.nan], [2.0, 2.0]).count == 1
    assert math.isnan(paired_bootstrap([], []).value)


def test_shares_that_are_all_equal_are_not_certain():
    """Eight of eight clean passages kept on each of ten questions is no proof that nothing is ever dropped."""
    for kept, whole in (([8] * 10, [8] * 10), ([8, 4] * 5, [8, 4] * 5), ([0] * 10, [8] * 10), ([4] * 10, [8] * 10)):
        ratio = bootstrap_ratio(kept, whole, shares=True)
        assert ratio.low < ratio.high
        assert ratio.low <= ratio.value <= ratio.high
    assert bootstrap_ratio([1, 0, 1], [1, 1, 1], shares=True) == wilson(2, 3)


@pytest.mark.parametrize("values", [[11.0], [11.0] * 10])
def test_numbers_that_are_all_equal_have_no_interval_and_no_p_value(values):
    """Three calls for each of ten questions is no proof that the next one takes three."""
    ratio = bootstrap_ratio(values, [1] * len(values))
    assert (ratio.value, ratio.count) == (11, len(values))
    assert math.isnan(ratio.low) and math.isnan(ratio.high)
    difference = paired_bootstrap(values, [value + 2 for value in values])
    assert (difference.value, difference.count) == (2, len(values))
    assert all(map(math.isnan, (difference.low, difference.high, difference.probability)))


def test_interval_and_star_never_disagree():
    """One computation: the interval leaves out 0 exactly where p is below 0.05."""
    for count in (10, 46, 100):
        for gained in range(11):
            for lost in range(11 - gained if count == 10 else 11):
                second = [True] * gained + [False] * (count - gained)
                first = [False] * (count - lost) + [True] * lost
                for level in (0.8, 0.95, 0.999):
                    found = paired_shares(first, second, level=level)
                    assert (found.probability < 1 - level) is not (found.low <= 0 <= found.high)
    rng = np.random.default_rng(0)
    significant = 0
    for _ in range(400):
        size = int(rng.integers(2, 60))
        gains = rng.choice([-1, -0.5, 0, 0.5, 1], size, p=[0.1, 0.1, 0.4, 0.2, 0.2])
        found = paired_bootstrap(np.zeros(size), gains, shares=True)
        significant += found.probability < 0.05
        assert (found.probability < 0.05) is not (found.low <= 0 <= found.high)
    assert 50 < significant < 350


def test_holm_is_the_textbooks():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
    assert math.isnan(holm([math.nan, 0.01])[0])
    assert holm([math.nan, 0.01])[1] == 0.01


def test_all_of_it_agrees_with_scipy():
    from scipy.stats import binomtest, bootstrap

    rng = np.random.default_rng(3)
    for yes, trials in ((0, 5), (3, 40), (40, 40), (17, 200)):
        ends = binomtest(yes, trials).proportion_ci(0.9, "wilson")
        assert (wilson(yes, trials, 0.9).low, wilson(yes, trials, 0.9).high) == pytest.approx(ends, abs=1e-9)
    first, second = rng.random((2, 60)) < [[0.4], [0.7]]
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    assert paired_shares(first, second).probability == pytest.approx(binomtest(gained, gained + lost).pvalue, abs=1e-12)
    above = rng.integers(0, 4, 50)
    below = above + rng.integers(1, 3, 50)
    drawn = bootstrap(
        (above, below),
        lambda a, b, axis: a.sum(axis) / b.sum(axis),
        paired=True,
        n_resamples=2000,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    ours = bootstrap_ratio(above, below)
    assert (ours.low, ours.high) == pytest.approx((drawn.low, drawn.high), abs=1e-9)


def test_the_interval_of_paired_shares_is_agrestis_and_mins():
    """Four of ten gained, one lost, and half a pair added to each cell: 3 / 12, and the sum of squares 6 / 12."""
    found = paired_shares([False] * 4 + [True] + [False] * 5, [True] * 4 + [False] + [False] * 5)
    half = 1.959964 * math.sqrt((6 / 12 - (3 / 12) ** 2) / 12)
    assert (found.low, found.high) == pytest.approx((0.25 - half, 0.25 + half), abs=1e-6)
    assert (found.value, found.probability, found.count) == (pytest.approx(0.3), pytest.approx(0.375), 10)
    lost = paired_shares([True] * 4 + [False] + [False] * 5, [False] * 4 + [True] + [False] * 5)
    assert (lost.low, lost.high) == pytest.approx((-found.high, -found.low))


def test_an_interval_of_shares_ends_at_one_and_holds_zero_where_the_test_does():
    every = paired_shares([False] * 3, [True] * 3)
    assert (every.low, every.high, every.probability) == (0.0, 1.0, pytest.approx(0.25))
    many = paired_shares([False] * 40, [True] * 40)
    assert 0.8 < many.low < many.high == 1.0


@pytest.mark.parametrize(
    "compared", [paired_bootstrap([], []), paired_shares([], []), paired_bootstrap([math.nan], [1.0])]
)
def test_of_no_pair_nothing_is_known(compared):
    assert compared.count == 0
    assert all(map(math.isnan, (compared.value, compared.low, compared.high, compared.probability)))
    assert compared.to_dict() == {"value": None, "low": None, "high": None, "probability": None, "count": 0}


@pytest.mark.parametrize(("successes", "low", "high"), [(0, 0.0, 0.43448), (5, 0.56552, 1.0)])
def test_a_share_of_all_or_none_ends_where_shares_end(successes, low, high):
    estimate = wilson(successes, 5)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-5)
    assert estimate.low == 0 or estimate.high == 1


def test_a_bootstrap_is_the_same_for_the_same_seed_whatever_its_blocks(monkeypatch):
    above, below = [1, 0, 2, 1, 0, 3], [2, 1, 3, 1, 1, 4]
    whole = bootstrap_ratio(above, below), paired_bootstrap(above, below)
    assert whole[0] != bootstrap_ratio(above, below, seed=1)
    monkeypatch.setattr("unpoison.algorithms.intervals._BLOCK", 6 * 700)  # 700, 700 and 600 of 2,000
    assert (bootstrap_ratio(above, below), paired_bootstrap(above, below)) == whole
    narrow, wide = (bootstrap_ratio(above, below, level=level) for level in (0.5, 0.95))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_equal_shares_of_unequal_wholes_are_resampled_and_zeros_among_ones_are_wilsons():
    unequal = bootstrap_ratio([1, 0, 3], [1, 1, 3], shares=True)
    assert unequal.value == 0.8 and unequal != wilson(2, 3)
    assert bootstrap_ratio([2, 0, 2], [2, 2, 2], shares=True) == wilson(2, 3)
    assert bootstrap_ratio([1, 0, 1], [1, 1, 1]) != wilson(2, 3)


def test_who_is_never_below_is_no_surer_than_the_resamples_allow():
    found = paired_bootstrap([0, 0, 0, 0], [1, 2, 1, 2], level=0.9999)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.to_dict()["low"] is None
