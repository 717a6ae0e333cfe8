"""What is counted instead of timed tells linear work from quadratic work."""

from __future__ import annotations

from effort import effort, linear


def test_the_same_work_is_the_same_effort() -> None:
    assert effort(lambda: sorted(range(9))) == effort(lambda: sorted(range(9)))
    assert effort(lambda: [len("a") for _ in range(100)]) > effort(lambda: [len("a") for _ in range(10)]) > 10


def test_quadratic_work_is_told_from_linear_work() -> None:
    assert linear(lambda size: [len(str(i)) for i in range(size)], 50)
    assert not linear(lambda size: [len(str(i)) for i in range(size) for _ in range(size)], 50)
    assert not linear(lambda size: [len(str(i)) for i in range(size) for _ in range(i)], 50)
