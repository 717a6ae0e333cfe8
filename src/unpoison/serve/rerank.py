"""Five dialects of `/rerank`, so that whatever has a place for a reranker can have a defense without code.

Cohere v2 at `/v2/rerank`; Jina at `/v1/rerank`; Voyage there too, told by `truncation` in the body; vLLM at all three
addresses; text-embeddings-inference (TEI) at `/rerank`, told from vLLM by `texts` in the body. A document that the
defense drops is not in the reply, or last with score 0, as always in TEI's, whose clients want a score for each. So is
one that it redacts, for who goes by positions would read the whole of it; only who asks for the documents
(`return_documents` or `return_text` true) gets it, redacted. The scores say the order and nothing else: the first of k
gets 1, each next 1 / k less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import Discriminator, Tag

from unpoison.errors import InputError
from unpoison.serve.replies import Json
from unpoison.serve.routes import REFUSALS
from unpoison.serve.schemas import (
    CohereReranked,
    DocumentsRequest,
    PassageIn,
    Reranked,
    TextScore,
    TextsRequest,
    VoyageReranked,
)
from unpoison.serve.screening_service import OnPoison, ServiceOfRequest
from unpoison.types import Query, Screening

__all__ = ["PATHS", "rank_documents", "router"]

VLLM_ONLY = ("truncate_prompt_tokens", "truncation_side", "use_activation", "activation", "mm_processor_kwargs")
"""Fields by which a request at /v2/rerank shows that it was written for vLLM."""

VOYAGE_ONLY = "truncation"
"""The field by which a request shows that it was written for Voyage, whose clients read `data`, not `results`."""

NO_USAGE = {"prompt_tokens": 0, "total_tokens": 0}
"""Screening bills no tokens; the field is required."""

PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")

router = APIRouter()

Ranking = list[tuple[int, float]]
"""(position in the request, score), best first."""


def rank_documents(
    k: int,
    screening: Screening | None,
    on_poison: OnPoison,
    top: int | None = None,
    *,
    with_texts: bool = False,
) -> Ranking:
    """The documents of a reply, best first, with scores in [0, 1].

    Args:
        k: How many documents there are.
        screening: Of all of them; None only where the service watches and could not screen.
        on_poison: Whether dropped ones are left out, last with score 0, or, `monitor`, where they were.
        top: At most so many; 0 and None mean all.
        with_texts: Whether the client reads the documents of the reply; otherwise redacted ones count as dropped.
    """
    if on_poison == "monitor" or screening is None:
        best: Sequence[int] = range(k)
    else:
        best = [i for i in screening.kept_indices if with_texts or not screening.verdicts[i].cuts]
    ranking = [(index, round(1 - rank / k, 6)) for rank, index in enumerate(best)]
    if on_poison == "demote" and screening is not None:
        scored = set(best)
        ranking += [(index, 0.0) for index in range(k) if index not in scored]
    return ranking[: top or None]


def _dialect(value: Any) -> str:
    return "<texts>" if isinstance(value, dict) and "texts" in value else "<documents>"


Either = Annotated[
    Annotated[DocumentsRequest, Tag("<documents>")] | Annotated[TextsRequest, Tag("<texts>")], Discriminator(_dialect)
]


@router.post("/rerank", responses={200: {"model": Reranked | list[TextScore]}, **REFUSALS})
async def rerank(request: Request, body: Either, service: ServiceOfRequest) -> Json:
    """Rerank as vLLM does (`documents`) or as text-embeddings-inference does (`texts`)."""
    if isinstance(body, DocumentsRequest):
        return await rerank_v1(request, body, service)
    on_poison = service.on_poison or "demote"
    with _field_name("texts"):
        screening = await service.rerank(request, service.choices.pick(None), Query(body.query), body.texts, on_poison)
    texts = [*body.texts]
    for index, text in _cut(screening, on_poison).items():
        texts[index] = text
    return Json(
        [
            {"index": index, "score": score, **({"text": texts[index]} if body.return_text else {})}
            for index, score in rank_documents(len(texts), screening, on_poison, with_texts=body.return_text)
        ]
    )


@router.post("/v1/rerank", responses={200: {"model": Reranked | VoyageReranked}, **REFUSALS})
async def rerank_v1(request: Request, body: DocumentsRequest, service: ServiceOfRequest) -> Json:
    """Rerank as Jina and vLLM do, with the documents unless `return_documents` is false; or as Voyage does."""
    model, ranking, cut = await _rerank(request, body, service)
    if VOYAGE_ONLY in (body.model_extra or {}):
        rows = _results(body, ranking, cut, with_documents=body.return_documents is True)
        data = [{**row, "document": row["document"]["text"]} if "document" in row else row for row in rows]
        return Json({"object": "list", "data": data, "model": body.model or model, "usage": NO_USAGE})
    return Json(
        {
            "id": f"rerank-{request.state.record.id}",
            "model": body.model or model,
            "usage": NO_USAGE,
            "results": _results(body, ranking, cut, with_documents=body.return_documents is not False),
        }
    )


@router.post("/v2/rerank", responses={200: {"model": CohereReranked | Reranked}, **REFUSALS})
async def rerank_v2(request: Request, body: DocumentsRequest, service: ServiceOfRequest) -> Json:
    """Rerank as Cohere v2 does: positions and scores only. A request that vLLM alone takes gets vLLM's reply."""
    if body.model is None or any(name in (body.model_extra or {}) for name in VLLM_ONLY):
        return await rerank_v1(request, body, service)
    _, ranking, cut = await _rerank(request, body, service)
    return Json(
        {
            "id": request.state.record.id,
            "results": _results(body, ranking, cut, with_documents=body.return_documents is True),
            "meta": {"api_version": {"version": "2"}},
        }
    )


async def _rerank(
    request: Request, body: DocumentsRequest, service: ServiceOfRequest
) -> tuple[str, Ranking, Mapping[int, str]]:
    """The defense's name, the ranking, and the texts of what is redacted."""
    defense, on_poison = service.choices.pick(service.choices.model_name(body.model)), service.on_poison or "drop"
    with _field_name("documents"):
        screening = await service.rerank(request, defense, Query(body.query), body.documents, on_poison)
    wanted = body.return_documents is True
    ranking = rank_documents(len(body.documents), screening, on_poison, body.top_n, with_texts=wanted)
    return defense.name, ranking, _cut(screening, on_poison)


def _cut(screening: Screening | None, on_poison: str) -> Mapping[int, str]:
    """What is redacted, by position; nothing where the service only watches."""
    if screening is None or on_poison == "monitor" or not any(verdict.cuts for verdict in screening.verdicts):
        return {}
    texts = zip(screening.kept_indices, screening.texts, strict=True)
    return {i: text for i, text in texts if screening.verdicts[i].cuts}


@contextmanager
def _field_name(field: str) -> Iterator[None]:
    """Errors name the field that the client sent, not ours."""
    try:
        yield
    except InputError as error:
        message = str(error).replace("passages[", f"{field}[").replace(" passages ", f" {field} ", 1)
        raise InputError(message) from error


def _results(
    body: DocumentsRequest, ranking: Ranking, cut: Mapping[int, str], *, with_documents: bool
) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            **({"document": {"text": cut.get(index) or _text(body.documents[index])}} if with_documents else {}),
            "relevance_score": score,
        }
        for index, score in ranking
    ]


def _text(document: str | PassageIn) -> str:
    """As the client sent it; nothing for what has none, which only a service that watches lets through."""
    if isinstance(document, str):
        return document
    return next((text for text in (document.text, document.content, document.page_content) if text is not None), "")
