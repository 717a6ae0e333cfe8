"""Blocking calls on threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

__all__ = ["on_thread", "started"]

T = TypeVar("T")


def started(work: Callable[[], T]) -> Future[T]:
    """Start `work` on a thread of its own.

    The thread is a daemon: a call that is abandoned at a deadline delays neither the caller nor the interpreter's
    exit, as the threads of an executor would.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled, so setting its result is safe

    def body() -> None:
        try:
            result = work()
        except StopIteration as error:  # cannot be passed on by futures, as by generators (PEP 479)
            future.set_exception(RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    # What is current here, such as a trace, is current there.
    Thread(target=copy_context().run, args=(body,), name="unpoison", daemon=True).start()
    return future


async def on_thread(work: Callable[[], T]) -> T:
    """Await `work` on a thread of its own; a cancelled wait abandons it."""
    return await asyncio.wrap_future(started(work))
