"""Runs screenings outside the server's event loop.

A screening without model calls is pure computation: it waits for a thread, and the client that used least time is
next. Short and long requests have separate queues, so that a thousand documents do not delay ten; which ones are long
is learned by client, because some texts take a hundred times longer than others of their length. Each queue has one
thread by default, because Python threads do not compute in parallel. A computation stops at the next text when its
client has disconnected or its time is up. Screenings with model calls mostly wait, so they run on the event loop.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Condition, Thread
from typing import Generic, TypeVar

from unpoison.core.answers import Call
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.runtime.driver import arun, run
from unpoison.utils.threads import STOP, settle, wait_for
from unpoison.utils.tracing import span

__all__ = ["CLIENT", "RoundRobin", "Work", "warm_up"]

T = TypeVar("T")

LONG, USUAL = 30_000, 0.05
"""Characters of all passages from which a request is long, and the seconds that Guard takes for them."""

CLIENTS = 1024
"""Maximum clients whose times are remembered."""

SHORT = 1 << 14
"""Bytes of a body up to which it is parsed on the event loop: switching threads would take longer."""

MIN_CHARACTERS = 300
"""Minimum characters that a passage counts as: each is compared with all others, however short it is."""

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The client of the current request: the name of its key, or its address."""


class RoundRobin(Generic[T]):
    """A queue that takes items from each client in turn, each client's in order."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()

    def add(self, client: str, item: T) -> None:
        self._lines.setdefault(client, deque()).append(item)

    def take(self) -> T:
        """The next item; there must be one."""
        client, line = self._lines.popitem(last=False)
        item = line.popleft()
        if line:
            self._lines[client] = line  # at the end of the queue
        return item

    def of(self, client: str) -> int:
        """The number of a client's items."""
        return len(self._lines.get(client, ()))

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))


class FairTurns(RoundRobin[T]):
    """A queue whose next item is of the client that has used the least time; among equals, that waits longest."""

    def __init__(self) -> None:
        super().__init__()
        self._spent: OrderedDict[str, float] = OrderedDict()
        self._now = 0.0

    def add(self, client: str, item: T) -> None:
        if not self.of(client):  # waiting does not earn extra time
            self._spent[client] = max(self._spent.pop(client, 0.0), self._now)
        super().add(client, item)

    def take(self) -> T:
        client = min(self._lines, key=self._spent.__getitem__)
        self._now = self._spent[client]
        self._lines.move_to_end(client, last=False)
        return super().take()

    def charge(self, client: str, seconds: float) -> None:
        """Add to a client's time."""
        self._spent[client] = self._spent.pop(client, self._now) + seconds
        for other in list(self._spent)[:-CLIENTS]:
            if not self.of(other):
                del self._spent[other]


class FairQueue:
    """Threads that take the jobs of the clients in turns, each client's in order.

    The threads are daemons, so a job that cannot be stopped does not delay the exit.

    Args:
        threads: Number of parallel jobs.
        rests: Whether a thread pauses after a job for as long as the job took. Parsers block other threads, and a
            sequence of long bodies would block the event loop.
    """

    def __init__(self, threads: int, *, rests: bool = False) -> None:
        self._rests = rests
        self._jobs = FairTurns[Callable[[], None]]()
        self._changed = Condition()
        self._closed = False
        for _ in range(threads):
            Thread(target=self._work, name="unpoison", daemon=True).start()

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` on a thread; if the caller is cancelled, it never starts, or stops at its next text."""
        future: Future[T] = Future()
        stop = threading.Event()
        context = copy_context()
        context.run(STOP.set, stop)
        client = CLIENT.get()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                began = time.perf_counter()
                context.run(settle, future, work)
                with self._changed:
                    self._jobs.charge(client, time.perf_counter() - began)

        with self._changed:
            self._jobs.add(client, job)
            self._changed.notify()
        return await wait_for(future, stop)

    def close(self) -> None:
        """End the threads after the queued jobs, without waiting for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            began = time.perf_counter()
            job()
            if self._rests:
                time.sleep(time.perf_counter() - began)

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._jobs and not self._closed:
                self._changed.wait()
            return self._jobs.take() if self._jobs else None


class Work:
    """Runs defenses outside the server's event loop.

    Args:
        threads: Number of threads for short requests, and as many for long ones; other requests wait.
    """

    def __init__(self, threads: int) -> None:
        self._short, self._long = FairQueue(threads), FairQueue(threads)
        self._reading = FairQueue(1, rests=True)
        self._rates: OrderedDict[str, float] = OrderedDict()

    async def aside(self, size: int, work: Callable[[], T]) -> T:
        """Run `work` on a body of this many bytes: directly if it is short, else on the thread for reading."""
        return work() if size <= SHORT else await self._reading.run(work)

    async def screen(
        self, defense: Defense, query: Query, passages: tuple[Passage, ...]
    ) -> tuple[Screening, tuple[Call, ...]]:
        """A screening of passages, and the model calls that it took.

        Raises:
            UnpoisonError: As `Defense.screen`.
        """
        flow, models, limits = defense.shell.screen_flow(query, passages), defense.models, defense.limits
        with span("screen", defense=defense.name) as mark:
            if asks_models(defense) or getattr(defense.models.encoder, "remote", False):
                screening, calls = await arun(flow, models, limits)
            else:
                screening, calls = await self._compute(_size(passages), partial(run, flow, models, limits))
            mark("passages", len(passages))
            mark("dropped", len(screening.dropped_indices))
        return screening, calls

    async def _compute(self, size: int, work: Callable[[], T]) -> T:
        """Run `work` on a thread for this many characters, and record the time that it took."""
        client, began = CLIENT.get(), 0.0

        def timed() -> T:
            nonlocal began
            began = time.perf_counter()
            return work()

        rate = self._rates.get(client, 1.0)
        try:
            return await (self._long if size * rate > LONG else self._short).run(timed)
        finally:
            if began:
                took = (time.perf_counter() - began) / (USUAL * max(size, LONG // 10) / LONG)
                self._rates.pop(client, None)
                self._rates[client] = max((rate + took) / 2, 1.0)
                while len(self._rates) > CLIENTS:
                    self._rates.popitem(last=False)

    def close(self) -> None:
        """End the threads after the queued jobs, without waiting for them."""
        for queue in (self._short, self._long, self._reading):
            queue.close()


def _size(passages: Iterable[Passage]) -> int:
    """The characters of titles and texts."""
    return sum(max(len(p.title or "") + len(p.text), MIN_CHARACTERS) for p in passages)


def asks_models(defense: Defense) -> bool:
    """Whether a screening by this defense may ask a language model."""
    return defense.models.generator is not None and ("generator" in defense.needs or defense.models.nli is not None)


def warm_up(defenses: Iterable[Defense]) -> None:
    """Screen a short text by each defense without a language model, so that no request waits for imports and models.

    Raises:
        UnpoisonError: A model cannot be used.
    """
    for defense in defenses:
        if not asks_models(defense):
            defense.screen("ready", ["ready", "steady"])
