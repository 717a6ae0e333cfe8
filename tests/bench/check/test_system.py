"""How a running system is understood from its address, and what is said where it is none."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.check.rag_server import HANDBOOK, Rag, serve_rag
from unpoison.bench.check.asking import collect_documents
from unpoison.bench.check.attack import ask_with
from unpoison.bench.check.system import RunningSystem, open_system
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.pace import Pace
from unpoison.bench.redteam.secrets import Secrets
from unpoison.errors import OptionError, UnpoisonError

PAGE = (200, "text/html", "<!DOCTYPE html><html><body>Ask me</body></html>")


@pytest.fixture
def rag() -> Iterator[Rag]:
    with serve_rag() as system:
        yield system


def opened(where: str, **environment: str) -> RunningSystem:
    return open_system(where, hosts=Hosts(), secrets=Secrets(environment))


def shown(system: RunningSystem) -> dict[str, str | None]:
    ask = ask_with(system, Pace(system.config.bounds))
    return {one.passage.text: one.passage.source for one in collect_documents(ask, system.seeds)[0]}


def test_a_page_without_models_and_a_reply_are_enough(rag: Rag) -> None:
    system = opened(rag.url)
    assert system.plants
    assert system.target["ask"]["passages"] == "$.sources[*].text"
    assert shown(system) == {text: name for name, text in HANDBOOK.items()}


@pytest.mark.parametrize(("path", "field"), [("/ask", "question"), ("/chat", "query")])
def test_without_a_page_the_usual_fields_are_tried(rag: Rag, path: str, field: str) -> None:
    rag.openapi = None
    system = opened(rag.url + path)
    assert system.target["ask"]["body"] == {field: "{question}"}
    assert not system.plants
    assert set(shown(system)) == set(HANDBOOK.values())


@pytest.mark.parametrize("chat", ["openai", "ollama"])
@pytest.mark.parametrize("path", ["", "/", "full"])
def test_known_chats_are_recognised_and_name_their_model(rag: Rag, chat: str, path: str) -> None:
    rag.openapi, rag.chats = None, (chat,)
    full = {"openai": "/v1/chat/completions", "ollama": "/api/chat"}[chat]
    system = opened(rag.url + (full if path == "full" else path))
    assert system.target["ask"]["preset"] == chat
    assert system.target["ask"]["model"].startswith("handbook")
    assert set(shown(system)) == set(HANDBOOK.values())


def test_a_key_is_sent_where_it_is_set(rag: Rag) -> None:
    rag.key = "open sesame"
    with pytest.raises(UnpoisonError, match=r"wants a key \(status 401\): export RAG_TOKEN="):
        opened(rag.url)
    assert set(shown(opened(rag.url, RAG_TOKEN="open sesame"))) == set(HANDBOOK.values())


def test_a_target_file(rag: Rag, tmp_path: Path) -> None:
    file = tmp_path / "redteam.yaml"
    file.write_text(
        f"target:\n  ask: {{url: '{rag.url}/ask', body: {{question: '{{question}}'}}, answer: $.answer}}\n"
        f"  plant: {{url: '{rag.url}/documents', body: {{text: '{{text}}'}}, id: $.doc_id}}\n"
        f"  remove: {{method: DELETE, url: '{rag.url}/documents/{{id}}'}}\n"
        "questions: questions.jsonl\nwait: {seconds: 1}\n"
    )
    system = opened(str(file))
    assert system.plants
    assert system.config.wait.seconds == 1
    assert set(shown(system)) == set(HANDBOOK.values())


def set_up(rag: Rag, **values: Any) -> Rag:
    for name, value in values.items():
        setattr(rag, name, value)
    return rag


@pytest.mark.parametrize(
    ("values", "path", "words"),
    [
        ({"shows": False}, "", r"shows no passages .* \(its replies have only 'answer'\)"),
        ({"openapi": None, "fixed": {"/": PAGE}}, "/", "HTML page and no API"),
        ({"openapi": None, "fixed": {"/ask": PAGE}}, "/ask", "answers with an HTML page in place of JSON"),
        ({"openapi": None}, "", "neither an OpenAPI page nor a chat"),
        ({"openapi": None}, "/nowhere", "answered a question with status 404"),
        ({"openapi": {"openapi": "3.1.0", "paths": {}}}, "", "names nothing that takes a question"),
        ({"fixed": {"/ask": (500, "text/plain", "Boom")}}, "", "status 500: 'Boom'"),
    ],
)
def test_what_is_no_rag_is_one_sentence(rag: Rag, values: dict[str, Any], path: str, words: str) -> None:
    with pytest.raises(UnpoisonError, match=words) as raised:
        opened(set_up(rag, **values).url + path)
    assert "\n" not in str(raised.value)


def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UnpoisonError, match=rf"nothing listens on '127.0.0.1:{port}' \(port {port}\)"):
            opened(f"http://127.0.0.1:{port}")


def test_another_machine_wants_consent() -> None:
    with pytest.raises(OptionError, match=r"--i-may-test 192\.0\.2\.1"):
        opened("http://192.0.2.1:8000")
