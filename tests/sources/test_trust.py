"""Reliability without labels, on sources whose reliability is known because it is simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from unpoison.sources.trust import FRESH, HALF, KNOWN, PRIOR, outcomes, reliability, trust

SEEDS = range(6)


def simulated(rates: list[float], questions: int, seed: int, classes: int = 5, knows: float = 0.8):
    """What each source answers: right ("0") as often as its rate says, else one of the wrong ones; or nothing."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(questions):
        row = {}
        for i, rate in enumerate(rates):
            right = generator.random() < rate
            wrong = str(generator.integers(1, classes))
            row[i] = ("0" if right else wrong) if generator.random() < knows else None
        rows.append(row)
    return rows


@pytest.mark.parametrize("seed", SEEDS)
def test_estimated_rates_follow_the_true_ones(seed: int) -> None:
    rates = list(np.random.default_rng(seed).uniform(0.2, 0.95, 9))
    found = reliability(simulated(rates, 200, seed))
    assert np.corrcoef(rates, [found[i].rate for i in range(9)])[0, 1] >= 0.95
    assert all(0 <= found[i].rate <= 1 and found[i].weight >= 0 for i in range(9))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_coalition_below_half_ends_with_nothing(seed: int) -> None:
    rows = simulated([0.8] * 5 + [0.0] * 4, 200, seed, knows=1.0)
    for row in rows:
        row.update(dict.fromkeys(range(5, 9), "planted"))
    found = reliability(rows)
    assert max(found[i].weight for i in range(5, 9)) < 0.1 * min(found[i].weight for i in range(5))
    assert min(found[i].rate for i in range(5)) > 0.7


def test_a_coalition_above_half_wins() -> None:
    """As the docstring says: agreement alone cannot tell."""
    rows = simulated([0.9] * 4 + [0.0] * 5, 200, 1, knows=1.0)
    for row in rows:
        row.update(dict.fromkeys(range(4, 9), "planted"))
    found = reliability(rows)
    assert min(found[i].rate for i in range(4, 9)) > 0.9
    assert max(found[i].weight for i in range(4)) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_sleepers_win_no_vote_when_they_wake(seed: int) -> None:
    """Three of nine are honest for 100 questions and then give one wrong answer: the rest still outweigh them."""
    rows = simulated([0.85] * 9, 130, seed, knows=1.0)
    for row in rows[100:]:
        row.update(dict.fromkeys(range(3), "planted"))
    results = outcomes(rows)
    said = [result for result in results[100:] if result.get(0) == "agreed"]
    assert said == []
    found = reliability(rows)
    assert max(found[i].rate for i in range(3)) < min(found[i].rate for i in range(3, 9))


def test_outcomes_follow_the_weights_and_a_tie_blames_nobody() -> None:
    rows = [{"a": "1", "b": "1", "c": "2"} for _ in range(20)]
    assert outcomes(rows)[0] == {"a": "agreed", "b": "agreed", "c": "contested"}
    assert outcomes([{"a": "1", "b": "2"}]) == [{"a": "seen", "b": "seen"}]
    heavier = outcomes([*rows, {"a": "1", "c": "2"}])
    assert heavier[-1] == {"a": "agreed", "c": "contested"}


@pytest.mark.parametrize(
    ("level", "questions", "agreed", "contested", "expected"),
    [
        ("blocked", 9, 9, 0, 0.0),
        ("trusted", 0, 0, 9, 1.0),
        ("known", 0, 0, 9, KNOWN),
        ("open", 99, 99, 0, FRESH),
        ("fresh", 99, 99, 0, FRESH),
        ("unknown", 0, 0, 0, FRESH),
        ("seen", 0, 0, 0, FRESH),
        ("seen", HALF, 0, 0, 0.5),
        ("seen", 3 * HALF, 5, 0, 0.75),
        ("seen", 3 * HALF, 0, PRIOR, 0.375),
        ("seen", 3 * HALF, 0, 10**6, FRESH),
    ],
)
def test_the_trust_of_a_level_and_a_record(
    level: Any, questions: int, agreed: int, contested: int, expected: float
) -> None:
    assert trust(level, questions, agreed, contested) == pytest.approx(expected)


def test_rates_by_hand() -> None:
    """Two of three agree in four questions; a question that one alone answers counts for nobody."""
    rows = [*[{"a": "1", "b": "1", "c": "2"}] * 4, {"a": "1", "c": None}, {}]
    found = reliability(rows)
    common = 8 / 12
    assert [found[name].answered for name in "abc"] == [4, 4, 4]
    assert found["a"].rate == pytest.approx((4 + PRIOR * common) / (4 + PRIOR))
    assert found["c"].rate == pytest.approx(PRIOR * common / (4 + PRIOR))
    assert found["a"].weight == pytest.approx(2 * found["a"].rate - 1)
    assert found["c"].weight == max(0.0, 2 * found["c"].rate - 1)
    assert reliability([]) == {}
    assert reliability([{"a": "1"}])["a"] == (0.5, 0.0, 0)


def test_answers_that_tie_share_the_vote() -> None:
    found = reliability([{"a": "1", "b": "2"}] * 6)
    assert found["a"] == found["b"]
    assert found["a"].rate == pytest.approx(0.5)
    assert outcomes([{"a": "1", "b": "2", "c": None}]) == [{"a": "seen", "b": "seen", "c": "seen"}]
