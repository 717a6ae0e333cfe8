"""The order of questions: neighbours one after the other, each unit once, the same every time."""

from __future__ import annotations

import numpy as np

from unpoison.scan.order import order_by_company


def towns(count: int, size: int) -> np.ndarray:
    """Groups of units that stand near each other, their members far apart in the documents' order."""
    members = np.arange(count * size).reshape(size, count)
    near = np.empty((count * size, size - 1), np.int32)
    for town in range(count):
        for unit in members[:, town]:
            near[unit] = [other for other in members[:, town] if other != unit]
    return near


def test_neighbours_are_asked_one_after_the_other() -> None:
    order = order_by_company(towns(30, 5), range(150), remembered=10)
    assert sorted(order) == list(range(150))
    for start in range(0, 150, 5):
        assert len({unit % 30 for unit in order[start : start + 5]}) == 1


def test_only_what_is_asked_is_ordered_and_always_alike() -> None:
    near, asking = towns(30, 5), [3, 33, 63, 4, 5]
    assert sorted(order_by_company(near, asking)) == sorted(asking)
    assert order_by_company(near, asking) == order_by_company(near, asking)


def test_units_without_neighbours_keep_their_order() -> None:
    assert order_by_company(np.full((5, 9), -1, np.int32), [4, 0, 2]) == [4, 0, 2]
    assert order_by_company(np.zeros((0, 9), np.int32), []) == []


def test_a_unit_that_is_near_all_others_changes_nothing() -> None:
    near = np.zeros((500, 2), np.int32)
    near[:, 1] = -1
    near[0] = -1
    assert sorted(order_by_company(near, range(500), remembered=3)) == list(range(500))
