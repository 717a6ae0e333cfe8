"""What an OpenAPI document (3.x) says of a system: how it is asked, and how documents are added and removed.

Operations are chosen by their words and fields: a guess, which `redteam check` then tries. The document is hostile, as
every reply: its size, its references and their depth are bounded, and it names nothing that is sent without being seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

import yaml

from unpoison.bench.redteam.openapi_fields import (
    answer_path,
    authorization_of,
    body_of,
    id_path,
    members,
    passages_path,
)
from unpoison.bench.redteam.secrets import VARIABLE
from unpoison.errors import InputError, clip
from unpoison.io.settings import walk

__all__ = ["OpenApi", "Operation"]

MAX_BYTES = 8 << 20
MAX_YAML, MAX_BRACKETS = 1 << 20, 5000
"""Bytes and opening brackets of a document in YAML, which takes much longer to read."""

MAX_OPERATIONS = 500
MAX_SCHEMAS = 1000
"""Of one body or reply, with all that it refers to."""

MAX_DEPTH = 8
MAX_REFERENCES = 30
"""From one schema to the next."""

ASKING = (
    "ask",
    "answer",
    "chat",
    "query",
    "question",
    "rag",
    "qa",
    "completions",
    "generate",
    "search",
    "invoke",
    "run",
)
PLANTING = ("documents", "document", "docs", "add", "ingest", "upload", "index", "texts", "insert", "upsert", "files")
REMOVING = ("delete", "remove")
"""Words of paths and names of operations; the first are the surest."""

OWN = "RAG_"
"""What the names of variables begin with that a suggested configuration may have."""

Filling = TypeVar("Filling", bound=dict[str, Any] | None)

_WORDS = re.compile(r"[A-Z]?[a-z]{1,40}")
_PLACE = re.compile(r"\{([^{}/]{1,100})\}")


class Operation(NamedTuple):
    """One operation.

    Attributes:
        method: Such as POST.
        path: With its places, such as `/documents/{id}`.
        words: Of its path and its name.
        parameters: Those that go into the address, by name.
        kind: The type of its body, "" without one.
        body: The body's schema.
        reply: The schema of a reply of success.
    """

    method: str
    path: str
    words: frozenset[str]
    parameters: tuple[str, ...]
    kind: str
    body: Any
    reply: Any


class OpenApi:
    """A document.

    Args:
        values: It.
        base: The address that its paths begin with.
    """

    def __init__(self, values: Mapping[str, Any], base: str) -> None:
        self._values, self.base = values, base.rstrip("/")
        self.operations = list(islice(self._operations(), MAX_OPERATIONS))

    @classmethod
    def of(cls, content: bytes, base: str | None) -> Self:
        """Read a document in JSON or YAML.

        Args:
            content: The file.
            base: Scheme and host where it was found; None for a file.

        Raises:
            InputError: It is none, or nobody knows where the system is.
        """
        if len(content) > MAX_BYTES:
            raise InputError(f"the OpenAPI document has {len(content):,} bytes, more than {MAX_BYTES:,}")
        try:
            values = json.loads(content)
        except (ValueError, RecursionError):
            values = _parse_yaml(content)
        if not isinstance(values, Mapping) or not isinstance(values.get("paths"), Mapping):
            raise InputError("this is no OpenAPI document: it has no paths; give its address, such as .../openapi.json")
        server = str(_mapping(next(iter(_list(values.get("servers"))), None)).get("url") or "")
        if server.startswith(("http://", "https://")):
            return cls(values, server)
        if base is None:
            raise InputError(
                "the OpenAPI document does not say where the system is; give its address in place of the file"
            )
        return cls(values, base.rstrip("/") + server)

    def authorization(self) -> dict[str, Any]:
        """How it wants to be authorised, as `headers` and perhaps `login`, with `${NAME}` in place of secrets."""
        components = _mapping(self._values.get("components"))
        for scheme in map(_mapping, _mapping(components.get("securitySchemes")).values()):
            password = _mapping(_mapping(scheme.get("flows")).get("password"))
            if found := authorization_of({**scheme, "tokenUrl": password.get("tokenUrl")}, self.base):
                return _check_variables(found)
        return {}

    def ask(self, path: str | None = None) -> dict[str, Any] | None:
        """The section `ask` that the document suggests, or for the operation at a path; None without one."""
        for operation in self._ranked(ASKING, path, ("POST", "GET")):
            filled = self._request(operation, "ask")
            if filled is None:
                continue
            told = passages_path(operation.reply)
            return filled | {"answer": answer_path(operation.reply)} | ({"passages": told} if told else {})
        return None

    def plant(self, path: str | None = None) -> dict[str, Any] | None:
        """The section `plant`."""
        for operation in self._ranked(PLANTING, path, ("POST", "PUT")):
            if path is None and operation.words & {"delete", "remove", "ask", "chat", "query"}:
                continue
            filled = self._request(operation, "plant")
            if filled is None:
                continue
            told, own = id_path(operation.reply), "{uuid}" in json.dumps(filled)
            return filled | ({"id": told or "$.id"} if told or not own else {})
        return None

    def remove(self, path: str | None = None) -> dict[str, Any] | None:
        """The section `remove`."""
        for operation in self._ranked((*REMOVING, *PLANTING), path, ("DELETE", "POST")):
            if path is None and operation.method == "POST" and not operation.words & set(REMOVING):
                continue
            filled = self._request(operation, "remove")
            if filled is not None:
                return filled
        return None

    def _ranked(self, words: Sequence[str], path: str | None, methods: Sequence[str]) -> list[Operation]:
        """The operations at a path; otherwise those that have such words, the surest first, and then the shortest."""
        usable = [operation for operation in self.operations if operation.method in methods]
        if path is not None:
            return [
                operation for operation in usable if self.base_path() + operation.path == path or operation.path == path
            ]
        ranks = {word: rank for rank, word in enumerate(words)}
        found = [operation for operation in usable if operation.words & ranks.keys()]

        def order(operation: Operation) -> tuple[int, int, int]:
            best = min(ranks[word] for word in operation.words & ranks.keys())
            return methods.index(operation.method), best, len(operation.path)

        return sorted(found, key=order)

    def base_path(self) -> str:
        """The path of the address that all begin with."""
        return "/" + self.base.split("://", 1)[-1].partition("/")[2] if "/" in self.base.split("://", 1)[-1] else ""

    def _request(self, operation: Operation, what: str) -> dict[str, Any] | None:
        """The request of an operation; None where it has no place for what `what` needs.

        Raises:
            InputError: It would send a variable of the environment that is not for this test.
        """
        return _check_variables(self._fill_request(operation, what))

    def _fill_request(self, operation: Operation, what: str) -> dict[str, Any] | None:
        own = {"ask": "question", "plant": "text", "remove": "id"}[what]
        path, used = operation.path, False
        for name in _PLACE.findall(path):
            last = path.endswith(f"{{{name}}}")
            place = "{id}" if what == "remove" and last else f"${{{_variable(name)}}}"
            used, path = used or place == "{id}", path.replace(f"{{{name}}}", place, 1)
        query = [(name, value) for name in operation.parameters if (value := members(name, what)) is not None]
        used = used or any(value == f"{{{own}}}" for _, value in query)
        url = self.base + path + ("?" if query else "") + "&".join(f"{quote(name)}={value}" for name, value in query)
        filled: dict[str, Any] = {"method": operation.method, "url": url}
        if "multipart" in operation.kind:
            field = next(
                (
                    name
                    for name, part in _properties(operation.body)
                    if str(part.get("format")) == "binary" or name == "file"
                ),
                None,
            )
            return filled | {"file": {"field": field}} if field and what == "plant" else None
        if operation.body is not None:
            body = body_of(operation.body, what)
            if body is not None:
                return filled | {"form" if "urlencoded" in operation.kind else "body": body}
        return filled if used else None

    def _operations(self) -> Iterator[Operation]:
        for path, item in self._values["paths"].items():
            if not isinstance(item, Mapping) or not isinstance(path, str) or not path.startswith("/"):
                continue
            for method in ("get", "post", "put", "delete"):
                if isinstance(described := item.get(method), Mapping):
                    yield self._operation(method.upper(), path, described)

    def _operation(self, method: str, path: str, described: Mapping[str, Any]) -> Operation:
        names = f"{_PLACE.sub('', path)} {described.get('operationId') or ''}"[:1000]
        parameters = map(self._resolve, _list(described.get("parameters")))
        own = tuple(str(part.get("name"))[:100] for part in parameters if part.get("in") == "query")
        kind, body = self._content(self._resolve(described.get("requestBody")))
        replies = _mapping(described.get("responses")).items()
        good = next((reply for status, reply in replies if str(status).startswith("2")), None)
        words = frozenset(word.lower() for word in _WORDS.findall(names))
        return Operation(method, path, words, own, kind, body, self._content(self._resolve(good))[1])

    def _content(self, part: Mapping[str, Any]) -> tuple[str, Any]:
        """The type of a body or reply, JSON first, and its schema with all references followed."""
        content = _mapping(part.get("content"))
        kinds = sorted(map(str, content), key=lambda kind: "json" not in kind)
        if not kinds:
            return "", None
        return kinds[0], self._whole(_mapping(content.get(kinds[0])).get("schema"), 0, [MAX_SCHEMAS])

    def _whole(self, schema: Any, depth: int, left: list[int]) -> dict[str, Any]:
        """A schema with its references followed; what is too deep, or too much, is left out."""
        left[0] -= 1
        if depth > MAX_DEPTH or left[0] < 0:
            return {}
        found = dict(self._resolve(schema))
        for several in ("allOf", "anyOf", "oneOf"):
            parts = [self._whole(part, depth + 1, left) for part in _list(found.pop(several, None))[:10]]
            chosen = parts if several == "allOf" else [part for part in parts if part.get("type") != "null"][:1]
            for part in chosen:
                own = {**_mapping(found.get("properties")), **_mapping(part.get("properties"))}
                found = {**part, **found} | ({"properties": own} if own else {})
        if isinstance(found.get("type"), list):  # such as ["string", "null"]
            found["type"] = next((kind for kind in found["type"] if isinstance(kind, str) and kind != "null"), None)
        if "properties" in found:
            properties = list(_mapping(found["properties"]).items())[:100]
            found["properties"] = {str(name): self._whole(part, depth + 1, left) for name, part in properties}
        if "items" in found:
            found["items"] = self._whole(found["items"], depth + 1, left)
        found["required"] = [name for name in _list(found.get("required")) if isinstance(name, str)]
        return found

    def _resolve(self, part: Any) -> Mapping[str, Any]:
        """What a reference within the document leads to; those elsewhere are not followed."""
        for _ in range(MAX_REFERENCES):
            reference = _mapping(part).get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/"):
                return _mapping(part)
            part = self._values
            for step in reference[2:].split("/")[:20]:
                part = _mapping(part).get(step.replace("~1", "/").replace("~0", "~"))
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value, where it is what it should be: the document is somebody else's."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _properties(schema: Any) -> list[tuple[str, Mapping[str, Any]]]:
    return list(_mapping(_mapping(schema).get("properties")).items())


def _variable(name: str) -> str:
    """A name of the environment for a place that only the user can fill."""
    return OWN + (re.sub(r"[^A-Z0-9_]", "_", name.upper()).removeprefix(OWN)[:60] or "VALUE")


def _check_variables(target: Filling) -> Filling:
    """What the document suggests, unless it would send the system a variable that is not for this test.

    Raises:
        InputError: It names one, such as the key of another service.
    """
    for _, text in walk(target, "the OpenAPI document"):
        for name in VARIABLE.findall(text) if isinstance(text, str) else ():
            if not name.startswith(OWN):
                raise InputError(
                    f"the OpenAPI document names ${{{name}}}, a variable of your environment that the system would be "
                    "sent; write the configuration by hand, or from the addresses alone"
                )
    return target


def _parse_yaml(content: bytes) -> Any:
    if len(content) > MAX_YAML or content.count(b"[") + content.count(b"{") > MAX_BRACKETS:
        raise InputError("this is no OpenAPI document, or none that is read as YAML for its size; give it as JSON")
    try:
        return yaml.safe_load(content)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"this is no OpenAPI document: {clip(' '.join(str(error).split()), 200)}") from None
