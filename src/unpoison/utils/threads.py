"""Blocking calls on threads: an ordered parallel map, the runs of a model, and calls that can be abandoned."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import Any, TypeVar

from unpoison.errors import DeadlineError

__all__ = [
    "STOP", "Workers", "check_stopped", "cores", "on_thread", "parallel_map", "settle", "start_thread", "wait_for",
]  # fmt: skip

S = TypeVar("S")
T = TypeVar("T")


STOP: ContextVar[Event | None] = ContextVar("stop", default=None)
"""Stops the current computation when it is set."""


def check_stopped(stop: Event | None = None) -> None:
    """Stop a long computation whose caller is gone; called between its steps.

    Args:
        stop: The caller's `STOP`, where another thread computes.

    Raises:
        DeadlineError: The caller no longer waits for the result.
    """
    event = stop or STOP.get()
    if event is not None and event.is_set():
        raise DeadlineError("nobody waits for this result any more; it is not computed to its end")


def parallel_map(
    work: Callable[[S], T], items: Iterable[S], max_concurrency: int, name: str = "unpoison"
) -> Iterator[T]:
    """Map `work` over the items on `max_concurrency` threads, and yield the results in order.

    At most `2 * max_concurrency` items are read ahead. After an error, or when the caller stops, no further item
    starts. With `max_concurrency=1` the caller's thread is used.

    Args:
        work: Called with each item.
        items: Read lazily.
        max_concurrency: Number of threads, at least 1.
        name: Prefix of the threads' names.
    """
    if max_concurrency == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(max_concurrency, thread_name_prefix=name)
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) == 2 * max_concurrency:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


MAX_WORKERS = 8
"""Threads of one model, at most."""


class Workers:
    """Threads for the runs of one graph, started when two runs are due at once; those of a parent process are left."""

    def __init__(self, name: str, threads: int | None = None) -> None:
        self._name, self._threads = name, threads or min(cores(), MAX_WORKERS)
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def map(self, run: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """The results, in order.

        Raises:
            DeadlineError: The caller no longer waits.
        """
        stop = STOP.get()

        def checked(item: S) -> T:
            check_stopped(stop)
            return run(item)

        if len(items) < 2 or self._threads == 1:
            return [checked(item) for item in items]
        if self._pools.get(os.getpid()) is None:
            self._pools = {os.getpid(): ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)}
        return list(self._pools[os.getpid()].map(checked, items))


def start_thread(work: Callable[[], T]) -> Future[T]:
    """Start `work` on a new thread.

    The thread is a daemon, so that an abandoned call delays neither the caller nor, by more than `LEAVE`, the
    interpreter's exit, as a thread of an executor would.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # it cannot be cancelled from here on
    # Context variables, such as a trace, are inherited.
    Thread(target=copy_context().run, args=(settle, future, work), name="unpoison", daemon=True).start()
    return future


_RUNNING: dict[Future[Any], Event | None] = {}
"""What runs on threads that are daemons, with what stops it."""

LEAVE = 1.0
"""Seconds that the interpreter's exit waits for computations that are told to stop."""


@atexit.register
def stop_running() -> None:
    """Stop what still runs: a daemon thread that wakes inside a C++ library at the exit aborts the process."""
    for stop in list(_RUNNING.values()):
        if stop is not None:
            stop.set()
    wait(list(_RUNNING), LEAVE)


def settle(future: Future[T], work: Callable[[], T]) -> None:
    """Run the work and set the future's result or exception."""
    _RUNNING[future] = STOP.get()
    try:
        result = work()
    except StopIteration as error:  # cannot be passed on by futures, as by generators (PEP 479)
        future.set_exception(RuntimeError(f"StopIteration: {error}"))
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        del _RUNNING[future]


async def on_thread(work: Callable[[], T]) -> T:
    """Await `work` on a new thread; cancelling abandons it, and stops it at its next `check_stopped`."""
    stop = Event()
    context = copy_context()
    context.run(STOP.set, stop)
    return await wait_for(context.run(start_thread, work), stop)


async def wait_for(future: Future[T], stop: Event) -> T:
    """Await a result; cancelling sets the `STOP` of whoever computes it."""
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        stop.set()
        raise
