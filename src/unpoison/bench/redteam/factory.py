"""Build the system under test that a configuration describes: over HTTP, in Python, or made of a corpus.

A system made of a corpus is our own retriever in memory, and behind it our `Rag`, or our service.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unpoison.architectures.rag import Rag
from unpoison.bench.evaluation import load, load_passages
from unpoison.bench.redteam.http_client import Hosts, HttpClient
from unpoison.bench.redteam.http_reply import JsonPath
from unpoison.bench.redteam.http_request import Filled
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.objects import ObjectTarget, load_object, store_of, target_of
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Answered, Target
from unpoison.core.passages import Passage
from unpoison.errors import OptionError, UnknownNameError, clip
from unpoison.retrieval import BM25Retriever
from unpoison.text.canonical import MARK
from unpoison.utils.checks import at_least

__all__ = ["build_target", "kind_of", "secrets_of_environment"]

PYTHON = ("python", "store", "inputs")
"""The fields of a target in Python."""

CORPUS = ("corpus", "k", "defense", "generator", "service")
"""The fields of a target that is made of a corpus."""

_KEPT = JsonPath.of("$.screening.kept[*]", "the service's reply")
_TEXTS = JsonPath.of("$.screening.texts[*]", "the service's reply")
_ANSWER = JsonPath.of("$.answer.text", "the service's reply")


def secrets_of_environment() -> Secrets:
    """What `${NAME}` stands for."""
    return Secrets(os.environ)


def kind_of(values: Mapping[str, Any]) -> str:
    """`http`, `python` or `corpus`.

    Raises:
        UnknownNameError: Fields of several kinds, or of none.
    """
    for kind, allowed in (("python", PYTHON), ("corpus", CORPUS)):
        if kind in values:
            for name in values:
                if name not in allowed:
                    raise UnknownNameError(f"field of a target with {kind}", str(name), allowed)
            return kind
    return "http"


def build_target(
    values: Mapping[str, Any], *, secrets: Secrets, hosts: Hosts, folder: Path = Path(), timeout: float = 30.0
) -> Target:
    """The target that a configuration describes.

    Args:
        values: Its section `target`.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        folder: Where relative paths begin, and where Python modules are looked for too.
        timeout: Seconds for one request.

    Raises:
        UnknownNameError, OptionError, InputError: It describes none.
        MissingExtraError: A library that it needs is not installed.
    """
    kind = kind_of(values)
    if kind == "http":
        return HttpTarget(values, secrets, hosts, timeout=timeout)
    if kind == "python":
        store = None if values.get("store") is None else load_object(_text(values, "store"), folder)
        loaded = load_object(_text(values, "python"), folder)
        return target_of(loaded, store, inputs=values.get("inputs"), name=values["python"])
    client = HttpClient(secrets, hosts, timeout) if "service" in values else None
    return _corpus_target(values, client, folder)


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise OptionError(f"target.{name} must be a text, got {clip(value)}")
    return value


def _corpus_target(values: Mapping[str, Any], client: HttpClient | None, folder: Path) -> ObjectTarget:
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
