"""What is understood of a system by its OpenAPI page, its chat endpoint, or its first reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.check.rag_server import Rag, serve_rag
from unpoison.errors import InputError, UnpoisonError
from unpoison_lab.redteam.discovery import OpenApi, discover, reply_paths, shown_passages
from unpoison_lab.redteam.http_client import Hosts, HttpReply
from unpoison_lab.redteam.http_target import HttpTarget

BASE = "http://127.0.0.1:8000"


@pytest.fixture
def rag():
    with serve_rag() as running:
        yield running


def found(where: str, **environment: str) -> dict[str, Any]:
    return discover(where, Hosts(), environment=environment)


def test_a_page_without_models_and_a_reply_are_enough(rag: Rag) -> None:
    target = found(rag.url)
    assert (target["ask"]["url"], target["ask"]["body"]) == (f"{rag.url}/ask", {"question": "{question}"})
    assert (target["ask"]["answer"], target["ask"]["passages"]) == ("$.answer", "$.sources[*]")
    assert target["plant"]["body"] == {"text": "{text}"}
    assert target["remove"]["url"] == f"{rag.url}/documents/{{id}}"
    passages, asked = shown_passages(HttpTarget(target, Hosts()).ask)
    assert {passage.source for passage in passages} == {"hr/leave.md", "hr/travel.md", "it/backup.md"}
    assert asked == 8  # five questions, and the first sentence of each passage


def test_without_a_page_the_field_is_question(rag: Rag) -> None:
    rag.openapi = None
    target = found(f"{rag.url}/ask")
    assert (target["ask"]["body"], target["ask"]["passages"]) == ({"question": "{question}"}, "$.sources[*]")
    assert "plant" not in target
    with pytest.raises(UnpoisonError, match="status 422"):
        found(f"{rag.url}/chat")


@pytest.mark.parametrize("given", ["", "/v1", "/v1/chat/completions"])
def test_a_chat_endpoint_is_recognised_and_names_its_model(rag: Rag, given: str) -> None:
    rag.openapi, rag.chats = None, True
    ask = found(rag.url + given)["ask"]
    assert (ask["url"], ask["body"]["model"]) == (f"{rag.url}/v1/chat/completions", "handbook")
    assert ask["answer"].endswith("message.content")
    assert HttpTarget({"ask": ask}, Hosts()).ask("How many days of leave?").passages


def test_a_key_is_sent_where_it_is_set(rag: Rag) -> None:
    rag.key = "abcdefgh"
    with pytest.raises(InputError, match="export RAG_TOKEN="):
        found(rag.url)
    assert found(rag.url, RAG_TOKEN="abcdefgh")["headers"] == {"Authorization": "Bearer ${RAG_TOKEN}"}


@pytest.mark.parametrize(
    ("values", "path", "words"),
    [
        ({"openapi": None}, "", "neither an OpenAPI page"),
        ({"openapi": {"paths": {"/x": {"get": {}}}}}, "", "neither an OpenAPI page"),
        ({"fixed": {"/ask": (200, "text/html", "<!DOCTYPE html>")}}, "/ask", "an HTML page in place of JSON"),
        (
            {"fixed": {"/ask": (503, "text/plain", "busy")}},
            "/ask",
            "status 503, 'busy'; .*, such as '[^']*/ask',",
        ),
        ({"openapi": {"paths": {"/ask": {"post": {"x": "${AWS_SECRET}"}}}}}, "", "names a variable"),
    ],
)
def test_what_is_no_rag_is_one_sentence(rag: Rag, values: dict[str, Any], path: str, words: str) -> None:
    for name, value in values.items():
        setattr(rag, name, value)
    with pytest.raises(UnpoisonError, match=words):
        found(rag.url + path)


def body(**properties: Any) -> dict[str, Any]:
    schema = {"properties": properties, "required": list(properties)}
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("kind", "paths", "request_"),
    [
        (
            "ask",
            {"/api/rag": {"post": body(query=TEXT, top_k={"type": "integer", "default": 4}, session_id=TEXT)}},
            {"url": f"{BASE}/api/rag", "body": {"query": "{question}", "top_k": 4, "session_id": "{uuid}"}},
        ),
        (
            "plant",
            {"/docs/add": {"post": body(documents={"type": "array", "items": {"$ref": "#/components/schemas/Doc"}})}},
            {"body": {"documents": [{"page_content": "{text}", "metadata": {"canary": "{canary}"}}]}},
        ),
        ("plant", {"/texts": {"post": body(texts={"type": "array", "items": TEXT})}}, {"body": {"texts": ["{text}"]}}),
        (
            "plant",
            {
                "/upload": {
                    "post": {
                        "requestBody": {
                            "content": {
                                "multipart/form-data": {
                                    "schema": {"properties": {"document": {"type": "string", "format": "binary"}}}
                                }
                            }
                        }
                    }
                }
            },
            {"file": "document"},
        ),
        ("remove", {"/docs/{id}": {"delete": {}}}, {"method": "DELETE", "url": f"{BASE}/docs/{{id}}"}),
    ],
)
def test_shapes_of_operations(kind: str, paths: dict[str, Any], request_: dict[str, Any]) -> None:
    schemas = {"Doc": {"properties": {"page_content": TEXT, "metadata": {"type": "object"}}}}
    made = OpenApi({"paths": paths, "components": {"schemas": schemas}}, BASE).request(kind)
    assert made is not None
    assert request_.items() <= made.items()


def test_a_hostile_page_names_no_other_host_and_ends() -> None:
    loop = {"$ref": "#/components/schemas/Loop"}
    schemas = {"Loop": {"allOf": [loop], "properties": {"question": TEXT, "x": loop}, "required": ["x"]}}
    paths = {"/ask": {"post": {"requestBody": {"content": {"application/json": {"schema": loop}}}}}, "x": 3, "/y": []}
    page = OpenApi(
        {"servers": [{"url": "http://evil.example/v2"}], "paths": paths, "components": {"schemas": schemas}}, BASE
    )
    made = page.request("ask")
    assert made is not None
    assert made["url"] == f"{BASE}/v2/ask"


@pytest.mark.parametrize(
    ("reply", "paths"),
    [
        ({"response": "a", "source_nodes": [{"text": "b"}]}, ("$.response", "$.source_nodes[*]")),
        ({"data": {"answer": "a", "contexts": ["a text of four words"]}}, ("$.data.answer", "$.data.contexts[*]")),
        ({"result": "a", "sources": ["name.md"]}, ("$.result", None)),
        ("a", ("$", None)),
    ],
)
def test_fields_of_a_reply_by_their_names(reply: Any, paths: tuple[str, str | None]) -> None:
    found = reply_paths(HttpReply(200, json.dumps(reply)))
    assert (found["answer"], found.get("passages")) == paths


def test_fields_of_a_stream() -> None:
    events = ({"sources": [{"text": "one"}]}, {"token": "a"}, {"token": "b"})
    assert reply_paths(HttpReply(200, "", events)) == {"answer": "$.token", "passages": "$.sources[*]"}
    assert reply_paths(HttpReply(200, "", ("a", "b"))) == {"answer": "text"}
