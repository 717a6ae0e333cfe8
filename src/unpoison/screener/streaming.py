"""An answer as it comes: the screening, the model's words, and the answer that they made, or did not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from unpoison.core.answers import Answer
from unpoison.core.screenings import Screening
from unpoison.models.protocols import Models
from unpoison.models.requests import Flow
from unpoison.runtime.driver import arun
from unpoison.runtime.limits import Limits

__all__ = ["Event", "stream_events", "whole"]

Event: TypeAlias = Screening | str | Answer
"""What a stream gives: a screening first, then pieces of text, then one answer."""


@dataclass(frozen=True, slots=True)
class _Ear:
    """Puts what it hears into a queue, which the length of a reply bounds."""

    events: asyncio.Queue[Event | None]
    finished: Callable[[Screening], Screening]

    def on_screening(self, screening: Screening) -> None:
        self.events.put_nowait(self.finished(screening))

    def on_text(self, text: str) -> None:
        self.events.put_nowait(text)


async def stream_events(
    flow: Flow[Answer], models: Models, limits: Limits, finished: Callable[[Screening], Screening]
) -> AsyncIterator[Event]:
    """Run the flow of an answer and give what can be given before its end.

    Args:
        flow: The one that `answer` runs.
        models: Those of the defense.
        limits: As for `arun`.
        finished: Puts the caller's own passages into a screening.

    Raises:
        UnpoisonError: As `arun`; the pieces before it are no answer.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.create_task(arun(flow, models, limits, _Ear(events, finished)))
    task.add_done_callback(lambda _: events.put_nowait(None))
    screened = spoken = False
    try:
        while (event := await events.get()) is not None:
            screened, spoken = screened or isinstance(event, Screening), spoken or isinstance(event, str)
            yield event
        answer, calls = await task
        if not screened:
            yield answer.screening
        if not spoken:
            yield answer.text
        yield replace(answer, calls=calls)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


async def whole(answering: Awaitable[Answer]) -> AsyncIterator[Event]:
    """The events of an answer that may change until its end: all of them then."""
    answer = await answering
    yield answer.screening
    yield answer.text
    yield answer
