"""Retries and pauses with which a target is called; no test waits on the clock."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from lab.redteam.conftest import Quick
from unpoison.errors import InputError, TargetError, UnpoisonError
from unpoison_lab.redteam.pace import Clock, InterruptedTestError, Pace, RequestLimits, Wait


def test_tries_and_pauses():
    clock, calls = Quick(), []

    def work() -> str:
        calls.append(clock.now())
        if len(calls) < 4:
            raise TargetError("busy", retryable=True)
        return "done"

    assert Pace(RequestLimits(retries=3), clock).call("ask", work) == "done"
    assert calls == [0, 0.5, 1.5, 3.5]
    with pytest.raises(TargetError):
        Pace(RequestLimits(retries=0), Quick()).call(
            "ask", lambda: (_ for _ in ()).throw(TargetError("x", retryable=True))
        )


def test_a_first_try_that_may_have_planted_makes_a_refusal_worthless():
    errors = iter([TargetError("timeout", retryable=True), TargetError("409", refused=True)])

    def work() -> None:
        raise next(errors)

    with pytest.raises(TargetError) as caught:
        Pace(RequestLimits(), Quick()).call("plant", work, repeat=True)
    assert not caught.value.refused


def test_a_stopped_run_still_retries_removals():
    pace, calls = Pace(RequestLimits(), Quick()), []
    pace.stop()
    with pytest.raises(InterruptedTestError):
        pace.check()

    def work() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise TargetError("busy", retryable=True)
        return 2

    assert pace.call("remove", work, removing=True) == 2


@pytest.mark.parametrize(
    ("section", "name", "least", "most", "default"),
    [
        (RequestLimits, "in_flight", 1, 64, 4),
        (RequestLimits, "timeout", 1e-9, 3600, 30),
        (RequestLimits, "retries", 0, 10, 3),
        (Wait, "seconds", 0, 3600, 5),
        (Wait, "every", 1e-9, 600, 0.25),
    ],
)
def test_limits_have_ranges_and_defaults(section: Any, name: str, least: float, most: float, default: float) -> None:
    assert getattr(section(), name) == default
    for value in (least, most):
        assert getattr(section.read({name: value}, "limits"), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(UnpoisonError, match=name):
            section.read({name: value}, "limits")


def test_looks_come_at_doubled_pauses_up_to_a_quarter_of_the_wait() -> None:
    wait = Wait(seconds=5, every=0.25)
    assert [wait.pause(looks) for looks in (1, 2, 3, 4, 5, 10_000)] == [0.25, 0.5, 1.0, 1.25, 1.25, 1.25]
    assert Wait(seconds=0, every=0.5).pause(7) == 0.5


@pytest.mark.parametrize(("end", "looks"), [(1.0, [0, 0.25, 0.5, 0.75, 1.0]), (0.6, [0, 0.25, 0.5, 0.6]), (0, [0])])
def test_it_is_looked_at_once_and_then_until_the_end(end: float, looks: list[float]) -> None:
    clock = Quick()
    pace = Pace(RequestLimits(), clock)
    assert [clock.now() for _ in pace.poll(Wait(seconds=1, every=0.25), end)] == pytest.approx(looks)


def failing(*errors: Exception) -> tuple[Any, list[int]]:
    """Work that raises these, one after the other, and the tries."""
    tries = list[int]()

    def work() -> str:
        tries.append(1)
        if len(tries) <= len(errors):
            raise errors[len(tries) - 1]
        return "done"

    return work, tries


@pytest.mark.parametrize(
    ("repeat", "refused", "tries"), [(True, False, 2), (True, True, 2), (False, True, 2), (False, False, 1)]
)
def test_what_may_have_had_an_effect_is_tried_again_only_if_that_does_not_matter(
    repeat: bool, refused: bool, tries: int
) -> None:
    work, made = failing(TargetError("busy", retryable=True, refused=refused))
    pace = Pace(RequestLimits(), Quick())
    if tries == 2:
        assert pace.call("plant", work, repeat=repeat) == "done"
    else:
        with pytest.raises(TargetError, match="busy"):
            pace.call("plant", work, repeat=repeat)
    assert len(made) == tries


def test_a_stopped_run_tries_no_question_again() -> None:
    work, tries = failing(TargetError("busy", retryable=True))
    pace = Pace(RequestLimits(), Quick())
    assert not pace.stopped
    pace.stop()
    assert pace.stopped
    with pytest.raises(TargetError, match="busy"):
        pace.call("ask", work)
    assert len(tries) == 1


def test_a_failure_of_the_targets_code_is_named_and_not_tried_again() -> None:
    work, tries = failing(KeyError("passages"))
    with pytest.raises(TargetError, match=r"ask failed with KeyError: .*passages") as caught:
        Pace(RequestLimits(), Quick()).call("ask", work)
    assert (len(tries), caught.value.retryable) == (1, False)
    work, tries = failing(*[TimeoutError()] * 9)
    with pytest.raises(TargetError, match=r"ask was not done within 7 s; raise limits\.timeout"):
        Pace(RequestLimits(timeout=7, retries=2), Quick()).call("ask", work)
    assert len(tries) == 3
    work, tries = failing(InputError("our own"))
    with pytest.raises(InputError, match="our own"):
        Pace(RequestLimits(), Quick()).call("ask", work)


def test_a_wait_ends_when_the_run_is_stopped_and_that_of_a_removal_does_not() -> None:
    waits = list[Any]()

    class Watched(Quick):
        def sleep(self, seconds: float, until: object = None) -> None:
            waits.append((seconds, until is not None))

    pace = Pace(RequestLimits(), Watched())
    pace.sleep(1)
    pace.sleep(2, removing=True)
    assert waits == [(1, True), (2, False)]
    stopped = Event()
    stopped.set()
    Clock().sleep(1e6, stopped)
