"""The first configuration: what is made of an OpenAPI document, or of three addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.redteam.running_system import serve_system
from unpoison.bench.redteam import Config, Hosts
from unpoison.bench.redteam.http_calls import Requests
from unpoison.bench.redteam.openapi import OpenApi
from unpoison.bench.redteam.starter import ask_of, plant_of, read_openapi, remove_of, target_of_openapi, write_config
from unpoison.errors import InputError, OptionError

BASE = "http://127.0.0.1:8000"


def schema(**properties: Any) -> dict[str, Any]:
    """An object; a field whose name ends in an underscore must be there."""
    plain = {name.rstrip("_"): {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()}
    return {"type": "object", "properties": plain, "required": [n[:-1] for n in properties if n.endswith("_")]}


def content(of: Any, kind: str = "application/json") -> dict[str, Any]:
    return {"content": {kind: {"schema": of}}}


def operation(body: Any = None, reply: Any = None, *parameters: str, kind: str = "application/json") -> dict[str, Any]:
    return {
        "requestBody": content(body, kind) if body is not None else None,
        "responses": {"200": content(reply if reply is not None else {})},
        "parameters": [{"name": name, "in": "query"} for name in parameters],
    }


TEXTS = {"type": "array", "items": {"type": "string"}}
SOURCES = {"type": "array", "items": {"$ref": "#/components/schemas/Source"}}
FASTAPI = {
    "openapi": "3.1.0",
    "components": {
        "schemas": {
            "Source": schema(score="number", page_content="string"),
            "Question": schema(query_="string", top_k_={"type": "integer", "default": 4}, session_id="string"),
            "Loop": {"$ref": "#/components/schemas/Loop"},
        },
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
    },
    "paths": {
        "/health": {"get": operation()},
        "/documents": {
            "get": operation(None, {}, "limit"),
            "post": operation(schema(text_="string", metadata="object"), schema(document_ids=TEXTS)),
        },
        "/documents/{document_id}": {"delete": operation()},
        "/api/ask": {
            "post": operation(
                {"$ref": "#/components/schemas/Question"}, schema(answer={"type": ["string", "null"]}, sources=SOURCES)
            )
        },
        "/loop": {"post": operation({"$ref": "#/components/schemas/Loop"})},
    },
}


WIDE = schema(**{f"field{number}": {"$ref": "#/components/schemas/Wide"} for number in range(50)})
"""Fifty fields that are fifty fields, and so on."""


def suggest(document: dict[str, Any], base: str | None = BASE) -> dict[str, Any]:
    return target_of_openapi(OpenApi.of(json.dumps(document).encode(), base))


def test_a_described_system_needs_no_question():
    target = suggest(FASTAPI)
    assert target == {
        "headers": {"Authorization": "Bearer ${RAG_TOKEN}"},
        "ask": {
            "method": "POST",
            "url": f"{BASE}/api/ask",
            "body": {"query": "{question}", "top_k": 4, "session_id": "{uuid}"},
            "answer": "$.answer",
            "passages": "$.sources[*].page_content",
        },
        "plant": {
            "method": "POST",
            "url": f"{BASE}/documents",
            "body": {"text": "{text}", "metadata": {"canary": "{canary}"}},
            "id": "$.document_ids[*]",
        },
        "remove": {"method": "DELETE", "url": f"{BASE}/documents/{{id}}"},
    }
    assert Requests.read(target, "target").ask[0].passages is not None


@pytest.mark.parametrize(
    ("paths", "target"),
    [
        (  # txtai: a list of documents with ids of ours, and the question in the address
            {
                "/search": {"get": operation(None, {"type": "array", "items": schema(id="string")}, "query", "limit")},
                "/add": {"post": operation({"type": "array", "items": {"type": "object"}})},
                "/delete": {"post": operation(TEXTS)},
            },
            {
                "ask": {"method": "GET", "url": f"{BASE}/search?query={{question}}", "answer": "$.answer"},
                "plant": {"method": "POST", "url": f"{BASE}/add", "body": [{"id": "{uuid}", "text": "{text}"}]},
                "remove": {"method": "POST", "url": f"{BASE}/delete", "body": ["{id}"]},
            },
        ),
        (  # an upload, a chat, and a workspace that only the user knows
            {
                "/{workspace}/chat": {
                    "post": operation(schema(messages_=TEXTS, stream_="boolean"), {"type": "string"})
                },
                "/upload": {
                    "post": operation(schema(upload={"type": "string", "format": "binary"}), kind="multipart/form-data")
                },
                "/remove": {"post": operation(schema(ids_=TEXTS, reason_="string"))},
            },
            {
                "ask": {
                    "method": "POST",
                    "url": f"{BASE}/${{RAG_WORKSPACE}}/chat",
                    "body": {"messages": [{"role": "user", "content": "{question}"}], "stream": False},
                    "answer": "text",
                },
                "plant": {"method": "POST", "url": f"{BASE}/upload", "file": {"field": "upload"}, "id": "$.id"},
                "remove": {"method": "POST", "url": f"{BASE}/remove", "body": {"ids": ["{id}"], "reason": ""}},
            },
        ),
        ({"/health": {"get": operation()}}, {}),
    ],
)
def test_other_shapes(paths, target):
    assert suggest({"paths": paths}) == target


@pytest.mark.parametrize(
    ("scheme", "headers", "login"),
    [
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, {"X-Key": "${RAG_API_KEY}"}, None),
        ({"type": "http", "scheme": "basic"}, None, None),
        (
            {"type": "oauth2", "flows": {"password": {"tokenUrl": "token"}}},
            {"Authorization": "Bearer {token}"},
            f"{BASE}/token",
        ),
        ({"type": "oauth2", "flows": {"implicit": {}}}, None, None),
    ],
)
def test_how_it_wants_to_be_authorised(scheme, headers, login):
    target = suggest({**FASTAPI, "components": {**FASTAPI["components"], "securitySchemes": {"a": 1, "b": scheme}}})
    assert target.get("headers") == headers
    assert target.get("login", {}).get("url") == login
    assert Requests.read(target, "target")


def test_servers_of_the_document_and_where_it_was_found():
    absolute = {**FASTAPI, "servers": [{"url": "http://127.0.0.1:9/api/"}]}
    assert suggest(absolute, None)["remove"]["url"] == "http://127.0.0.1:9/api/documents/{id}"
    relative = {**FASTAPI, "servers": [{"url": "/v2"}]}
    assert suggest(relative)["remove"]["url"] == f"{BASE}/v2/documents/{{id}}"
    with pytest.raises(InputError, match="does not say where the system is"):
        suggest(FASTAPI, None)


@pytest.mark.parametrize(
    "document",
    [
        {"paths": {"/ask": {"post": {"requestBody": {"$ref": "#/paths"}, "responses": 3, "parameters": [1]}}}},
        {"paths": {"/ask": {"post": {"requestBody": content({"anyOf": [{"type": "null"}, {"$ref": "#"}]})}}}},
        {"paths": {"/ask": 1, 2: {}, "x": {}}, "components": 1, "servers": [1]},
        {"paths": {"/ask/{question}/{}": {"get": operation()}}, "components": {"securitySchemes": {"a": 1}}},
        {"paths": {"/ask": {"post": operation({"properties": 1, "required": 2, "allOf": {"a": 1}, "items": 3})}}},
        {
            "paths": {
                "/ask": {"post": {"parameters": 1, "responses": {"200": {"content": {"a": 1}}}, "operationId": []}}
            }
        },
        {"paths": {"/ask": {"post": operation(WIDE)}}, "components": {"schemas": {"Wide": WIDE}}},
        {"paths": {"/ask": {"post": operation({"allOf": [{"allOf": [{"$ref": "#/paths/~1ask"}]}] * 50})}}},
    ],
)
def test_a_hostile_document_suggests_what_it_can_and_harms_nothing(document):
    assert suggest(document).keys() <= {"login", "headers", "ask", "plant", "remove"}


KEY = "${AWS_SECRET_ACCESS_KEY}"
TOKEN = {"type": "oauth2", "flows": {"password": {"tokenUrl": f"token?{KEY}"}}}


@pytest.mark.parametrize(
    "document",
    [
        {"paths": {"/ask": {"post": operation(schema(query="string", x_={"type": "string", "default": KEY}))}}},
        {"paths": {"/ask": {"post": operation(schema(query="string", x_={"enum": [KEY]}))}}},
        {"paths": FASTAPI["paths"], "servers": [{"url": f"{BASE}/{KEY}"}]},
        {"paths": {}, "components": {"securitySchemes": {"a": TOKEN}}},
    ],
)
def test_a_hostile_document_asks_for_no_variable_of_the_environment(document):
    with pytest.raises(InputError, match="AWS_SECRET_ACCESS_KEY}, a variable of your environment"):
        suggest(document)


def test_places_that_the_user_fills_are_variables_of_this_test_alone():
    paths = {
        f"/documents/{{{name}}}/{{id}}": {"delete": operation()} for name in ("aws_secret_access_key", "rag_hr", "1")
    }
    urls = {
        OpenApi.of(json.dumps({"paths": {path: item}}).encode(), BASE).remove()["url"] for path, item in paths.items()
    }
    names = {url.removeprefix(f"{BASE}/documents/").removesuffix("/{id}") for url in urls}
    assert names == {"${RAG_AWS_SECRET_ACCESS_KEY}", "${RAG_HR}", "${RAG_1}"}


@pytest.mark.parametrize("text", [b"[]", b"{}", b"a: [", b"<html>", b'{"paths": 3}', b"[" * 100_000])
def test_what_is_no_document_is_named(text):
    with pytest.raises(InputError, match="this is no OpenAPI document"):
        OpenApi.of(text, BASE)


def test_addresses_alone(tmp_path):
    target = {
        "ask": ask_of(f"{BASE}/ask"),
        "plant": plant_of(f"{BASE}/documents"),
        "remove": remove_of(f"{BASE}/documents/{{id}}"),
    }
    text = write_config(target, "fragen.jsonl", "redteam.yaml")
    (tmp_path / "redteam.yaml").write_text(text)
    config = Config.load(tmp_path / "redteam.yaml")
    assert (config.target, config.questions) == (target, "fragen.jsonl")
    assert yaml.safe_load(text)["target"] == target


@pytest.mark.parametrize(
    ("url", "preset"),
    [("/v1/chat/completions", "openai"), ("/openai/chat/completions/", "openai"), ("/api/chat", "ollama")],
)
def test_a_chat_endpoint_is_a_preset(url, preset):
    assert ask_of(BASE + url) == {"preset": preset, "url": BASE + url, "model": "${RAG_MODEL}"}
    assert ask_of(BASE + url, "m")["model"] == "m"


def test_a_described_address_has_its_own_fields():
    document = OpenApi.of(json.dumps(FASTAPI).encode(), BASE)
    assert ask_of(f"{BASE}/api/ask", document=document)["body"]["query"] == "{question}"
    assert ask_of(f"{BASE}/other", document=document)["body"] == {"question": "{question}"}


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x/y", "http://me:pa55@127.0.0.1/", "http://[::1/"])
def test_what_is_no_address_is_named_without_its_password(url):
    with pytest.raises(OptionError, match="is no address; write one such as") as refused:
        ask_of(url)
    assert "pa55" not in str(refused.value)


def test_a_document_is_read_from_a_file_or_an_address_that_may_be_tested(tmp_path: Path):
    path = tmp_path / "openapi.yaml"
    path.write_text(yaml.safe_dump({**FASTAPI, "servers": [{"url": BASE}]}))
    assert read_openapi(str(path), Hosts()).base == BASE
    with pytest.raises(OptionError, match=r"--i-may-test 192\.0\.2\.7"):
        read_openapi("http://192.0.2.7/openapi.json", Hosts())
    with pytest.raises(InputError, match="cannot be read"):
        read_openapi(str(tmp_path / "nothing.json"), Hosts())
    with serve_system() as system:
        system.described = FASTAPI
        assert read_openapi(f"{system.url}/openapi.json", Hosts()).base == system.url
