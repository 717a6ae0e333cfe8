import pytest

from unpoison.errors import OptionError
from unpoison.evaluation.rates import (
    PoisonRate,
    grada_rate,
    poisonedrag_rate,
    radar_rate,
    ragdefender_rate,
    trustrag_rate,
)


def test_the_same_words_mean_different_numbers_in_each_paper():
    assert poisonedrag_rate() == PoisonRate(5, 5, "retrieve")
    assert grada_rate() == PoisonRate(1, 10, "retrieve")
    assert [trustrag_rate(share).injected for share in (0, 0.2, 0.4, 0.6, 0.8, 1.0)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("base", "injected"), [(5, [5, 10, 20, 30]), (2, [2, 4, 8, 12])])
def test_ragdefender_counts_against_gold_and_benign_passages(base, injected):
    rates = [ragdefender_rate(ratio, base) for ratio in (1, 2, 4, 6)]
    assert [rate.injected for rate in rates] == injected
    assert {(rate.k, rate.policy) for rate in rates} == {(base, "pool")}


def test_radar_counts_positions_from_one():
    assert radar_rate([1, 25, 50], 50).positions == (0, 24, 49)
    assert radar_rate([48, 49, 50], 50).positions == (47, 48, 49)
    assert radar_rate([3, 5], 10).to_dict() == {"injected": 2, "k": 10, "policy": "replace_at", "positions": [2, 4]}


@pytest.mark.parametrize(
    ("rate", "arguments"),
    [
        (grada_rate, (6, 10)),
        (ragdefender_rate, (0.3, 5)),
        (trustrag_rate, (0.3,)),
        (trustrag_rate, (1.2,)),
        (radar_rate, ([51], 50)),
        (radar_rate, ([0], 50)),
        (poisonedrag_rate, (-1,)),
        (poisonedrag_rate, (5, 0)),
    ],
)
def test_rates_that_mean_nothing_are_refused(rate, arguments):
    with pytest.raises(OptionError):
        rate(*arguments)
