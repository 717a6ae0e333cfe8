"""Systems made of a corpus: our own retriever in memory, and behind it our `Rag`, or our service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpoison.architectures.rag import Rag
from unpoison.bench.evaluation import load, load_passages
from unpoison.bench.redteam.http_client import HttpClient
from unpoison.bench.redteam.objects import ObjectTarget
from unpoison.bench.redteam.paths import Path as ReplyPath
from unpoison.bench.redteam.stores import store_of
from unpoison.bench.redteam.targets import Answered
from unpoison.bench.redteam.templates import Filled
from unpoison.core.passages import Passage
from unpoison.errors import OptionError, clip
from unpoison.retrieval import BM25Retriever
from unpoison.text.canonical import MARK
from unpoison.utils.checks import at_least

__all__ = ["CORPUS", "corpus_target"]

CORPUS = ("corpus", "k", "defense", "generator", "service")
"""The fields of such a target."""

_KEPT = ReplyPath.of("$.screening.kept[*]", "the service's reply")
_TEXTS = ReplyPath.of("$.screening.texts[*]", "the service's reply")
_ANSWER = ReplyPath.of("$.answer.text", "the service's reply")


def corpus_target(values: Mapping[str, Any], client: HttpClient | None, folder: Path) -> ObjectTarget:
    """A corpus that is searched with BM25, and answered from by our `Rag` or by `unpoison serve`.

    Args:
        values: `corpus` (a file of passages, or "sample"), `k`, `defense`, and `generator` or `service`.
        client: For the service.
        folder: Where a relative path begins.

    Raises:
        OptionError, UnknownNameError, InputError: A value that cannot be used.
    """
    corpus = values["corpus"]
    if not isinstance(corpus, str) or not corpus:
        raise OptionError(f"target.corpus must be a file of passages, or sample, got {clip(corpus)}")
    retriever = BM25Retriever(_passages(corpus, folder))
    k = at_least("target.k", values.get("k", 10), 1)
    service, defense = values.get("service"), values.get("defense")
    if service is None or client is None:
        named = "guard" if defense is None else str(defense)
        rag = Rag(retriever, named, str(values.get("generator", "extractive")), k=k)
        return ObjectTarget(rag.ask, store_of(retriever), f"rag with {named} over {corpus}")
    if "generator" in values:
        raise OptionError("target.generator is the service's own; leave it out")
    if not isinstance(service, str) or not service.startswith(("http://", "https://")):
        raise OptionError(f"target.service must be an address such as http://127.0.0.1:8000, got {clip(service)}")
    client.check(service)
    asking = _Service(service.rstrip("/"), defense, retriever, k, client)
    return ObjectTarget(asking.ask, store_of(retriever), f"{service} over {corpus}")


class _Service:
    """`unpoison serve` behind a retriever: what is retrieved here is screened and answered there."""

    def __init__(self, url: str, defense: Any, retriever: BM25Retriever, k: int, client: HttpClient) -> None:
        self._url, self._client = f"{url}/v1/answer", client
        self._defense = {} if defense is None else {"defense": str(defense)}
        self._retriever, self._k = retriever, k

    def ask(self, question: str) -> Answered:
        retrieved = self._retriever.retrieve(question, self._k)
        passages = [{"text": passage.text, "title": passage.title, "id": passage.id} for passage in retrieved]
        content = json.dumps({"query": question, "passages": passages, **self._defense}).encode()
        sent = Filled("POST", self._url, {"Content-Type": "application/json"}, content)
        reply = self._client.parse_json("ask", self._client.send("ask", sent))
        cut = {index: text for index, text in zip(_KEPT.values(reply), _TEXTS.values(reply)) if MARK in str(text)}
        kept = [
            position for position in _KEPT.values(reply) if isinstance(position, int) and 0 <= position < len(retrieved)
        ]
        texts = tuple(str(cut.get(position, retrieved[position].raw)) for position in kept)
        return Answered(str(_ANSWER.first(reply)), texts, tuple(retrieved[position].id or "" for position in kept))


def _passages(where: str, folder: Path) -> tuple[Passage, ...]:
    if where == "sample":
        return tuple(part.passage for example in load("sample") for part in example.passages_by_label("clean", "gold"))
    return load_passages(folder / where)
