"""Five dialects of `/rerank`, so that a defense can take the place of a reranker without code.

- `/v2/rerank`: Cohere v2; vLLM, if the body has fields that only vLLM knows.
- `/v1/rerank`: Jina and vLLM; Voyage, if the body has `top_k` or `truncation`.
- `/rerank`: vLLM, if the body has `documents`; text-embeddings-inference (TEI), if it has `texts`.

A request for fewer documents than it sends gets the kept ones. A client that requests all of them pairs scores with
positions: a dropped document comes last with score 0 and is listed under `unpoison`. So does a redacted document, as
such a client reads its own copy; only a request for the texts (`return_documents` or `return_text`) gets it, redacted.
Scores encode only the order: the first of k documents gets 1, each further one 1 / k less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Request
from pydantic import Discriminator, Tag

from unpoison.core.passages import Query
from unpoison.core.screenings import Screening
from unpoison.errors import InputError, clip
from unpoison.serve.reading import BodyRoute
from unpoison.serve.replies import Json
from unpoison.serve.schemas import DocumentsRequest, PassageIn, TextsRequest
from unpoison.serve.screening_service import OnPoison, ScreeningService, ServiceOfRequest
from unpoison.utils.plain_text import plain

__all__ = ["PATHS", "rank_documents", "router"]

VLLM_ONLY = ("truncate_prompt_tokens", "truncation_side", "use_activation", "activation", "mm_processor_kwargs")
"""Fields of /v2/rerank requests that only vLLM has."""

VOYAGE_ONLY = {"top_k", "truncation"}
"""Fields that only Voyage has; its clients read `data`, not `results`."""

NO_USAGE = {"prompt_tokens": 0, "total_tokens": 0}
"""Screening uses no tokens, but clients require the field."""

PATHS = ("/rerank", "/v1/rerank", "/v2/rerank")

router = APIRouter(route_class=BodyRoute)

Ranking = list[tuple[int, float]]
"""(position in the request, score), best first."""


def rank_documents(
    documents: Sequence[str],
    screening: Screening | None,
    on_poison: OnPoison | None,
    top: int | None = None,
    *,
    with_texts: bool = False,
) -> Ranking:
    """The documents of a reply, best first, with scores in [0, 1].

    Args:
        documents: The k texts.
        screening: Of all of them; None only in monitor mode, if screening failed.
        on_poison: Whether dropped documents are left out, put last with score 0, or (`monitor`) stay in place; by
            default they are left out if fewer than k are requested.
        top: Maximum number of documents; 0 and None mean all.
        with_texts: Whether the client reads the documents of the reply; otherwise redacted ones count as dropped.
    """
    k = len(documents)
    if on_poison == "monitor" or screening is None:
        return [(index, round(1 - index / k, 6)) for index in range(k)][: top or None]
    kept = [i for i in screening.kept_indices if with_texts or not screening.verdicts[i].cuts]
    best = [i for i in kept if documents[i].strip()]
    ranking = [(index, round(1 - rank / k, 6)) for rank, index in enumerate(best)]
    if on_poison == "demote" or (on_poison is None and not 0 < (top or 0) < k):
        scored = set(best)
        ranking += [(index, 0.0) for index in range(k) if index not in scored]
    return ranking[: top or None]


def _dialect(value: Any) -> str | None:
    texts = isinstance(value, TextsRequest) or (isinstance(value, dict) and "texts" in value)
    return None if texts and "documents" in value else "<texts>" if texts else "<documents>"


Either = Annotated[
    Annotated[DocumentsRequest, Tag("<documents>")] | Annotated[TextsRequest, Tag("<texts>")],
    Discriminator(
        _dialect, custom_error_type="dialect", custom_error_message="Input should have texts or documents, not both"
    ),
]


@router.post("/rerank")
async def rerank(request: Request, body: Either, service: ServiceOfRequest) -> Json:
    """Rerank as vLLM does (`documents`) or as text-embeddings-inference does (`texts`)."""
    if isinstance(body, DocumentsRequest):
        return await rerank_v1(request, body, service)
    with _field_name("texts"):
        screening = await service.rerank(request, service.pick(None), Query(body.query), body.texts)
    return await service.aside(request, partial(_texts_reply, body, screening, service.on_poison))


def _texts_reply(body: TextsRequest, screening: Screening | None, on_poison: OnPoison | None) -> Json:
    texts = [*body.texts]
    for index, text in _cut(screening, on_poison).items():
        texts[index] = text
    ranking = rank_documents(body.texts, screening, on_poison, with_texts=body.return_text)
    rows: list[dict[str, Any]] = [{"index": index, "score": score} for index, score in ranking]
    return Json([{**row, "text": texts[row["index"]]} for row in rows] if body.return_text else rows)


@router.post("/v1/rerank")
async def rerank_v1(request: Request, body: DocumentsRequest, service: ServiceOfRequest) -> Json:
    """Rerank as Jina and vLLM do, with the documents unless `return_documents` is false; or as Voyage does."""

    def reply(found: _Found) -> Json:
        if VOYAGE_ONLY & body.model_fields_set:
            rows = found.results(with_documents=body.return_documents is True)
            data = [{**row, "document": row["document"]["text"]} if "document" in row else row for row in rows]
            rest = {"usage": NO_USAGE, "unpoison": found.rest}
            return Json({"object": "list", "data": data, "model": found.model, **rest})
        head = {"id": f"rerank-{request.state.record.id}", "model": found.model, "usage": NO_USAGE}
        results = found.results(with_documents=body.return_documents is not False)
        return Json({**head, "results": results, "unpoison": found.rest})

    return await _rerank(request, body, service, reply)


@router.post("/v2/rerank")
async def rerank_v2(request: Request, body: DocumentsRequest, service: ServiceOfRequest) -> Json:
    """Rerank as Cohere v2 does: positions and scores only. A request in vLLM's format gets vLLM's reply."""
    if body.model is None or any(name in (body.model_extra or {}) for name in VLLM_ONLY):
        return await rerank_v1(request, body, service)

    def reply(found: _Found) -> Json:
        meta = {"api_version": {"version": "2"}}
        results = found.results(with_documents=body.return_documents is True)
        return Json({"id": request.state.record.id, "results": results, "meta": meta, "unpoison": found.rest})

    return await _rerank(request, body, service, reply)


class _Found(NamedTuple):
    """The redacted texts, their ranking, and the dropped positions and ignored fields."""

    model: str
    texts: list[str]
    ranking: Ranking
    rest: dict[str, list[Any]]

    def results(self, *, with_documents: bool) -> list[dict[str, Any]]:
        shown = {i: {"document": {"text": self.texts[i]}} for i, _ in self.ranking} if with_documents else {}
        return [{"index": i, **shown.get(i, {}), "relevance_score": score} for i, score in self.ranking]


async def _rerank(
    request: Request, body: DocumentsRequest, service: ScreeningService, reply: Callable[[_Found], Json]
) -> Json:
    defense, names = service.pick(service.find(body.model)), list(dict.fromkeys(body.rank_fields or ()))
    with _field_name("documents"):
        documents = await service.aside(request, lambda: [_read_fields(one, names) for one in body.documents])
        screening = await service.rerank(request, defense, Query(body.query), documents)
    name = body.model or defense.name
    return await service.aside(request, lambda: reply(_find(body, name, documents, screening, service.on_poison)))


def _find(
    body: DocumentsRequest,
    model: str,
    documents: Sequence[str | PassageIn],
    screening: Screening | None,
    on_poison: OnPoison | None,
) -> _Found:
    texts = list(map(_text, documents))
    wanted = body.return_documents is True
    ranking = rank_documents(texts, screening, on_poison, body.top_n or body.top_k, with_texts=wanted)
    for index, text in _cut(screening, on_poison).items():
        texts[index] = text
    read = {index for index, score in ranking if score}
    verdicts = () if screening is None else screening.verdicts
    dropped = [one.index for one in verdicts if one.index not in read and (not one.kept or one.cuts)]
    ignored = [plain(name[:80]) for name in body.model_extra or {}]
    return _Found(model, texts, ranking, {"dropped": dropped, **({"ignored": ignored} if ignored else {})})


def _read_fields(document: str | PassageIn, names: list[str]) -> str | PassageIn:
    """The document to rank: of an object the fields in `rank_fields`, joined."""
    if isinstance(document, str) or not names:
        return document
    fields = document.fields()
    missing = [name for name in names if not isinstance(fields.get(name), str)]
    if missing:
        raise InputError(f"rank_fields names {clip(missing[0])}, which is no text of every document; leave it out")
    return document.model_copy(update={"text": "\n".join(fields[name] for name in names), "title": None})


def _cut(screening: Screening | None, on_poison: OnPoison | None) -> Mapping[int, str]:
    """Redacted texts by position; none in monitor mode."""
    if screening is None or on_poison == "monitor" or not any(verdict.cuts for verdict in screening.verdicts):
        return {}
    texts = zip(screening.kept_indices, screening.texts, strict=True)
    return {i: text for i, text in texts if screening.verdicts[i].cuts}


@contextmanager
def _field_name(field: str) -> Iterator[None]:
    """Rename `passages` in errors to the field that the client sent."""
    try:
        yield
    except InputError as error:
        message = str(error).replace("passages[", f"{field}[").replace(" passages ", f" {field} ", 1)
        raise InputError(message) from error


def _text(document: str | PassageIn) -> str:
    """The document's text as sent; empty for a document without text, which only monitor mode accepts."""
    if isinstance(document, str):
        return document
    return next((text for text in (document.text, document.content, document.page_content) if text is not None), "")
