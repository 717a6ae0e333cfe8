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
from unpoison_lab.redteam.targets import TargetReply

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


def reply_of(value: Any) -> HttpReply:
    return HttpReply(200, json.dumps(value))


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"text": "a", "answer": "b"}, "$.answer"),
        ({"a": {"answer": "x"}, "answer": "y"}, "$.answer"),
        ({"deep": {"answer": "x"}, "text": "y"}, "$.deep.answer"),
        ([{"reply": "a"}, {"answer": "b"}], "$[0].reply"),
        ({"answer": 3, "ANSWER": "x"}, "$.ANSWER"),
        ({"answer": None}, "text"),
        ({"not a name": {"answer": "x"}}, "text"),
        ([], "text"),
        (3, "text"),
    ],
)
def test_the_most_telling_name_is_the_answer_and_of_equals_the_shallowest(reply: Any, answer: str) -> None:
    assert reply_paths(reply_of(reply))["answer"] == answer
    assert reply_paths(HttpReply(200, "no json")) == {"answer": "text"}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"answer": "x"}
    for _ in range(depth):
        value = {"inner": value}
    return value


def test_a_reply_is_looked_through_to_a_depth_and_a_width() -> None:
    assert reply_paths(reply_of(nested(8)))["answer"] == "$" + ".inner" * 8 + ".answer"
    assert reply_paths(reply_of(nested(9)))["answer"] == "text"
    wide = {f"n{i}": i for i in range(99)}
    assert reply_paths(reply_of({**wide, "answer": "x"}))["answer"] == "$.answer"
    assert reply_paths(reply_of({**wide, "n99": 1, "answer": "x"}))["answer"] == "text"


@pytest.mark.parametrize(
    ("members", "passages"),
    [
        (["three short words"], False),
        (["a text of four"], True),
        ([{"text": "a"}], True),
        ([{"text": ""}], False),
        ([{"name": "a"}], False),
        ([3], False),
    ],
)
def test_a_list_of_names_holds_no_passages(members: list[Any], passages: bool) -> None:
    found = reply_paths(reply_of({"answer": "a", "sources": members}))
    assert found.get("passages") == ("$.sources[*]" if passages else None)


def test_an_empty_list_counts_by_its_name_where_it_may() -> None:
    reply = reply_of({"answer": "a", "docs": [], "passages": []})
    assert reply_paths(reply) == {"answer": "$.answer"}
    assert reply_paths(reply, empty=True) == {"answer": "$.answer", "passages": "$.passages[*]"}


def request(kind: str, paths: dict[str, Any], at: str = "", **page: Any) -> Any:
    return OpenApi({"paths": paths, **page}, BASE).request(kind, at)


ASK, ADD = {"post": body(question=TEXT)}, {"post": body(text=TEXT)}


@pytest.mark.parametrize(
    ("kind", "paths", "chosen"),
    [
        ("ask", {"/search": ASK, "/ask": ASK, "/chat": ASK}, "/ask"),
        ("ask", {"/v2/ask": ASK, "/v1/ask": ASK}, "/v2/ask"),
        ("ask", {"/x": {"post": {**body(question=TEXT), "operationId": "answerQuestion"}}}, "/x"),
        ("ask", {"/unknown": ASK, "/ask": {"get": body(question=TEXT)}}, None),
        ("ask", {"/ask": ADD | {"post": body(other=TEXT)}}, None),
        ("plant", {"/documents/search": ADD, "/index": ADD}, "/index"),
        ("plant", {"/users/{user}/documents": ADD}, None),
        ("remove", {"/documents/{key}": {"delete": {}}}, "/documents/{id}"),
        ("remove", {"/documents/{a}/{b}": {"delete": {}}}, None),
        ("remove", {"/documents": {"delete": {}}}, None),
        ("remove", {"documents/{id}": {"delete": {}}}, None),
    ],
)
def test_the_operation_whose_words_fit_best_is_taken(kind: str, paths: dict[str, Any], chosen: str | None) -> None:
    made = request(kind, paths)
    assert (made and made["url"]) == (None if chosen is None else BASE + chosen)


