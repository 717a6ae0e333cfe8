"""Whether a string of structured content may become another string and the content stay valid against its schema.

Nothing of a schema is run: the server wrote it, and patterns and references can be made to take for ever. A string is
free where the schema asks no more of it than to be a string of some length; everything else counts as bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unpoison.agents.leaves import Path

__all__ = ["is_free"]

HARMLESS = frozenset(
    (
        *("type", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "nullable"),
        *("minLength", "maxLength", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "$schema", "$id"),
        *("$comment", "properties", "required", "items", "prefixItems", "additionalProperties"),
    )
)
"""Keywords that leave a string free, apart from its length."""

MAX_NODES = 1_000
"""Parts of a schema that are looked at for one string."""


def is_free(schema: object, path: Path, text: str) -> bool:
    """Whether this text may stand at a path. O(d) time for the depth of the path, at most 1,000 parts at each step."""
    here = [schema]
    for step in path:
        inside: list[object] = []
        for one in _alternatives(here, schema):
            if one is None:
                return False
            inside.extend(_step(one, step))
        here = inside
        if len(here) > MAX_NODES:
            return False
    return all(one is not None and _admits(one, text) for one in _alternatives(here, schema))


def _alternatives(schemas: list[object], root: object) -> Iterator[Mapping[str, Any] | None]:
    """Every part of a schema that says something of a value; None where that cannot be found out."""
    stack, seen = list(schemas), 0
    while stack:
        one = stack.pop()
        seen += 1
        if seen > MAX_NODES:
            yield None
            return
        if one is True or one is None:
            continue
        if not isinstance(one, Mapping):
            yield None
            continue
        yield one
        for name in ("anyOf", "oneOf", "allOf"):
            parts = one.get(name, [])
            stack.extend(parts if isinstance(parts, list) else [False])
        if "$ref" in one:
            stack.append(_resolve(root, one["$ref"]))


def _resolve(root: object, reference: object) -> object:
    """What a reference into the schema itself names; False for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    here = root
    for name in filter(None, reference[1:].split("/")):
        here = here.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) and reference != "#" else False


def _step(schema: Mapping[str, Any], step: str | int) -> list[object]:
    """What a schema says of a member of the value."""
    if any(name in schema for name in ("not", "if", "patternProperties", "unevaluatedProperties", "dependentSchemas")):
        return [False]
    if isinstance(step, int):
        first = schema.get("prefixItems", [])
        if schema.get("uniqueItems") or "contains" in schema or not isinstance(first, list):
            return [False]
        return [first[step] if step < len(first) else schema.get("items")]
    named = schema.get("properties", {})
    if not isinstance(named, Mapping):
        return [False]
    return [named[step] if step in named else schema.get("additionalProperties")]


def _admits(schema: Mapping[str, Any], text: str) -> bool:
    kinds = schema.get("type", "string")
    if kinds != "string" and not (isinstance(kinds, list) and "string" in kinds):
        return "enum" not in schema and "const" not in schema  # of another kind of value, beside a string
    if not HARMLESS.issuperset(schema):
        return False
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(text))
    return isinstance(least, int) and isinstance(most, int) and least <= len(text) <= most
