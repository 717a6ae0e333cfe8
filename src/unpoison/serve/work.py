"""Where screenings and answers are computed, so that the loop of the server stays free.

A screening is computation: it waits for a thread, the clients in turn. There are two lines, for short requests and for
long ones, so that a thousand documents do not hold up ten; each has its threads, one by default, for two that compute
in Python only take turns and lose time by it. A computation whose client is gone, or whose time is up, stops at the
next text. What asks language models mostly waits: it runs on a loop of its own through the
asynchronous driver, and the little computation in between does not hold up the server.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import aclosing, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread
from typing import Any, TypeVar, cast

from unpoison.defenses.base import Defense
from unpoison.runtime.driver import arun, run
from unpoison.screener.streaming import Event
from unpoison.types import Answer, Call, Passage, Query, Screening
from unpoison.utils.threads import STOP, settle
from unpoison.utils.tracing import span

__all__ = ["CLIENT", "FairQueue", "Screened", "Work", "warm_up"]

T = TypeVar("T")

LONG = 30_000
"""Characters of all passages from which a request is a long one: about 50 ms of computation by Guard."""

MIN_CHARACTERS = 300
"""Characters that a passage counts for at least: each is compared with all, however short it is."""

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""Whose request this is: the name of a key, or an address."""

LEAVE = 5.0
"""Seconds that the loop of the model calls has to end before it is left behind."""


@dataclass(frozen=True, slots=True)
class Screened:
    """A screening and the model calls that it took."""

    screening: Screening
    calls: tuple[Call, ...]


class FairQueue:
    """Threads that take jobs from the clients in turn, and of each client first come, first served.

    The threads are daemons: a job that cannot be stopped delays nobody's exit.

    Args:
        threads: How many jobs are done side by side.
    """

    def __init__(self, threads: int) -> None:
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._changed = Condition()
        self._closed = False
        for _ in range(threads):
            Thread(target=self._work, name="unpoison", daemon=True).start()

    async def run(self, work: Callable[[], T]) -> T:
        """Have `work` done; a job whose caller is cancelled never begins, or stops at its next text."""
        future: Future[T] = Future()
        stop = threading.Event()
        context = copy_context()
        context.run(STOP.set, stop)

        def job() -> None:
            if future.set_running_or_notify_cancel():
                context.run(settle, future, work)

        with self._changed:
            self._lines.setdefault(CLIENT.get(), deque()).append(job)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            stop.set()
            raise

    def close(self) -> None:
        """Let the threads end, behind the jobs that wait. Nobody waits for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._lines and not self._closed:
                self._changed.wait()
            if not self._lines:
                return None
            client, line = self._lines.popitem(last=False)
            job = line.popleft()
            if line:
                self._lines[client] = line  # behind the others
            return job


class Work:
    """Runs defenses beside the server's loop, which it must be created on.

    Args:
        threads: Short requests that are computed side by side, and as many long ones; the others wait for their turn.
    """

    def __init__(self, threads: int) -> None:
        self._short, self._long = FairQueue(threads), FairQueue(threads)
        self._server = asyncio.get_running_loop()
        self._models = asyncio.new_event_loop()
        self._thread = Thread(target=self._models.run_forever, name="unpoison-models", daemon=True)
        self._thread.start()

    async def screen(self, defense: Defense, query: Query, passages: tuple[Passage, ...]) -> Screened:
        """Say which passages to trust.

        Raises:
            UnpoisonError: As `Defense.screen`.
        """
        flow, models, limits = defense.screen_flow(query, passages), defense.models, defense.limits
        with span("screen", defense=defense.name) as mark:
            if asks_models(defense) or getattr(defense.models.encoder, "remote", False):
                result = Screened(*await self._run_on_models(arun(flow, models, limits)))
            else:
                line = self._long if _size(passages) > LONG else self._short
                result = Screened(*await line.run(partial(run, flow, models, limits)))
            mark("passages", len(passages))
            mark("dropped", len(result.screening.dropped_indices))
        return result

    async def answer(self, defense: Defense, query: Query, passages: tuple[Passage, ...]) -> Answer:
        """Answer in spite of poisoned passages.

        Raises:
            UnpoisonError: As `Defense.answer`.
        """
        return await self._run_on_models(defense.aanswer(query, passages))

    async def stream(self, defense: Defense, query: Query, passages: tuple[Passage, ...]) -> AsyncIterator[Event]:
        """Answer as it comes: a screening, pieces of text, the answer. Who stops listening stops the model's call.

        Raises:
            UnpoisonError: As `Defense.aanswer_stream`.
        """
        events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()

        def hand_over(event: Event | BaseException | None) -> None:
            with suppress(RuntimeError):  # the server is gone
                self._server.call_soon_threadsafe(events.put_nowait, event)

        async def pumping() -> None:
            try:
                async with aclosing(cast(Any, defense.aanswer_stream(query, passages))) as stream:
                    async for event in stream:
                        hand_over(event)
            except BaseException as error:
                hand_over(error)
                raise
            hand_over(None)

        pump = asyncio.run_coroutine_threadsafe(pumping(), self._models)
        try:
            while (event := await events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            pump.cancel()

    async def close(self) -> None:
        """Stop the loop of the model calls; what still runs on threads is left behind."""
        self._short.close()
        self._long.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._run_on_models(_cancel_others()), LEAVE)
        self._models.call_soon_threadsafe(self._models.stop)
        await asyncio.to_thread(self._thread.join, LEAVE)
        if not self._thread.is_alive():
            self._models.close()

    async def _run_on_models(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._models))


async def _cancel_others() -> None:
    """Cancel whatever else runs on this loop, and wait for its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _size(passages: Iterable[Passage]) -> int:
    """The characters of titles and texts, for that much is read."""
    return sum(max(len(p.title or "") + len(p.text), MIN_CHARACTERS) for p in passages)


def asks_models(defense: Defense) -> bool:
    """Whether a screening by this defense may ask a language model."""
    return defense.models.generator is not None and ("generator" in defense.needs or defense.models.nli is not None)


def warm_up(defenses: Iterable[Defense]) -> None:
    """Screen two words by each defense that asks no language model, so that no request waits for modules and models.

    Raises:
        UnpoisonError: A model cannot be used.
    """
    for defense in defenses:
        if not asks_models(defense):
            defense.screen("ready", ["ready", "steady"])
