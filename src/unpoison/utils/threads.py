"""Blocking calls on threads: side by side in order, or so that nobody has to wait for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import TypeVar

from unpoison.errors import DeadlineError

__all__ = ["STOP", "check_stopped", "on_thread", "parallel_map", "settle", "start_thread"]

S = TypeVar("S")
T = TypeVar("T")


STOP: ContextVar[Event | None] = ContextVar("stop", default=None)
"""Set by whoever computes on a thread and may want to stop it; the event says when."""


def check_stopped() -> None:
    """To be called between two pieces of a long computation.

    Raises:
        DeadlineError: Nobody waits for its result any more.
    """
    event = STOP.get()
    if event is not None and event.is_set():
        raise DeadlineError("nobody waits for this result any more; it is not computed to its end")


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
    Thread(target=copy_context().run, args=(settle, future, work), name="unpoison", daemon=True).start()
    return future


def settle(future: Future[T], work: Callable[[], T]) -> None:
    """Do the work, and give the future what comes of it."""
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
