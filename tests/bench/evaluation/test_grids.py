import pytest

from unpoison.bench.evaluation.grids import poison_rate
from unpoison.errors import OptionError


def planted(poisons, k, policy):
    return {"poisons": poisons, "k": k, "policy": policy}


def test_the_same_words_mean_different_numbers_in_each_paper():
    assert poison_rate("poisonedrag:5") == planted(5, 5, "retrieve")
    assert poison_rate("grada:1") == planted(1, 10, "retrieve")
    assert [poison_rate(f"trustrag:{share}")["poisons"] for share in (0, 0.2, 0.4, 0.6, 0.8, 1.0)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("k", "poisons"), [(5, [5, 10, 20, 30]), (2, [2, 4, 8, 12])])
def test_ragdefender_counts_against_gold_and_benign_passages(k, poisons):
    assert [poison_rate(f"ragdefender:{ratio}x{k}") for ratio in (1, 2, 4, 6)] == [
        planted(count, k, "pool") for count in poisons
    ]
    assert poison_rate("ragdefender:2") == planted(10, 5, "pool")


def test_radar_counts_positions_from_one():
    assert poison_rate("radar:48+49+50") == {**planted(3, 50, "replace-at"), "positions": (48, 49, 50)}
    assert poison_rate("radar:3+5/10") == {**planted(2, 10, "replace-at"), "positions": (3, 5)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("grada:6", "texts of GRADA must be a number in"),
        ("ragdefender:0.3", "1.5 poisons; choose a number that gives whole poisons, such as 0.2"),
        ("ragdefender:inf", "no poison rate"),
        ("ragdefender:2x0", "k must be"),
        ("trustrag:0.3", "1.5 poisons"),
        ("trustrag:1.2", "share must be"),
        ("radar:51", "position must be a number in"),
        ("radar:0", "position must be"),
        ("poisonedrag:-1", "poisons must be"),
        ("trustrag", "no poison rate"),
        ("nobody:1", "no poison rate"),
        ("ragdefender:x", "no poison rate"),
    ],
)
def test_rates_that_mean_nothing_are_refused(text, words):
    with pytest.raises(OptionError, match=words):
        poison_rate(text)
