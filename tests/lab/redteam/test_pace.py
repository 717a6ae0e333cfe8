"""Retries and pauses with which a target is called; no test waits on the clock."""

from __future__ import annotations

import pytest

from lab.redteam.conftest import Quick
from unpoison.errors import TargetError
from unpoison_lab.redteam.pace import InterruptedTestError, Pace, RequestLimits


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
