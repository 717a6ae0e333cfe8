"""Build the system under test that a configuration describes: over HTTP, in Python, or made of a corpus.

A system made of a corpus is our own retriever in memory, and behind it our `Rag`, or our service.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from unpoison.architectures.rag import Rag
from unpoison.bench.evaluation import load, load_passages
from unpoison.bench.redteam.http_client import HttpClient
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.http_template import Filled
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.objects import ObjectTarget, load_object, store_of, target_of
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Answered, Target
from unpoison.core.passages import Passage
from unpoison.errors import OptionError
from unpoison.io.settings import Section, Text
from unpoison.retrieval import BM25Retriever, StoreRetriever
from unpoison.scan.stores import is_store, open_vector_store, refuse_unknown_prefix
from unpoison.text.canonical import MARK
from unpoison.utils.checks import MAX_NUMBER

__all__ = ["build_target", "kind_of", "secrets_of_environment"]


class PythonTarget(Section):
    """A target in Python: an object that is asked, a store where it is not in there, and a pipeline's inputs.

    The store is an object, or a vector store as `unpoison scan` names it; that one needs the system's encoder.
    """

    python: Text
    store: Text | None = None
    encoder: Text | None = None
    inputs: dict[str, Any] | None = None


class CorpusTarget(Section):
    """A target made of a corpus (a file of passages, or "sample"), answered by our `Rag`, or by `unpoison serve`."""

    corpus: Text
    k: Annotated[int, Field(ge=1, le=MAX_NUMBER)] = 10
    defense: Text | None = None
    generator: Text | None = None
    service: Annotated[str, Field(pattern="^https?://")] | None = None


_KEPT = JsonPath.of("$.screening.kept[*]", "the service's reply")
_TEXTS = JsonPath.of("$.screening.texts[*]", "the service's reply")
_ANSWER = JsonPath.of("$.answer.text", "the service's reply")


def secrets_of_environment() -> Secrets:
    """What `${NAME}` stands for."""
    return Secrets(os.environ)


def kind_of(values: Mapping[str, Any]) -> str:
    """`python`, `corpus` or `http`."""
    return next((kind for kind in ("python", "corpus") if kind in values), "http")


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
        return HttpTarget(values, secrets, hosts, timeout=timeout, folder=folder)
    if kind == "python":
        described = PythonTarget.read(values, "a target with python")
        store = None if described.store is None else _store(described.store, described.encoder, folder)
        loaded = load_object(described.python, folder)
        return target_of(loaded, store, inputs=described.inputs, name=described.python)
    corpus = CorpusTarget.read(values, "a target with corpus")
    retriever = BM25Retriever(_passages(corpus.corpus, folder))
    if corpus.service is None:
        defense = corpus.defense or "guard"
        rag = Rag(retriever, defense, corpus.generator or "extractive", k=corpus.k)
        return ObjectTarget(rag.ask, store_of(retriever), f"rag with {defense} over {corpus.corpus}")
    if corpus.generator is not None:
        raise OptionError("target.generator is the service's own; leave it out")
    client = HttpClient(secrets, hosts, timeout)
    client.check(corpus.service)
    asking = _Service(corpus.service.rstrip("/"), corpus.defense, retriever, corpus.k, client)
    return ObjectTarget(asking.ask, store_of(retriever), f"{corpus.service} over {corpus.corpus}")


def _store(where: str, encoder: str | None, folder: Path) -> Any:
    if not is_store(where):
        if "#" in where:  # which the name of no object has
            refuse_unknown_prefix(where)
        return load_object(where, folder)
    if encoder is None:
        raise OptionError(
            f"target.store {where.partition(':')[0]} takes vectors; name the encoder that the system uses, such as "
            "encoder: minilm"
        )
    return StoreRetriever(open_vector_store(where, folder=folder), encoder)


class _Service:
    """`unpoison serve` behind a retriever: what is retrieved here is screened and answered there."""

    def __init__(self, url: str, defense: str | None, retriever: BM25Retriever, k: int, client: HttpClient) -> None:
        self._url, self._client = f"{url}/v1/answer", client
        self._defense = {} if defense is None else {"defense": defense}
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
