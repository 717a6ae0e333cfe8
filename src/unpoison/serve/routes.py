"""`/v1/screen`, `/v1/answer`, `/v1/ingest/check`, `/v1/defenses`, and what machines ask: health, readiness, metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from unpoison import __version__
from unpoison.defenses.guarantee import need_proof, withhold_unproved
from unpoison.errors import InputError
from unpoison.io.rows import answer_fields
from unpoison.serve.desk import DeskOfRequest, generator_of, query_of
from unpoison.serve.failures import failure_reply
from unpoison.serve.metrics import CONTENT_TYPE_LATEST
from unpoison.serve.replies import Json
from unpoison.serve.schemas import Answered, AnswerRequest, Checked, Failure, IngestRequest, Screened, ScreenRequest
from unpoison.serve.streams import event_response

__all__ = ["REFUSALS", "router"]

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Failure, "description": "The body is no JSON."},
    401: {"model": Failure, "description": "The key is missing or wrong."},
    413: {"model": Failure, "description": "The body is too large."},
    403: {"model": Failure, "description": "The key may not do this."},
    422: {"model": Failure, "description": "The body cannot be used."},
    429: {"model": Failure, "description": "The key asks too often; Retry-After says when again."},
    502: {"model": Failure, "description": "A model failed."},
    503: {"model": Failure, "description": "Too many requests at once; try again."},
    504: {"model": Failure, "description": "No result in time."},
}
"""For the description of the interface."""

router = APIRouter()


@router.post("/v1/screen", responses={200: {"model": Screened}, **REFUSALS})
async def screen(request: Request, body: ScreenRequest, desk: DeskOfRequest) -> Json:
    """Say which passages to trust, and why."""
    defense = desk.choices.pick(body.defense)
    screening = await desk.screen(request, defense, query_of(body), body.passages)
    return Json({"screening": screening.summary()})


@router.post("/v1/answer", responses={200: {"model": Answered, "content": {"text/event-stream": {}}}, **REFUSALS})
async def answer(request: Request, body: AnswerRequest, desk: DeskOfRequest) -> Response:
    """Answer the question in spite of poisoned passages; with `stream` by server-sent events."""
    defense = desk.choices.pick(body.defense)
    generator = generator_of(defense)
    if body.guarantee:
        need_proof(defense, "guarantee")
    if body.stream and body.guarantee:
        raise InputError("guarantee and stream exclude each other: nothing may be said before it is proved; send one")
    if body.stream:
        return await event_response(
            request, desk.stream(request, defense, query_of(body), body.passages), generator.name
        )
    result = withhold_unproved(await desk.answer(request, defense, query_of(body), body.passages), body.guarantee)
    return Json(answer_fields(result, generator.name))


@router.post("/v1/ingest/check", responses={200: {"model": Checked}, **REFUSALS})
async def check(body: IngestRequest, desk: DeskOfRequest) -> Json:
    """Judge new documents beside their neighbours before they go into an index; nothing is kept here."""
    return Json({"decisions": await desk.check(body.documents, body.neighbours)})


@router.get("/v1/defenses")
async def defenses(desk: DeskOfRequest) -> Json:
    """The configured defenses; the first is the default."""
    return Json(
        {
            "version": __version__,
            "defenses": [
                {
                    "name": name,
                    "summary": defense.summary,
                    "answers": defense.models.generator is not None,
                    "guarantees": defense.certifies,
                    "default": name == desk.choices.default,
                }
                for name, defense in desk.choices.items()
            ],
        }
    )


@router.get("/v1/models")
async def models(desk: DeskOfRequest) -> Json:
    """The configured defenses as OpenAI's clients list models, for gateways that ask before they route."""
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "unpoison"} for name in desk.choices]
    return Json({"object": "list", "data": rows})


@router.get("/info")
async def info(desk: DeskOfRequest) -> Json:
    """What text-embeddings-inference (TEI) says of itself and its clients ask for: a reranker and its limits."""
    bounds = desk.bounds
    return Json(
        {
            "model_id": desk.choices.default,
            "model_type": {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
            "version": __version__,
            "max_client_batch_size": bounds.passages,
            "max_concurrent_requests": bounds.at_once,
            "max_input_length": bounds.characters,
            "auto_truncate": True,
        }
    )


@router.get("/health")
async def health() -> Response:
    """`/healthz` where TEI has it, with an empty body."""
    return Response()


@router.get("/healthz")
async def healthz() -> Json:
    """Whether the process answers at all."""
    return Json({"status": "ok"})


@router.get("/readyz", responses={503: {"model": Failure}})
async def readyz(request: Request) -> Json:
    """Whether requests can be screened: from the start of the threads on, and whatever the load.

    Under too much load requests are refused one by one. A service that said here that it has enough to do would be
    taken out, its share would go to the others, and all would be out one after the other.
    """
    if request.app.state.desk.stopping:
        return failure_reply(503, "Stopping", "the service is about to end; ask another one", {"Retry-After": "1"})
    return Json({"status": "ready"})


@router.get("/metrics")
async def metrics(desk: DeskOfRequest) -> Response:
    """Counts and times for Prometheus."""
    return Response(desk.metrics.text(), media_type=CONTENT_TYPE_LATEST)
