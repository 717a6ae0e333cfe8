"""`/v1/screen`, `/v1/answer`, `/v1/defenses`, health, readiness and metrics.

An answer can be streamed as server-sent events: `screening`, `text` for each chunk, then `answer`, or `error`. Use the
text of `answer`: it differs from the chunks if a vote over the passages overrules the model. A failure before the first
event is an ordinary error reply.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.responses import StreamingResponse

from unpoison import __version__
from unpoison.core.answers import Answer
from unpoison.core.screenings import Screening
from unpoison.defenses.vote import need_proof, withhold_unproved
from unpoison.errors import InputError, UnpoisonError
from unpoison.io.rows import answer_fields
from unpoison.screener.screener import Event
from unpoison.serve.reading import BodyRoute
from unpoison.serve.replies import Json
from unpoison.serve.schemas import AnswerRequest, ScreenRequest
from unpoison.serve.screening_service import ScreeningService, ServiceOfRequest, generator_of, query_of
from unpoison.serve.telemetry import CONTENT_TYPE_LATEST

__all__ = ["router"]

router = APIRouter(route_class=BodyRoute)


@router.post("/v1/screen")
async def screen(request: Request, body: ScreenRequest, service: ServiceOfRequest) -> Json:
    """Return which passages to trust, and why."""
    defense = service.pick(body.defense)
    screening = await service.screen(request, defense, query_of(body), body.passages)
    return await service.aside(request, lambda: Json({"screening": screening.summary()}))


@router.post("/v1/answer", responses={200: {"content": {"text/event-stream": {}}}})
async def answer(request: Request, body: AnswerRequest, service: ServiceOfRequest) -> Response:
    """Answer the question in spite of poisoned passages; with `stream` by server-sent events."""
    defense = service.pick(body.defense)
    generator = generator_of(defense)
    if body.guarantee:
        need_proof(defense, "guarantee")
    if body.stream and body.guarantee:
        raise InputError("guarantee and stream exclude each other: nothing may be said before it is proved; send one")
    if body.stream:
        events = service.stream(request, defense, query_of(body), body.passages)
        return await event_response(request, service, events, generator.name)
    result = withhold_unproved(await service.answer(request, defense, query_of(body), body.passages), body.guarantee)
    return await service.aside(request, lambda: Json(answer_fields(result, generator.name)))


@router.get("/v1/defenses")
async def defenses(service: ServiceOfRequest) -> Json:
    """The configured defenses; the first is the default."""
    rows = [
        {"name": name, "summary": defense.summary, "answers": defense.models.generator is not None}
        | {"guarantees": defense.certifies, "default": name == service.default}
        for name, defense in service.choices.items()
    ]
    return Json({"version": __version__, "defenses": rows})


@router.get("/v1/models")
async def models(service: ServiceOfRequest) -> Json:
    """The configured defenses as OpenAI's clients list models, for gateways that ask before they route."""
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "unpoison"} for name in service.choices]
    return Json({"object": "list", "data": rows})


@router.get("/info")
async def info(service: ServiceOfRequest) -> Json:
    """The model info that clients of text-embeddings-inference (TEI) request: a reranker and its limits."""
    bounds, labels = service.bounds, {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    about = {"model_id": service.default, "model_type": {"reranker": labels}, "version": __version__}
    sizes = {"max_client_batch_size": bounds.passages, "max_concurrent_requests": bounds.max_concurrency}
    return Json({**about, **sizes, "max_input_length": bounds.characters, "auto_truncate": True})


@router.get("/health", response_class=Response)
async def health() -> Response:
    """`/healthz` at TEI's address, with an empty body."""
    return Response()


@router.get("/healthz")
async def healthz() -> Json:
    """Whether the process is alive."""
    return Json({"status": "ok"})


@router.get("/readyz")
async def readyz() -> Json:
    """Whether the service accepts requests; independent of the load.

    Under overload single requests are refused. If this reported overload, the load balancer would shift the load to the
    other instances and take them out one after the other.
    """
    return Json({"status": "ready"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: ServiceOfRequest) -> Response:
    """Metrics for Prometheus."""
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)


STREAM_GRACE = 2.0
"""Extra seconds in which a stream can report a timeout."""


LATE = "the answer was not ready in time; send fewer or shorter passages"


async def event_response(
    request: Request, service: ScreeningService, events: AsyncIterator[Event], generator: str
) -> StreamingResponse:
    """The response for the events of an answer.

    Args:
        request: The request; its time limit is extended by `STREAM_GRACE`, so that a stream can end with an error.
        service: Serialises long events outside the event loop.
        events: As `ScreeningService.stream` gives them.
        generator: The model's name for the answer.

    Raises:
        UnpoisonError: A failure before the first event.
    """
    timer: asyncio.Timeout = request.state.timer
    end = timer.when()
    first = await anext(events)
    if end is not None:
        timer.reschedule(end + STREAM_GRACE)

    async def write() -> AsyncIterator[bytes]:
        try:
            event: Event | None = first
            while event is not None:
                yield await service.aside(request, partial(_event, event, generator))
                async with asyncio.timeout_at(end):  # not around a yield: it would interrupt the consumer
                    event = await anext(events, None)
        except UnpoisonError as error:
            if end is None or asyncio.get_running_loop().time() < end:
                yield _failure(request, type(error).__name__, str(error))
            else:  # the model timed out first
                yield _failure(request, "Timeout", LATE)
        except TimeoutError:
            yield _failure(request, "Timeout", LATE)
        except Exception as error:
            yield _failure(request, "InternalError", "this is a fault of the service, not of the request")
            raise error

    headers = {"X-Accel-Buffering": "no"}  # nginx would collect the events otherwise
    return StreamingResponse(write(), media_type="text/event-stream", headers=headers)


def _event(event: Event, generator: str) -> bytes:
    if isinstance(event, str):
        return _lines("text", {"text": event})
    if isinstance(event, Screening):
        return _lines("screening", {"screening": event.summary()})
    assert isinstance(event, Answer)  # noqa: S101  the only other kind
    return _lines("answer", answer_fields(event, generator))


def _failure(request: Request, kind: str, message: str) -> bytes:
    request.state.record.error = kind
    return _lines("error", {"error": {"type": kind, "message": message}})


def _lines(name: str, content: Any) -> bytes:
    """One event. ASCII JSON has no line end, so a text cannot begin another event."""
    return f"event: {name}\ndata: {json.dumps(content, allow_nan=False, separators=(',', ':'))}\n\n".encode("ascii")
