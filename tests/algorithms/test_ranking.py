from __future__ import annotations

import numpy as np
import pytest

from unpoison.algorithms.ranking import best_first


def test_best_first() -> None:
    assert best_first([0.1, 0.9, 0.5]).tolist() == [1, 2, 0]
    assert best_first([]).tolist() == []


def test_ties_go_to_the_better_rank() -> None:
    assert best_first([0.5, 0.9, 0.5, 0.9]).tolist() == [1, 3, 0, 2]


def test_noise_decides_no_tie() -> None:
    noise = np.random.default_rng(0).normal(scale=1e-15, size=50)
    assert best_first(0.7 + noise).tolist() == list(range(50))
    assert best_first([0.1 + 0.2, 0.3, 0.3 + 1e-9]).tolist() == [2, 0, 1]


@pytest.mark.parametrize("count", [0, 1, 3, 49, 50, 60])
def test_the_first_few_are_the_beginning_of_all(count: int) -> None:
    scores = np.round(np.random.default_rng(1).normal(size=50), 1)  # with ties across every cut
    scores[7] = np.nan
    assert best_first(scores, count).tolist() == best_first(scores)[:count].tolist()
