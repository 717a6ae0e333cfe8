"""Where screenings and answers are computed, so that the loop of the server stays free.

A screening is computation: it has a thread, and only so many at a time. What asks language models mostly waits: it runs
on a loop of its own through the asynchronous driver, and the little computation in between does not hold up the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from unpoison.defenses.base import Defense
from unpoison.driver import arun, run
from unpoison.threads import started
from unpoison.types import Answer, Call, Passage, Query, Screening

__all__ = ["Screened", "Work", "warm_up"]

T = TypeVar("T")

LEAVE = 5.0
"""Seconds that the loop of the model calls has to end before it is left behind."""


@dataclass(frozen=True, slots=True)
class Screened:
    """A screening and the model calls that it took."""

    screening: Screening
    calls: tuple[Call, ...]


class Work:
    """Runs defenses beside the server's loop, which it must be created on.

    Args:
        threads: Screenings that are computed side by side; the others wait for their turn.
    """

    def __init__(self, threads: int) -> None:
        self._free = asyncio.Semaphore(threads)
        self._server = asyncio.get_running_loop()
        self._models = asyncio.new_event_loop()
        self._thread = Thread(target=self._models.run_forever, name="unpoison-models", daemon=True)
        self._thread.start()

    async def screen(self, defense: Defense, query: Query, passages: tuple[Passage, ...]) -> Screened:
        """Say which passages to trust.

        Raises:
            UnpoisonError: As `Defense.screen`.
        """
        flow, models, limits = defense.screened(query, passages), defense.models, defense.limits
        if asks_models(defense):
            return Screened(*await self._asking(arun(flow, models, limits)))
        return Screened(*await self._computing(partial(run, flow, models, limits)))

    async def answer(self, defense: Defense, query: Query, passages: tuple[Passage, ...]) -> Answer:
        """Answer in spite of poisoned passages.

        Raises:
            UnpoisonError: As `Defense.answer`.
        """
        return await self._asking(defense.aanswer(query, passages))

    async def compute(self, work: Callable[[], T]) -> T:
        """Do some work on a thread, when one is free."""
        return await self._computing(work)

    async def close(self) -> None:
        """Stop the loop of the model calls; what still runs on threads is left behind."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._asking(_cancel_others()), LEAVE)
        self._models.call_soon_threadsafe(self._models.stop)
        await asyncio.to_thread(self._thread.join, LEAVE)
        if not self._thread.is_alive():
            self._models.close()

    async def _asking(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._models))

    async def _computing(self, work: Callable[[], T]) -> T:
        """Wait for a thread, then for the work. A caller that gives up leaves the thread taken until it is done."""
        await self._free.acquire()
        future = started(work)
        future.add_done_callback(self._release)
        return await asyncio.wrap_future(future)

    def _release(self, _: object) -> None:
        with suppress(RuntimeError):  # the server is gone
            self._server.call_soon_threadsafe(self._free.release)


async def _cancel_others() -> None:
    """Cancel whatever else runs on this loop, and wait for its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


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
