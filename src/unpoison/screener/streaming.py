"""Streaming answers: first the screening, then the model's text in pieces, then the complete answer."""

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
from unpoison.runtime.driver import Limits, arun

__all__ = ["Event", "stream_events", "whole"]

Event: TypeAlias = Screening | str | Answer
"""An event of a stream: first a screening, then pieces of text, then one answer."""


@dataclass(frozen=True, slots=True)
class _QueueListener:
    """Puts events into a queue; the length of a reply bounds it."""

    events: asyncio.Queue[Event | None]
    finished: Callable[[Screening], Screening]

    def on_screening(self, screening: Screening) -> None:
        self.events.put_nowait(self.finished(screening))

    def on_text(self, text: str) -> None:
        self.events.put_nowait(text)


async def stream_events(
    flow: Flow[Answer], models: Models, limits: Limits, finished: Callable[[Screening], Screening]
) -> AsyncIterator[Event]:
    """Run the flow of an answer and yield its events as they become known.

    Args:
        flow: The one that `answer` runs.
        models: Those of the defense.
        limits: As for `arun`.
        finished: Maps a screening to the caller's own passages.

    Raises:
        UnpoisonError: As `arun`; text yielded before it is not an answer.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    task = asyncio.create_task(arun(flow, models, limits, _QueueListener(events, finished)))
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
    """The events of an answer that is not final before its end: all of them then."""
    answer = await answering
    yield answer.screening
    yield answer.text
    yield answer