def test_an_address_names_its_operation_whatever_it_is_called() -> None:
    paths = {"/ask": ASK, "/odd": ASK}
    assert request("ask", paths, "/odd")["url"] == f"{BASE}/odd"
    assert request("ask", paths, "/other") is None
    assert request("ask", paths, servers=[{"url": "/api/"}])["url"] == f"{BASE}/api/ask"
    for servers in ([], [3], {}, [{"url": None}]):
        assert request("ask", paths, servers=servers)["url"] == f"{BASE}/ask"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "number"}, 1.0),
        ({"type": "boolean"}, False),
        ({"type": "array"}, []),
        ({"type": "object"}, {}),
        ({"type": "string"}, ""),
        ({"type": "string", "enum": ["fast", "slow"]}, "fast"),
        ({"type": "integer", "default": 7, "enum": [1]}, 7),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, False),
        ({}, ""),
    ],
)
def test_a_required_field_of_unknown_meaning_gets_a_plain_value(schema: dict[str, Any], value: Any) -> None:
    made = request("ask", {"/ask": {"post": body(question=TEXT, unknown=schema)}})["body"]
    assert made == {"question": "{question}", "unknown": value} and type(made["unknown"]) is type(value)


def test_a_field_that_is_not_required_is_left_out_and_messages_are_a_chat() -> None:
    described = body(question=TEXT, other=TEXT)
    described["requestBody"]["content"]["application/json"]["schema"]["required"] = []
    assert request("ask", {"/ask": {"post": described}})["body"] == {"question": "{question}"}
    chat = request("ask", {"/chat": {"post": body(messages={"type": "array"}, message=TEXT)}})["body"]
    assert chat["messages"] == [{"role": "user", "content": "{question}"}]


def test_what_is_planted_names_where_its_id_stands() -> None:
    made = request("plant", {"/add": {"post": body(content=TEXT, title=TEXT, source=TEXT, doc_id=TEXT)}})
    assert made["body"] == {"content": "{text}", "title": "{title}", "source": "{canary}", "doc_id": "{uuid}"}
    assert made["id"].startswith("$[id,ids,") and "id" not in request("ask", {"/ask": ASK})
    bare = {"requestBody": {"content": {"multipart/form-data": {}}}}
    assert request("plant", {"/upload": {"post": bare}})["file"] == "file"


@pytest.mark.parametrize("status", [401, 403])
def test_either_refusal_wants_a_key(rag: Rag, status: int) -> None:
    rag.fixed = {"/ask": (status, "text/plain", "no")}
    with pytest.raises(InputError, match=f"wants a key \\(status {status}\\): export RAG_TOKEN="):
        found(f"{rag.url}/ask")


def test_passages_are_each_shown_once_and_a_system_is_asked_no_further() -> None:
    asked, steps = list[str](), list[tuple[int, int]]()

    def endless(question: str) -> TargetReply:
        asked.append(question)
        return TargetReply(
            "a", (f"Passage number {len(asked)} is this. It has more.", "PASSAGE  number 1 is this. it has more.")
        )

    passages, count = shown_passages(endless, ("one?", "two?"), lambda done, of: steps.append((done, of)))
    assert count == len(asked) == len(passages) == 32 and steps == [(i, 32) for i in range(32)]
    assert asked[:3] == ["one?", "two?", "Passage number 1 is this."]

    def generous(question: str) -> TargetReply:
        return TargetReply("a", tuple(f"{i} of {question}" for i in range(100)))

    passages, count = shown_passages(generous, ("one?",))
    assert (count, len(passages)) == (2, 200)
    assert shown_passages(lambda question: TargetReply("a", ("", " "))) == ([], 5)
