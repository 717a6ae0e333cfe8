"""The playground at `/`: a question and passages in cards, verdicts as you type, and trust in sources to change.

The server renders everything, escaped; the browser's part is one file of plain JavaScript. The policy of the page
allows that file, the style sheet and requests to this service, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from unpoison.defenses.base import Defense
from unpoison.models.loading import can_write
from unpoison.report.document import render, resource
from unpoison.report.rendering import STATUS, preview, sources_of
from unpoison.serve.reading import BodyRoute
from unpoison.serve.replies import Json, Refusal
from unpoison.serve.schemas import PlayRequest
from unpoison.serve.screening_service import Preview, ServiceOfRequest, generator_of, query_of
from unpoison.sources.sources import Sources

__all__ = ["load_examples", "router"]

MAX_CARDS = 50
"""Maximum number of passages on the page."""

ASSETS = {"page.css": "text/css", "playground.js": "text/javascript"}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

router = APIRouter(include_in_schema=False, route_class=BodyRoute)


def load_examples() -> tuple[dict[str, Any], ...]:
    """Example questions: `name`, `about` in a sentence, `query`, `passages`, `trust`."""
    text = files("unpoison").joinpath("data", "playground.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))


@router.get("/")
async def page(request: Request, service: ServiceOfRequest) -> HTMLResponse:
    """The form."""
    html = render(
        "playground.html",
        examples=[example["name"] for example in load_examples()],
        choices=service.choices,
        answering={name: defense.models.generator is not None for name, defense in service.choices.items()},
        live={name: _is_free(defense) for name, defense in service.choices.items()},
        bounds=service.bounds,
        most=min(MAX_CARDS, service.bounds.passages),
        keyed=request.state.middleware.admission.keys is not None,
    )
    return HTMLResponse(html, headers=HEADERS)


@router.post("/play")
@router.post("/play/answer")
async def play(request: Request, body: PlayRequest, service: ServiceOfRequest) -> HTMLResponse:
    """The verdicts, as fragments of the page; with the answer, its status and evidence, and that without a defense."""
    chosen, answers = service.pick(body.defense), request.scope["route"].path == "/play/answer"
    if answers:
        generator_of(chosen)
    trusted = (chosen.sources or Sources()).suppose(body.trust) if body.trust else chosen.sources
    defense = chosen.with_sources(trusted)
    found = await service.preview(request, defense, query_of(body), body.passages, answers=answers)
    shown = await asyncio.to_thread(_show, found, defense, body)  # it reads the history
    return HTMLResponse(shown, headers=HEADERS)


def _show(found: Preview, defense: Defense, body: PlayRequest) -> str:
    screening, generator = found.screening, defense.models.generator
    standings = (defense.sources or Sources()).standings(screening.query, screening.passages)
    shown: dict[str, Any] = {"threshold": None, "probability": None}
    shown |= {name: screening.evidence[name].tolist() for name in shown if name in screening.evidence}
    shown |= {"answer": found.answer, "undefended": found.undefended, "reads": generator is not None}
    return preview(screening, sources_of(standings), status=STATUS, trust=body.trust, **shown)


def _is_free(defense: Defense) -> bool:
    """Whether screenings and answers cost no model calls, so that the page may ask at every pause of typing."""
    generator, encoder = defense.models.generator, defense.models.encoder
    return (generator is None or not can_write(generator)) and not getattr(encoder, "remote", False)


@router.get("/examples/{number}")
async def example(number: int) -> Json:
    """One of the examples."""
    rows = load_examples()
    if not 0 <= number < len(rows):
        raise Refusal(404, "NotFound", f"there are the examples 0 to {len(rows) - 1}")
    return Json(rows[number])


@router.get("/assets/{name}")
async def asset(name: str) -> Response:
    """A style sheet or the script."""
    if name not in ASSETS:
        raise Refusal(404, "NotFound", "there is no such file")
    return Response(resource(name), media_type=ASSETS[name], headers=HEADERS)
