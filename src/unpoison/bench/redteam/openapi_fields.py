"""Fields of an OpenAPI document's schemas by the names that systems give them, and values for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

from unpoison.bench.redteam.objects import ANSWERS, PASSAGES

__all__ = ["answer_path", "authorization_of", "body_of", "id_path", "members", "passages_path"]

QUESTIONS = ("question", "query", "q", "prompt", "message", "input", "user_input", "user_message", "text", "content")
TEXTS = ("text", "content", "page_content", "passage", "document", "body", "data", "chunk")
LISTS = ("documents", "texts", "passages", "chunks", "items", "docs", "data", "contents")
SESSIONS = ("session_id", "sessionid", "thread_id", "conversation_id", "chat_id", "session", "user_id", "user")
IDS = ("id", "ids", "document_id", "doc_id", "document_ids", "doc_ids", "uuid", "file_id")
NAMES = ("source", "filename", "file_name", "name", "url", "canary")
"""Of fields, the surest first."""

MAX_DEPTH = 4


def authorization_of(scheme: Mapping[str, Any], base: str) -> dict[str, Any]:
    """The `headers`, and perhaps the `login`, of a security scheme; nothing where it is of another kind.

    Args:
        scheme: It, with the `tokenUrl` of its password flow where it has one.
        base: The address that a relative one begins with.
    """
    kind, url = scheme.get("type"), scheme.get("tokenUrl")
    if kind == "oauth2" and isinstance(url, str) and url:
        form = {"username": "${RAG_USER}", "password": "${RAG_PASSWORD}"}
        login = {"url": urljoin(f"{base}/", url), "form": form, "take": {"token": "$.access_token"}}
        return {"headers": {"Authorization": "Bearer {token}"}, "login": login}
    if kind == "http" and str(scheme.get("scheme")).lower() == "bearer":
        return {"headers": {"Authorization": "Bearer ${RAG_TOKEN}"}}
    if kind == "apiKey" and scheme.get("in") == "header" and isinstance(scheme.get("name"), str):
        return {"headers": {scheme["name"]: "${RAG_API_KEY}"}}
    return {}


def members(name: str, what: str) -> str | None:
    """The place that goes where a field has this name, in a call of this kind; None where none is known."""
    plain = name.lower()
    if what == "ask":
        return "{question}" if plain in QUESTIONS else "{uuid}" if plain in SESSIONS else None
    if what == "remove":
        return "{id}" if plain in IDS else None
    if plain in TEXTS:
        return "{text}"
    return "{uuid}" if plain in IDS else "{title}" if plain == "title" else "{canary}" if plain in NAMES else None


def body_of(schema: Any, what: str) -> Any:
    """A body with its places; None where it has none for what the call is about."""
    own = {"ask": "{question}", "plant": "{text}", "remove": "{id}"}[what]
    body = _fill(schema, what, own, 0)
    return body if own in _texts(body) else None


def _fill(schema: Any, what: str, own: str, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return None
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        return _fill_object(schema, properties, what, own, depth)
    if schema.get("type") == "array":
        items = schema.get("items")
        if isinstance(items, Mapping) and items.get("type") == "string":
            return [own]
        return [_fill(items, what, own, depth + 1)]
    if schema.get("type") == "object" and what == "plant" and depth == 1:
        return {"id": "{uuid}", "text": own}  # a document without fields of its own
    return None


def _fill_object(schema: Mapping[str, Any], properties: Mapping[str, Any], what: str, own: str, depth: int) -> Any:
    required, filled, done = schema.get("required") or (), dict[str, Any](), False
    for name in _by_rank(properties, what):
        part = properties[name] if isinstance(properties[name], Mapping) else {}
        plain, kind = name.lower(), part.get("type")
        place = members(name, what)
        if what == "ask" and plain == "messages":
            filled[name], done = [{"role": "user", "content": own}], True
        elif what == "plant" and plain in ("metadata", "meta"):
            filled[name] = {"canary": "{canary}"}
        elif kind == "array" and not done and (plain in LISTS or place == own):
            inside = _fill(part, what, own, depth + 1)
            if own in _texts(inside):
                filled[name], done = inside, True
        elif place is not None and kind in (None, "string") and not (place == own and done):
            filled[name], done = place, done or place == own
        elif name in required:
            filled[name] = _default(part)
    return {name: filled[name] for name in properties if name in filled}


def _by_rank(properties: Mapping[str, Any], what: str) -> list[str]:
    """The names, the surest for the question or the text first."""
    order = {"ask": ("messages", *QUESTIONS), "plant": (*TEXTS, *LISTS), "remove": IDS}[what]
    ranks = {name: rank for rank, name in enumerate(order)}
    return sorted(properties, key=lambda name: ranks.get(name.lower(), len(ranks)))


def _default(part: Mapping[str, Any]) -> Any:
    """A value for a field that must be there and nobody knows."""
    for name in ("default", "example", "const"):
        if isinstance(part.get(name), (str, int, float, bool)):
            return part[name]
    choices = part.get("enum")
    if isinstance(choices, list) and choices and isinstance(choices[0], (str, int, float)):
        return choices[0]
    return {"integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}.get(str(part.get("type")), "")


def answer_path(schema: Any) -> str:
    """Where the answer stands; `$.answer` where the schema does not say."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return "text"
    for path, name, part in _fields(schema):
        if name in ANSWERS and part.get("type") in ("string", None) and "properties" not in part:
            return path
    return "$.answer"


def passages_path(schema: Any) -> str | None:
    """Where the texts of the passages stand; None where the schema does not say."""
    for path, name, part in _fields(schema):
        items = part.get("items")
        if name not in PASSAGES or not isinstance(items, Mapping):
            continue
        if items.get("type") == "string":
            return f"{path}[*]"
        names = items.get("properties")
        text = next((key for key in TEXTS if isinstance(names, Mapping) and key in names), None)
        if text is not None:
            return f"{path}[*].{text}"
    return None


def id_path(schema: Any) -> str | None:
    """Where the new document's id, or its pieces' ids, stand; None where the schema does not say."""
    for path, name, part in _fields(schema):
        if name in IDS and part.get("type") in ("string", "integer"):
            return path
        items = part.get("items")
        if name in IDS and isinstance(items, Mapping) and items.get("type") in ("string", "integer"):
            return f"{path}[*]"
    return None


def _fields(schema: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(path, name in small letters, schema) of every field with a plain name, the shallowest first."""
    waiting: list[tuple[str, Any, int]] = [("$", schema, 0)]
    while waiting:
        path, held, depth = waiting.pop(0)
        if not isinstance(held, Mapping) or depth > MAX_DEPTH:
            continue
        if isinstance(held.get("items"), Mapping) and not isinstance(held.get("properties"), Mapping):
            waiting.append((f"{path}[*]", held["items"], depth + 1))
        properties = held.get("properties")
        ranked = _ranked(properties) if isinstance(properties, Mapping) else []
        for name, part in ranked:
            if name.isidentifier() and isinstance(part, Mapping):
                yield f"{path}.{name}", name.lower(), part
                waiting.append((f"{path}.{name}", part, depth + 1))


def _ranked(properties: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    order = {name: rank for rank, name in enumerate((*ANSWERS, *PASSAGES, *IDS))}
    return sorted(properties.items(), key=lambda pair: order.get(pair[0].lower(), len(order)))


def _texts(body: Any) -> list[str]:
    """All strings in a body."""
    if isinstance(body, str):
        return [body]
    parts = body.values() if isinstance(body, Mapping) else body if isinstance(body, list) else ()
    return [text for part in parts for text in _texts(part)]
