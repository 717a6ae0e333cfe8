"""Bodies as `/openapi.json` describes them, and bodies that it forbids: the service does what its description says.

The strategies are made from the description, so that a new field is tried without a new test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from service_doubles import Marked
from unpoison.models import FunctionGenerator
from unpoison.serve import create_app

OTHER_NAMES = ("query", "question", "query_embedding")
KINDS = {"anyOf", "oneOf", "$ref", "type"}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    defense = Marked(generator=FunctionGenerator(lambda prompt: "an answer"))
    with TestClient(create_app({"marked": defense}), raise_server_exceptions=False) as made:
        yield made


def described() -> dict[str, Any]:
    with TestClient(create_app({"marked": Marked()})) as made:
        found: dict[str, Any] = made.get("/openapi.json").json()
    return found


PAGE = described()
BODIES = {
    path: operations["post"]["requestBody"]["content"]["application/json"]["schema"]
    for path, operations in PAGE["paths"].items()
    if "post" in operations
}


def whole(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to."""
    return {**schema, "components": PAGE["components"]}


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    if "$ref" in schema:
        return values(PAGE["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "type" not in schema and (several := schema.get("anyOf") or schema.get("oneOf")):
        return st.one_of(map(values, several))
    if not KINDS & schema.keys():
        return ANY
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    most = schema.get("maxItems", 3)
    low = int(schema.get("minimum", -(2**70)))
    match schema["type"]:
        case "string":
            return st.text(max_size=min(schema.get("maxLength", 40), 40))
        case "array":
            return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=min(most, 3))
        case "integer":
            return st.integers(low, 2**70)
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False) | st.integers()
        case "object":
            own = {name: values(field) for name, field in schema["properties"].items()}
            needed = {name: own.pop(name) for name in schema.get("required", ())}
            chosen = schema.get("oneOf") or schema.get("anyOf") or [{"required": []}]
            return st.sampled_from(chosen).flatmap(
                lambda one: st.fixed_dictionaries(
                    {**needed, **{name: st.just("a text") for name in one["required"]}},
                    optional={
                        name: field for name, field in own.items() if name not in (*OTHER_NAMES, *one["required"])
                    },
                )
            )
        case kind:
            return {"boolean": st.booleans(), "null": st.none()}[kind]


def changed(body: Any, draw: Any) -> Any:
    """A body with one field of another kind, without one, or with one more."""
    body = json.loads(json.dumps(body))
    name = draw(st.sampled_from([*body, "another"]))
    if draw(st.booleans()):
        return {field: value for field, value in body.items() if field != name}
    return {**body, name: draw(ANY)}


@pytest.mark.parametrize("path", BODIES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_body_is_taken_or_refused_as_described(client: TestClient, path: str, data: st.DataObject) -> None:
    schema = whole(BODIES[path])
    body = data.draw(values(schema))
    if data.draw(st.booleans()):
        body = changed(body, data.draw)
    reply = client.post(path, content=json.dumps(body).encode(), headers=JSON)
    assert reply.status_code in (200, 400, 422, 504), (body, reply.text)
    if reply.status_code != 200:
        problem = reply.json()["error"]
        assert set(problem) == {"type", "message"}
        assert problem["message"].isprintable()
        assert len(problem["message"]) < 600
    elif error := next(Draft202012Validator(schema).iter_errors(body), None):
        raise AssertionError(f"taken, although {error.message}: {body}")
