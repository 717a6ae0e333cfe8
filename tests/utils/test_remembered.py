from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from unpoison.utils import remembered
from unpoison.utils.remembered import Remembered


def lengths(seen: list[list[str]]) -> Remembered:
    def judge(texts: Sequence[str]) -> np.ndarray:
        seen.append(list(texts))
        return np.array([float(len(text)) for text in texts])

    return Remembered(judge)


def test_no_text_is_looked_at_twice_and_the_order_is_the_callers() -> None:
    seen: list[list[str]] = []
    known = lengths(seen)
    assert known(["aa", "b"]).tolist() == [2, 1]
    assert known(["ccc", "b", "aa", "dddd"]).tolist() == [3, 1, 2, 4]
    assert known(["b", "b"]).tolist() == [1, 1]
    assert known(["eeeee", "b", "eeeee"]).tolist() == [5, 1, 5]
    assert known([]).tolist() == []
    assert seen == [["aa", "b"], ["ccc", "dddd"], ["eeeee"]]


def test_it_is_bounded_and_can_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST_TEXTS", 2)
    seen: list[list[str]] = []
    known = lengths(seen)
    known(["a", "b", "c"])
    known(["c"])
    assert len(seen) == 1
    known(["a"])
    assert seen[1:] == [["a"]]
    known.clear()
    known(["a"])
    assert len(seen) == 3
