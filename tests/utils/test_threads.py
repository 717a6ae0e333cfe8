"""Work on threads, side by side and in order."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from threading import Event, current_thread

import pytest

from unpoison.errors import DeadlineError
from unpoison.utils.threads import MAX_WORKERS, STOP, Workers, parallel_map


@pytest.mark.parametrize("max_concurrency", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(max_concurrency: int) -> None:
    assert list(parallel_map(lambda n: n * n, range(20), max_concurrency)) == [n * n for n in range(20)]


def test_several_are_at_work_at_once_and_one_stays_on_the_callers_thread() -> None:
    barrier = threading.Barrier(3, timeout=60)
    assert len(list(parallel_map(lambda _: barrier.wait(), range(3), 3))) == 3
    assert set(parallel_map(lambda _: threading.get_ident(), range(3), 1)) == {threading.get_ident()}


@pytest.mark.parametrize("max_concurrency", [1, 3])
def test_items_are_taken_as_results_are(max_concurrency: int) -> None:
    taken = []

    def items() -> Iterator[int]:
        for n in range(100):
            taken.append(n)
            yield n

    assert next(parallel_map(lambda n: n, items(), max_concurrency)) == 0
    assert len(taken) <= 2 * max_concurrency


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


def test_runs_are_in_order_on_few_threads() -> None:
    workers = Workers("some-workers", 3)
    assert workers.map(lambda number: 2 * number, range(20)) == list(range(0, 40, 2))
    names = set(workers.map(lambda _: current_thread().name, range(20)))
    assert 1 <= len(names) <= 3
    assert all(name.startswith("some-workers") for name in names)
    assert Workers("w").map(lambda _: current_thread(), [1]) == [current_thread()]
    assert MAX_WORKERS <= 8


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_that_nobody_waits_for_are_not_started(threads: int) -> None:
    stop, begun = Event(), list[int]()

    def run(item: int) -> None:
        begun.append(item)
        stop.set()

    token = STOP.set(stop)
    try:
        with pytest.raises(DeadlineError):
            Workers("test", threads).map(run, range(100))
    finally:
        STOP.reset(token)
    assert len(begun) <= threads


@pytest.mark.parametrize("work", ["compute", "threading.Event().wait"])
def test_an_exit_waits_for_what_computes_and_not_long_for_what_is_deaf(work: str) -> None:
    """A daemon thread that comes back from C++ when the interpreter is gone would abort the process: status 134."""
    program = f"""if True:
        import asyncio, threading
        from rapidfuzz.process import cdist
        from unpoison.utils import threads

        def compute():
            threads.LEAVE = 60
            while True:
                threads.check_stopped()
                cdist(["word " * 200] * 100, ["other " * 200] * 100)

        async def give_up():
            task = asyncio.create_task(threads.on_thread({work}))
            await asyncio.sleep(0.2)
            task.cancel()

        asyncio.run(give_up())
    """
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
