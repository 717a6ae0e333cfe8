"""Blocking calls on threads: side by side in order, or so that nobody has to wait for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

__all__ = ["WorkQueue", "on_thread", "parallel_map", "start_thread"]

S = TypeVar("S")
T = TypeVar("T")


class WorkQueue:
    """Threads that take jobs from one line, first come, first served.

    The next job begins when the last one ends, without anybody having to be told; and putting a job into the line waits
    for nothing, whereas the start of a thread waits until that thread runs, behind all those that compute. The threads
    are daemons, as those of `start_thread`.

    Args:
        threads: How many jobs are done side by side.
    """

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = threads
        for _ in range(threads):
            Thread(target=self._work, name="unpoison", daemon=True).start()

    def put(self, work: Callable[[], T]) -> Future[T]:
        """Have `work` done. A job that is cancelled while it waits is never begun."""
        future: Future[T] = Future()
        context = copy_context()  # what is current here, such as a trace, is current there

        def job() -> None:
            if future.set_running_or_notify_cancel():
                context.run(_settle, future, work)

        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Let the threads end, behind the jobs that wait. Nobody waits for them."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


def parallel_map(work: Callable[[S], T], items: Iterable[S], at_once: int, name: str = "unpoison") -> Iterator[T]:
    """Do the work on every item, `at_once` side by side, and yield the results in the order of the items.

    At most `2 * at_once` items are taken ahead of their results. When something is raised, or the caller stops, what
    has not begun never begins. One at a time is done on the caller's thread.

    Args:
        work: What is done.
        items: On what; taken as results are.
        at_once: Threads, at least 1.
        name: What the threads are called.
    """
    if at_once == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(at_once, thread_name_prefix=name)
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) == 2 * at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def start_thread(work: Callable[[], T]) -> Future[T]:
    """Start `work` on a thread of its own.

    The thread is a daemon: a call that is abandoned at a deadline delays neither the caller nor the interpreter's
    exit, as the threads of an executor would.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled, so setting its result is safe
    # What is current here, such as a trace, is current there.
    Thread(target=copy_context().run, args=(_settle, future, work), name="unpoison", daemon=True).start()
    return future


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    try:
        result = work()
    except StopIteration as error:  # cannot be passed on by futures, as by generators (PEP 479)
        future.set_exception(RuntimeError(f"StopIteration: {error}"))
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


async def on_thread(work: Callable[[], T]) -> T:
    """Await `work` on a thread of its own; a cancelled wait abandons it."""
    return await asyncio.wrap_future(start_thread(work))
