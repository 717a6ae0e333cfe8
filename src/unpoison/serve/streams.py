"""Answers as server-sent events: `screening`, then `text` after `text`, then `answer`; or `error` where it broke off.

The answer counts: where a vote over the passages decides otherwise, its text is not that of the pieces. What fails
before the first event is an ordinary failure with its status.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import Request
from starlette.responses import StreamingResponse

from unpoison.defenses.streaming import Event
from unpoison.errors import UnpoisonError
from unpoison.io.rows import answer_fields
from unpoison.types import Answer, Screening

__all__ = ["LEAVE", "event_response"]

LEAVE = 2.0
"""Seconds beyond the time of a request in which a stream that is late can say so."""


async def event_response(request: Request, events: AsyncIterator[Event], generator: str) -> StreamingResponse:
    """The response for the events of an answer.

    Args:
        request: Its gate's timer is put off by `LEAVE`, so that a stream ends with a sentence.
        events: As `Desk.stream` gives them.
        generator: The model's name, which stands in the answer.

    Raises:
        UnpoisonError: What fails before the first event.
    """
    timer: asyncio.Timeout = request.state.timer
    end = timer.when()
    first = await anext(events)
    if end is not None:
        timer.reschedule(end + LEAVE)
    body = _write_events(request, first, events, generator, end)
    headers = {"X-Accel-Buffering": "no"}  # nginx would collect the events otherwise
    return StreamingResponse(body, media_type="text/event-stream", headers=headers)


async def _write_events(
    request: Request, first: Event, events: AsyncIterator[Event], generator: str, end: float | None
) -> AsyncIterator[bytes]:
    try:
        event: Event | None = first
        while event is not None:
            yield _event(event, generator)
            async with asyncio.timeout_at(end):  # around no yield: it would end whatever the receiver does then
                event = await anext(events, None)
    except UnpoisonError as error:
        yield _failure(request, type(error).__name__, str(error))
    except TimeoutError:
        yield _failure(request, "Timeout", "the answer was not ready in time; send fewer or shorter passages")
    except Exception as error:
        yield _failure(request, "InternalError", "this is a fault of the service, not of the request")
        raise error


def _event(event: Event, generator: str) -> bytes:
    if isinstance(event, str):
        return _lines("text", {"text": event})
    if isinstance(event, Screening):
        return _lines("screening", {"screening": event.summary()})
    assert isinstance(event, Answer)  # noqa: S101  there is no fourth
    return _lines("answer", answer_fields(event, generator))


def _failure(request: Request, kind: str, message: str) -> bytes:
    request.state.record.error = kind
    return _lines("error", {"error": {"type": kind, "message": message}})


def _lines(name: str, content: Any) -> bytes:
    """One event; JSON in plain ASCII has no line end that a text could use to begin another."""
    return f"event: {name}\ndata: {json.dumps(content, allow_nan=False, separators=(',', ':'))}\n\n".encode("ascii")
