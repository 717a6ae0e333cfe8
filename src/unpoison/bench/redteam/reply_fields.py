"""Where the answer, the passages and their names, or a new document's id, stand in a reply that no schema describes.

A guess by the names that systems give their fields, made on one reply. The reply is hostile: it is bounded, and what
is found in it only says where to look in the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.objects import PASSAGES
from unpoison.bench.redteam.openapi_fields import IDS, TEXTS, answer_path, id_path
from unpoison.errors import UnpoisonError

__all__ = ["complete_ask", "new_id", "read_paths", "source_of"]

LISTS = (*PASSAGES, "citations", "chunks", "results", "matches", "hits", "references", "retrieved", "docs", "evidence")
"""Names of lists of passages, the surest first."""

INNER = ("document", "node", "payload", "metadata", "meta")
"""What a passage may keep its text or source in."""

KEYS = (*IDS, "chunk_id")
SOURCES = ("source", "url", "uri", "path", "file_path", "file", "filename", "file_name")
AROUND = ("data", "result", "results", "document", "documents", "item", "items", "response")
"""Where a new document's id may stand within; the id in any other object is that of something else."""

MAX_DEPTH, MAX_MEMBERS = 6, 100
WORDS = 4
"""With fewer words a text in a list is a name and no passage."""


def complete_ask(ask: Mapping[str, Any], reply: Any) -> dict[str, Any]:
    """The call with paths that lead to something in this reply; what leads there already stays.

    Args:
        ask: The request, perhaps with `answer`, `passages` and `ids`.
        reply: Its reply.
    """
    found = dict(ask)
    if not any(isinstance(value, str) for value in _values(ask.get("answer"), reply)):
        found["answer"] = answer_path(_schema_of(reply))
    if not _values(ask.get("passages"), reply):
        found.update(read_paths(reply, (*SOURCES, *KEYS)), **({"ids": ask["ids"]} if "ids" in ask else {}))
    return found


def read_paths(reply: Any, names: tuple[str, ...] = KEYS) -> dict[str, str]:
    """The paths of `passages`, the texts, and of `ids`, what names them, where a reply has fields that are called so.

    Args:
        reply: It.
        names: What the field of a name may be called, the surest first.
    """
    for path, values in _lists(reply):
        if isinstance(values[0], str) and _holds_texts(values):
            return {"passages": f"{path}[*]"}
        text = _member(values[0], TEXTS, str)
        if text is not None:
            name = _member(values[0], names, str, int)
            return {"passages": f"{path}[*].{text}"} | ({"ids": f"{path}[*].{name}"} if name else {})
        held = values[0] if isinstance(values[0], Mapping) else {}
        several = next((name for name in (*TEXTS, *LISTS) if _holds_texts(held.get(name))), None)
        if several is not None:  # each source with its pieces
            return {"passages": f"{path}[*].{several}[*]"}
    return {}


def new_id(reply: Any) -> str | None:
    """The path of the id of a document that was added, or of its pieces; None where no field is called so."""
    found = id_path(_schema_of(reply))
    if found is None:
        return None
    *around, _ = found.removeprefix("$.").replace("[*]", "").split(".")
    return found if all(name in AROUND for name in around) else None


def source_of(name: str) -> str | None:
    """A passage's name where it says whose it is, as an address or a file does; None for a number or a key."""
    last = name.rstrip("/").rpartition("/")[2]
    suffix = last.rpartition(".")[2] if "." in last else ""
    return name if "/" in name or (suffix.isalnum() and not suffix.isdigit()) else None


def _values(path: object, reply: Any) -> list[Any]:
    try:
        read = JsonPath.of(path, "a path")
        return [reply] if read.whole else read.values(reply)
    except UnpoisonError:
        return []


def _schema_of(value: Any, depth: int = 0) -> dict[str, Any]:
    """What an OpenAPI document would say of this value, as far as its fields' names matter."""
    if isinstance(value, str):
        return {"type": "string"}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"type": "integer"}
    if depth > MAX_DEPTH:
        return {}
    if isinstance(value, Mapping):
        members = list(value.items())[:MAX_MEMBERS]
        return {"type": "object", "properties": {str(name): _schema_of(part, depth + 1) for name, part in members}}
    if isinstance(value, list):
        return {"type": "array", "items": _schema_of(value[0], depth + 1) if value else {}}
    return {}


def _holds_texts(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(one, str) and len(one.split()) >= WORDS for one in values)


def _lists(reply: Any) -> list[tuple[str, list[Any]]]:
    """(path, members) of every filled list with a name of `LISTS`: the surest name first, then the shallowest."""
    waiting, looked = deque[tuple[str, Any, int]]([("$", reply, 0)]), 0
    lists: list[tuple[int, str, list[Any]]] = []
    while waiting and looked < 10 * MAX_MEMBERS:
        path, value, depth = waiting.popleft()
        looked += 1
        if isinstance(value, list) and value and depth < MAX_DEPTH:
            waiting.append((f"{path}[0]", value[0], depth + 1))
        if not isinstance(value, Mapping) or depth >= MAX_DEPTH:
            continue
        for name, part in list(value.items())[:MAX_MEMBERS]:
            if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
                continue
            if isinstance(part, list) and part and name.lower() in LISTS:
                lists.append((LISTS.index(name.lower()), f"{path}.{name}", part))
            waiting.append((f"{path}.{name}", part, depth + 1))
    return [(path, part) for _, path, part in sorted(lists, key=lambda found: found[0])]


def _member(item: Any, names: tuple[str, ...], *kinds: type) -> str | None:
    """The path within a member to the first of these names that holds something, in itself or one step within."""
    if not isinstance(item, Mapping):
        return None
    for prefix, held in (("", item), *((f"{name}.", item.get(name)) for name in INNER)):
        if isinstance(held, Mapping):
            for name in names:
                value = held.get(name)
                if isinstance(value, kinds) and not isinstance(value, bool) and value != "":
                    return prefix + name
    return None
