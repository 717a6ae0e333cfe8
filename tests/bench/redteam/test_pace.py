"""Retries, pauses, rates and the budget under which a target is called; no test waits on the clock."""

from __future__ import annotations

import pytest

from bench.redteam.conftest import Quick
from unpoison.bench.redteam.config import RequestLimits
from unpoison.bench.redteam.pace import InterruptedTestError, Pace
from unpoison.errors import TargetError


def test_tries_pauses_and_rates():
    clock, calls = Quick(), []

    def work() -> str:
        calls.append(clock.now())
        if len(calls) < 4:
            raise TargetError("busy", retryable=True)
        return "done"

    assert Pace(RequestLimits(retries=3), clock).call("ask", work) == "done"
    assert calls == [0, 0.5, 1.5, 3.5]
    clock, calls = Quick(), [None] * 9
    pace = Pace(RequestLimits(rate=2), clock)
    for _ in range(5):
        pace.call("ask", clock.now)
    assert clock.now() == 2.0
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


def test_removing_is_never_refused():
    pace = Pace(RequestLimits(budget=1), Quick())
    pace.call("ask", lambda: 1)
    pace.stop()
    with pytest.raises(InterruptedTestError):
        pace.call("ask", lambda: 1)
    assert pace.call("remove", lambda: 2, free=True) == 2
