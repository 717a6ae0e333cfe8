"""Whatever is sent, the reply is a sentence or a result, never a stack trace and never the process's end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service_doubles import body, problem

JSON = {"Content-Type": "application/json"}
ROUTES = (
    "/v1/screen",
    "/v1/answer",
    "/rerank",
    "/v1/rerank",
    "/v2/rerank",
    "/play",
    "/play/answer",
)


@pytest.mark.parametrize("path", ["/v1/answer", "/rerank", "/play"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"nonsense",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b"5",
        b'"text"',
        b"{}",
        b'{"query": 5, "passages": "x", "documents": "x"}',
        b'{"query": null, "passages": null, "documents": null}',
        b'{"query": {"a": 1}, "passages": {"a": 1}, "documents": {"a": 1}}',
        b"[" * 100_000,
        b"[" * 900 + b"]" * 900,
        b'{"query": "q", "passages": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"query": "q", "documents": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"query": "q", "passages": [{"text": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}]}",
        b'{"query": "q", "texts": [' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"]}",
        b'{"query": "q", "passages": [' + b"9" * 5000 + b"]}",
    ],
    ids=range(19),
)
def test_unusable_bodies_are_refused_in_a_sentence(client: TestClient, path: str, content: bytes) -> None:
    response = client.post(path, content=content, headers=JSON)
    message = problem(response, response.status_code)
    assert response.status_code in (400, 422)
    assert len(message) < 400
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("passage", "said"),
    [
        (5, "passages[1] should be a text, or an object with 'text', got 5"),
        (None, "passages[1] should be a text, or an object with 'text', got None"),
        (["a"], "passages[1] should be a text, or an object with 'text', got a list"),
        ({"text": 5}, "passages[1].text should be a valid string, got 5"),
        ({"text": None}, "passages[1].text must be a string, got None"),
        ({"txt": "a"}, "passages[1] has no text"),
        ({"text": "a", "embedding": [float("nan")]}, "passages[1].embedding[0] should be a finite number, got nan"),
        ({"text": "a", "embedding": [float("inf")]}, "passages[1].embedding[0] should be a finite number, got inf"),
        ({"text": "a", "embedding": [1e300]}, "passages[1].embedding[0] is 1e+300, which is no finite float32"),
        ({"text": "a", "embedding": []}, "passages[1].embedding must be one vector of numbers"),
        ({"text": "a", "embedding": [[1.0]]}, "passages[1].embedding[0] should be a valid number, got a list"),
        ({"text": "a", "embedding": "x"}, "passages[1].embedding should be a valid list, got 'x'"),
        ({"text": "a", "embedding": {"a": 1}}, "passages[1].embedding should be a valid list, got an object"),
        ({"text": "a", "score": float("nan")}, "passages[1].score should be a finite number, got nan"),
        ({"text": "a", "title": 3}, "passages[1].title should be a valid string, got 3"),
    ],
)
def test_passage_is_named_with_its_field_and_value(client: TestClient, passage: Any, said: str) -> None:
    content = json.dumps(body(passages=["clean", passage])).encode()
    assert problem(client.post("/v1/screen", content=content, headers=JSON), 422).startswith(said)


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xjson",
        "text/plain; application/json",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/v1/screen", "/rerank", "/play"])
def test_bodies_that_a_foreign_page_could_send_unasked_are_refused(client: TestClient, path: str, kind: str) -> None:
    """A browser asks first (CORS) before it sends application/json elsewhere, and is told no."""
    content = json.dumps({**body(), "documents": ["a"]}).encode()
    headers = {"Content-Type": kind} if kind else {}
    assert "Content-Type: application/json" in problem(client.post(path, content=content, headers=headers), 415)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "embedding", "id", "x"]), inner)
    ),
    max_leaves=6,
)
FIELDS = ("query", "passages", "documents", "texts", "embedding", "defense", "model", "top_n", "return_text")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(ROUTES), st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES))
def test_any_json_gets_a_reply(client: TestClient, path: str, value: dict[str, Any]) -> None:
    response = client.post(path, json=value)
    assert response.status_code in (200, 422, 501)
    if response.status_code != 200:
        problem(response, response.status_code)
