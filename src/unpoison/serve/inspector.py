"""The inspector at `/`: paste a question and passages, see verdicts, reasons and the graph, move the threshold.

The server renders everything, escaped; the browser's part is one file of plain JavaScript. The policy of the page
allows that file, the style sheet and requests to this service, and nothing else.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from unpoison.io.rows import load_sample
from unpoison.report.pages import render, resource
from unpoison.report.rendering import STATUS, inspection
from unpoison.serve.replies import Json, Refusal
from unpoison.serve.schemas import ScreenRequest
from unpoison.serve.screening_service import ServiceOfRequest, generator_of, query_of
from unpoison.types import Answer, Screening

__all__ = ["router"]

PLANTED = 3
"""Poisons that a sample question is shown with."""

GENUINE = 7
"""Genuine passages beside them."""

ASSETS = {
    "page.css": "text/css",
    "inspector.js": "text/javascript",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {"Content-Security-Policy": POLICY}

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page(request: Request, service: ServiceOfRequest) -> HTMLResponse:
    """The form."""
    html = render(
        "inspector.html",
        samples=[row.query.text for row in load_sample()],
        choices=service.choices,
        answers=any(defense.models.generator is not None for defense in service.choices.values()),
        bounds=service.bounds,
        keyed=request.state.middleware.admission.keys is not None,
    )
    return HTMLResponse(html, headers=HEADERS)


@router.post("/inspect")
async def inspect(request: Request, body: ScreenRequest, service: ServiceOfRequest) -> HTMLResponse:
    """The form's result, a piece of the page."""
    defense = service.choices.pick(body.defense)
    screening = await service.screen(request, defense, query_of(body), body.passages)
    return HTMLResponse(_inspection(screening), headers=HEADERS)


@router.post("/inspect/answer")
async def inspect_answer(request: Request, body: ScreenRequest, service: ServiceOfRequest) -> HTMLResponse:
    """The form's result with an answer, its status and what speaks for it."""
    defense = service.choices.pick(body.defense)
    generator_of(defense)
    answer = await service.answer(request, defense, query_of(body), body.passages)
    return HTMLResponse(_inspection(answer.screening, answer), headers=HEADERS)


def _inspection(screening: Screening, answer: Answer | None = None) -> str:
    evidence: dict[str, Any] = {
        name: screening.evidence[name].tolist() if name in screening.evidence else None
        for name in ("threshold", "probability")
    }
    return inspection(screening, answer=answer, status=STATUS, **evidence)


@router.get("/sample/{number}")
async def sample(number: int) -> Json:
    """A question of the built-in sample, poisons with the question in front planted among its passages."""
    rows = load_sample()
    if not 0 <= number < len(rows):
        raise Refusal(404, "NotFound", f"the sample has the questions 0 to {len(rows) - 1}")
    row = rows[number]
    labelled = list(zip(row.passages, row.raw["passages"], strict=True))
    poisons = [f"{row.query.text} {passage.text}" for passage, raw in labelled if raw["label"] == "poison"]
    genuine = [passage.text for passage, raw in labelled if raw["label"] != "poison"]
    return Json({"query": row.query.text, "passages": [*poisons[:PLANTED], *genuine[:GENUINE]]})


@router.get("/assets/{name}")
async def asset(name: str) -> Response:
    """A style sheet or the script."""
    if name not in ASSETS:
        raise Refusal(404, "NotFound", "there is no such file")
    return Response(resource(name), media_type=ASSETS[name], headers=HEADERS)
