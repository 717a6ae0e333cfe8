from __future__ import annotations

import numpy as np
import pytest

from unpoison.kernels.comparisons import best_three, mean_of_others, middle


@pytest.mark.parametrize("values", [[3.0], [2.0, 1.0], [5.0, 1.0, 2.0], [4.0, 1.0, 3.0, 2.0]])
def test_the_middle_is_the_median(values: list[float]) -> None:
    assert middle(np.array(values)) == np.median(values)


def test_the_best_three_leave_the_diagonal_out() -> None:
    values = np.array([[9.0, 0.1, 0.3, 0.2], [0.1, 9.0, 0.0, 0.5], [0.3, 0.0, 9.0, 0.4], [0.2, 0.5, 0.4, 9.0]])
    first, second, third = best_three(values)
    assert first.tolist() == [0.3, 0.5, 0.4, 0.5]
    assert second.tolist() == [0.2, 0.1, 0.3, 0.4]
    assert third.tolist() == [0.1, 0.0, 0.0, 0.2]


def test_with_fewer_neighbours_the_highest_counts_again() -> None:
    first, second, third = best_three(np.array([[9.0, 0.4], [0.4, 9.0]]))
    assert first.tolist() == second.tolist() == third.tolist() == [0.4, 0.4]
    assert [values.tolist() for values in best_three(np.ones((1, 1)))] == [[0.0]] * 3


def test_the_mean_leaves_the_diagonal_out() -> None:
    assert mean_of_others(np.array([[9.0, 1.0, 3.0], [1.0, 9.0, 0.0], [3.0, 0.0, 9.0]])).tolist() == [2.0, 0.5, 1.5]
    assert mean_of_others(np.ones((1, 1))).tolist() == [0.0]
