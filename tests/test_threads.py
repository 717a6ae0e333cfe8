"""Threads that nobody has to wait for."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest

from unpoison.threads import Line


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


def test_jobs_are_done_in_order_by_so_many_threads(gate: threading.Event) -> None:
    line, done = Line(1), list[int]()
    line.put(gate.wait)
    futures = [line.put(lambda i=i: done.append(i)) for i in range(20)]
    assert not done
    gate.set()
    for future in futures:
        future.result(30)
    assert done == list(range(20))
    both, two = threading.Barrier(2), Line(2)
    pair = [two.put(lambda: both.wait(30)) for _ in range(2)]
    assert sorted(future.result(30) for future in pair) == [0, 1]


def test_who_is_cancelled_in_line_is_never_begun(gate: threading.Event) -> None:
    line, done = Line(1), list[str]()
    first = line.put(gate.wait)
    given_up = line.put(lambda: done.append("given up"))
    assert given_up.cancel()
    last = line.put(lambda: done.append("last"))
    gate.set()
    last.result(30)
    assert first.done()
    assert done == ["last"]
    with pytest.raises(CancelledError):
        given_up.result()


def test_failures_are_the_futures_and_the_thread_goes_on() -> None:
    line = Line(1)
    failing = line.put(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result(30)
    ending = line.put(lambda: next(iter(())))
    with pytest.raises(RuntimeError, match="StopIteration"):
        ending.result(30)
    assert line.put(lambda: "still here").result(30) == "still here"


def test_what_is_current_for_who_puts_is_current_in_the_job() -> None:
    current = ContextVar("current", default="nothing")
    line = Line(1)
    current.set("here")
    assert line.put(current.get).result(30) == "here"
    current.set("there")
    assert line.put(current.get).result(30) == "there"


def test_a_closed_line_ends_its_threads_behind_the_jobs_that_wait(gate: threading.Event) -> None:
    line = Line(2)
    first = line.put(threading.current_thread)
    waiting = line.put(lambda: gate.wait(30))
    line.close()
    gate.set()
    assert waiting.result(30)
    thread = first.result(30)
    thread.join(30)
    assert not thread.is_alive()
    assert thread.daemon
