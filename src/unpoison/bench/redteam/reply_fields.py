"""What a reply holds by the names of its fields: where its passages, their ids, or a new document's id may stand."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.openapi_fields import IDS, id_path, passages_path
from unpoison.errors import TargetError

__all__ = ["new_id", "read_paths"]

MAX_DEPTH, MAX_FIELDS = 6, 100
"""Of a reply that are looked at: steps, and fields of an object."""

AROUND = ("data", "result", "results", "document", "documents", "item", "items", "response")
"""Where a document's id may stand within; the id in any other object is that of something else."""


def read_paths(reply: Any) -> dict[str, str]:
    """Paths to the texts of `passages`, and to their `ids`, where a reply has fields that are called so."""
    schema = _schema_of(reply, 0)
    found = passages_path(schema)
    if found is None or not _texts(found, reply):
        return {}
    parent = found.rpartition("[*]")[0]
    ids = [f"{parent}[*].{name}" for name in IDS]
    told = next((path for path in ids if JsonPath.of(path, "ids").values(reply)), None)
    return {"passages": found} | ({"ids": told} if told else {})


def new_id(reply: Any) -> str | None:
    """The path of the id of a document that was added, or of its pieces; None where no field is called so."""
    found = id_path(_schema_of(reply, 0))
    if found is None:
        return None
    *around, _ = found.removeprefix("$.").replace("[*]", "").split(".")
    return found if all(name in AROUND for name in around) else None


def _texts(path: str, reply: Any) -> bool:
    try:
        values = JsonPath.of(path, "passages").values(reply)
    except TargetError:
        return False
    return bool(values) and all(isinstance(value, str) for value in values)


def _schema_of(value: Any, depth: int) -> dict[str, Any]:
    """A value as the schema that would describe it, as far as the names of its fields are read."""
    if isinstance(value, Mapping) and depth < MAX_DEPTH:
        fields = islice(value.items(), MAX_FIELDS)
        return {"type": "object", "properties": {str(name): _schema_of(part, depth + 1) for name, part in fields}}
    if isinstance(value, list) and value and depth < MAX_DEPTH:
        return {"type": "array", "items": _schema_of(value[0], depth + 1)}
    kinds = {str: "string", int: "integer"}
    return {"type": kinds.get(type(value), "other")}
