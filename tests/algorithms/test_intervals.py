import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.algorithms import intervals
from unpoison.algorithms.intervals import bootstrap_ratio, holm, mcnemar_exact, paired_bootstrap, paired_shares, wilson
from unpoison.errors import OptionError


def test_wilson_agrees_with_the_textbook():
    estimate = wilson(14, 100)
    assert (estimate.value, estimate.count) == (0.14, 100)
    assert (estimate.low, estimate.high) == pytest.approx((0.08526, 0.22138), abs=1e-5)


def test_wilson_never_leaves_the_unit_interval_and_is_exact_at_its_ends():
    assert wilson(0, 10).low == 0.0
    assert wilson(0, 10).high == pytest.approx(0.27753, abs=1e-5)
    assert wilson(10, 10).high == 1.0
    assert wilson(10, 10).low == pytest.approx(1 - 0.27753, abs=1e-5)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_value(pair):
    interval = wilson(*pair)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_no_trials_leave_the_share_undefined():
    assert all(math.isnan(end) for end in (wilson(0, 0).value, wilson(0, 0).low, wilson(0, 0).high))


@pytest.mark.parametrize(("successes", "trials", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 0), (1, 2, 95)])
def test_impossible_counts_and_levels_are_refused(successes, trials, level):
    with pytest.raises(OptionError):
        wilson(successes, trials, level)


def test_a_bootstrap_is_the_same_for_the_same_seed_whatever_its_block(monkeypatch):
    values = np.random.default_rng(1).random(50)
    ones = np.ones(50)
    first = bootstrap_ratio(values, ones, seed=3)
    monkeypatch.setattr(intervals, "_BLOCK", 120)
    assert bootstrap_ratio(values, ones, seed=3) == first
    assert bootstrap_ratio(values, ones, seed=4) != first


def test_a_bootstrap_of_the_mean_comes_near_the_normal_interval():
    values = np.random.default_rng(0).normal(2.0, 1.0, 400)
    ratio = bootstrap_ratio(values, np.ones(400))
    half = 1.96 * values.std() / 20
    assert (ratio.low, ratio.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.02)


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
        mcnemar_exact([True], [])
    assert paired_bootstrap([1.0, math.nan], [2.0, 2.0]).count == 1
    assert math.isnan(paired_bootstrap([], []).value)


def test_mcnemar_counts_only_the_pairs_that_disagree():
    first = [True] * 1 + [False] * 9 + [True] * 30
    second = [False] * 1 + [True] * 9 + [True] * 30
    assert mcnemar_exact(first, second) == pytest.approx(22 / 1024)
    assert mcnemar_exact(first, first) == 1.0
    assert mcnemar_exact([True, False], [False, True]) == 1.0


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


@pytest.mark.parametrize("pairs", [1, 2, 3, 10, 40])
def test_equal_gains_of_shares_are_surer_the_more_there_are(pairs):
    difference = paired_bootstrap([0.25] * pairs, [0.75] * pairs, shares=True)
    assert difference.low < difference.value < difference.high
    assert (difference.probability < 0.05) is (difference.low > 0) is (pairs > 5)


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


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99, 0.9995])
def test_interval_and_p_value_agree_at_every_level(level):
    rng = np.random.default_rng(1)
    for _ in range(60):
        gains = rng.normal(0.4, 1, 30)
        found = paired_bootstrap(np.zeros(30), gains, level=level)
        assert (found.probability < 1 - level) is not (found.low <= 0 <= found.high)


def test_paired_shares_agree_with_the_textbook():
    """Agresti and Min 2005: the interval of 150 approvals to 86 of 944, with half a pair in each cell."""
    first = [True] * 150 + [False] * 86 + [True] * 794
    second = [False] * 150 + [True] * 86 + [True] * 794
    difference = paired_shares(first, second)
    assert difference.value == pytest.approx(-64 / 1030)
    assert (difference.low, difference.high) == pytest.approx((-0.0910, -0.0330), abs=5e-4)
    assert difference.probability == mcnemar_exact(first, second)
    same = paired_shares([True] * 20, [True] * 20)
    assert same.low < 0 < same.high
    assert same.probability == 1


def test_holm_is_the_textbooks():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
    assert math.isnan(holm([math.nan, 0.01])[0])
    assert holm([math.nan, 0.01])[1] == 0.01


def test_ends_stay_within_what_is_possible():
    assert paired_bootstrap([0, 0], [1, -1]).probability == 1.0, "doubled, both halves hold what is equal"
    alone, lost = paired_shares([False], [True]), paired_shares([True], [False])
    assert (alone.low < 0, alone.high) == (True, 1.0)
    assert (lost.low, lost.high > 0) == (-1.0, True)


def test_all_of_it_agrees_with_scipy():
    from scipy.stats import binomtest, bootstrap

    rng = np.random.default_rng(3)
    for yes, trials in ((0, 5), (3, 40), (40, 40), (17, 200)):
        ends = binomtest(yes, trials).proportion_ci(0.9, "wilson")
        assert (wilson(yes, trials, 0.9).low, wilson(yes, trials, 0.9).high) == pytest.approx(ends, abs=1e-9)
    first, second = rng.random((2, 60)) < [[0.4], [0.7]]
    gained, lost = int((second & ~first).sum()), int((first & ~second).sum())
    assert mcnemar_exact(first, second) == pytest.approx(binomtest(gained, gained + lost).pvalue, abs=1e-12)
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
