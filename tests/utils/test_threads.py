"""Work on threads: side by side in order, and such as nobody has to wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest

from unpoison.utils.threads import WorkQueue, parallel_map


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


def test_jobs_are_done_in_order_by_so_many_threads(gate: threading.Event) -> None:
    line, done = WorkQueue(1), list[int]()
    line.put(gate.wait)
    futures = [line.put(lambda i=i: done.append(i)) for i in range(20)]
    assert not done
    gate.set()
    for future in futures:
        future.result(30)
    assert done == list(range(20))
    both, two = threading.Barrier(2), WorkQueue(2)
    pair = [two.put(lambda: both.wait(30)) for _ in range(2)]
    assert sorted(future.result(30) for future in pair) == [0, 1]


def test_who_is_cancelled_in_line_is_never_begun(gate: threading.Event) -> None:
    line, done = WorkQueue(1), list[str]()
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
    line = WorkQueue(1)
    failing = line.put(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result(30)
    ending = line.put(lambda: next(iter(())))
    with pytest.raises(RuntimeError, match="StopIteration"):
        ending.result(30)
    assert line.put(lambda: "still here").result(30) == "still here"


def test_what_is_current_for_who_puts_is_current_in_the_job() -> None:
    current = ContextVar("current", default="nothing")
    line = WorkQueue(1)
    current.set("here")
    assert line.put(current.get).result(30) == "here"
    current.set("there")
    assert line.put(current.get).result(30) == "there"


def test_a_closed_line_ends_its_threads_behind_the_jobs_that_wait(gate: threading.Event) -> None:
    line = WorkQueue(2)
    first = line.put(threading.current_thread)
    waiting = line.put(lambda: gate.wait(30))
    line.close()
    gate.set()
    assert waiting.result(30)
    thread = first.result(30)
    thread.join(30)
    assert not thread.is_alive()
    assert thread.daemon


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(at_once: int) -> None:
    assert list(parallel_map(lambda n: n * n, range(20), at_once)) == [n * n for n in range(20)]


def test_several_are_at_work_at_once_and_one_stays_on_the_callers_thread() -> None:
    barrier = threading.Barrier(3, timeout=60)
    assert len(list(parallel_map(lambda _: barrier.wait(), range(3), 3))) == 3
    assert set(parallel_map(lambda _: threading.get_ident(), range(3), 1)) == {threading.get_ident()}


@pytest.mark.parametrize("at_once", [1, 3])
def test_items_are_taken_as_results_are(at_once: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for n in range(100):
            taken.append(n)
            yield n

    assert next(parallel_map(lambda n: n, items(), at_once)) == 0
    assert len(taken) <= 2 * at_once


def test_what_has_not_begun_when_one_fails_never_begins() -> None:
    begun, may_end = [], threading.Event()

    def work(n: int) -> int:
        begun.append(n)
        if n == 0:
            raise ValueError("the first")
        may_end.wait(60)
        return n

    with pytest.raises(ValueError, match="the first"):
        list(parallel_map(work, range(50), 2))
    may_end.set()
    assert len(begun) <= 5
