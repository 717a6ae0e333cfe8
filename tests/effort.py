"""How much Python does for a piece of work, counted instead of timed: the same on any machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def effort(work: Callable[[], object]) -> int:
    """Lines that run and calls of built-in functions while `work` does; twenty times as slow as without counting."""
    count = 0

    def line(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "c_call"

    before, profiler = sys.gettrace(), sys.getprofile()
    sys.settrace(line)
    sys.setprofile(call)
    try:
        work()
    finally:
        sys.settrace(before)
        sys.setprofile(profiler)
    return count


def linear(work: Callable[[int], object], size: int = 2_000) -> bool:
    """Whether eight times the size takes at most twelve times the work: 64 times would be quadratic.

    What runs inside one call of a built-in function is not seen; regular expressions are tried in `test_patterns`.
    """
    work(size)  # what is made once and kept
    return effort(lambda: work(8 * size)) <= 12 * effort(lambda: work(size))
