"""One HTTP request of a configuration, with places for what differs from call to call.

`{question}`, `{text}`, `{title}`, `{canary}`, `{uuid}` and `{id}` are replaced inside the strings of a body, which is
made into JSON afterwards, and percent-encoded in an address: no value can become structure. What was filled in is never
looked at again, so a poison that holds `${NAME}` stays a poison.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

from unpoison.bench.redteam.fields import PART, read_file, read_headers, read_url, refuse_plain
from unpoison.bench.redteam.paths import Path
from unpoison.bench.redteam.secrets import Secrets
from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["KINDS", "Filled", "Request"]

KINDS: dict[str, tuple[str, ...]] = {
    "ask": ("answer", "passages", "ids"),
    "plant": ("id",),
    "remove": (),
    "find": ("items", "id", "canary"),
    "ready": ("value", "equals"),
}
"""The requests of a target, and the fields that say where in their replies something stands."""

PLACES: dict[str, tuple[str, ...]] = {
    "ask": ("question",),
    "plant": ("text", "title", "canary", "uuid"),
    "remove": ("id",),
    "find": ("canary", "uuid"),
    "ready": ("id",),
}
"""What may be filled in."""

_NEEDED_PLACES: dict[str, tuple[str, ...]] = {
    "ask": ("question",),
    "plant": ("text",),
    "remove": ("id",),
    "find": ("canary", "uuid"),
    "ready": (),
}
"""Of which a request must hold one."""

_NEEDED_PATHS: dict[str, tuple[str, ...]] = {
    "ask": ("answer",),
    "plant": (),
    "remove": (),
    "find": ("items", "id", "canary"),
    "ready": ("value",),
}

COMMON = ("method", "url", "headers", "body", "file")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_MAX_MEMBERS = 10_000
"""Of a body, with all that is inside: reading one is bounded."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A request as it is sent.

    Attributes:
        method: Such as POST.
        url: Percent-encoded.
        headers: Without Host.
        content: The body, None where there is none.
        file: (field, name, content) of a multipart body, whose other fields are then in `fields`.
        fields: Of a multipart body.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    file: tuple[str, str, bytes] | None = None
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the configuration describes it.

    Attributes:
        kind: One of `KINDS`.
        method, url, headers, body, file: As written, `${NAME}` and all.
        paths: Where something stands in the reply, by the field's name.
        equals: For `ready`: the value that means yes.
    """

    kind: str
    method: str
    url: str
    headers: Mapping[str, str]
    body: Any
    file: Mapping[str, str] | None
    paths: Mapping[str, Path]
    equals: Any = None

    @classmethod
    def of(cls, kind: str, values: object, headers: Mapping[str, str]) -> Self:
        """Read one request.

        Args:
            kind: One of `KINDS`.
            values: What stands in the configuration.
            headers: Those of all requests; the request's own win.

        Raises:
            UnknownNameError: An unknown field, such as a misspelled one.
            OptionError: A field that is missing or cannot be used.
        """
        if not isinstance(values, Mapping):
            raise OptionError(f"{kind} must be a mapping with method and url, got {clip(values)}")
        allowed = (*COMMON, *KINDS[kind])
        for name in values:
            if name not in allowed:
                raise UnknownNameError(f"field of {kind}", str(name), allowed)
        method = str(values.get("method", "GET" if kind in ("find", "ready") else "POST")).upper()
        if method not in METHODS:
            raise OptionError(f"{kind}.method must be one of {', '.join(METHODS)}, got {clip(method)}")
        own = cls(
            kind=kind,
            method=method,
            url=read_url(values.get("url"), kind),
            headers={**headers, **read_headers(values.get("headers"), kind)},
            body=values.get("body"),
            file=read_file(values.get("file"), values.get("body"), kind),
            paths={
                name: Path.of(values[name], f"{kind}.{name}")
                for name in KINDS[kind]
                if name != "equals" and values.get(name) is not None
            },
            equals=values.get("equals"),
        )
        own.check()
        return own

    def check(self) -> None:
        """Refuse what could not work, before anything is sent.

        Raises:
            OptionError: A place that is missing or unknown, or a secret in plain text.
        """
        texts = [self.url, *_strings(self.body, f"{self.kind}.body"), *(self.file or {}).values()]
        used = {match[2] for text in texts for match in PART.finditer(text) if match[2]}
        allowed = PLACES[self.kind]
        for name in used - set(allowed):
            raise OptionError(
                f"{self.kind}: {{{name}}} is unknown; it may hold {', '.join(f'{{{n}}}' for n in allowed)}"
            )
        needed = _NEEDED_PLACES[self.kind]
        if needed and not used & set(needed):
            raise OptionError(
                f'{self.kind} never mentions {{{needed[0]}}}; write it in quotes, as in "{{{needed[0]}}}"'
            )
        for name in _NEEDED_PATHS[self.kind]:
            if name not in self.paths:
                raise OptionError(f"{self.kind} needs {name}, a path into its reply such as $.{name}")

    @property
    def marks(self) -> bool:
        """Whether what it plants carries the canary."""
        texts = [self.url, *_strings(self.body, self.kind), *(self.file or {}).values()]
        return any(match[2] in ("canary", "uuid") for text in texts for match in PART.finditer(text))

    def fill(self, values: Mapping[str, str], secrets: Secrets) -> Filled:
        """The request with its values.

        Raises:
            OptionError: A variable that is not set, or whose value no header can hold.
        """
        headers = {name: secrets.fill(value) for name, value in self.headers.items()}
        for name, value in headers.items():
            if not value.isprintable() or not value.isascii():
                raise OptionError(f"{self.kind}.headers.{name} holds a character that no header can; see its variable")
        base = Filled(self.method, _fill(self.url, _url_encode(values), secrets), headers)
        if self.file is not None:
            name, content = (_fill(self.file[part], values, secrets) for part in ("name", "content"))
            fields = {key: _fill(value, values, secrets) for key, value in (self.body or {}).items()}
            data = content.encode("utf-8", "replace")
            return Filled(base.method, base.url, headers, file=(self.file["field"], name, data), fields=fields)
        if self.body is None:
            return base
        if isinstance(self.body, str):
            content, kind = _fill(self.body, values, secrets), "text/plain; charset=utf-8"
        else:
            content, kind = json.dumps(_fill_body(self.body, values, secrets)), "application/json"
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = kind
        return Filled(base.method, base.url, headers, content.encode("utf-8", "replace"))


def _strings(body: Any, owner: str) -> list[str]:
    """Every string of a body.

    Raises:
        OptionError: It is too large, has members that JSON does not know, or holds a secret in plain text.
    """
    strings, waiting, members = list[str](), [body], 0
    while waiting:
        value = waiting.pop()
        members += 1
        if members > _MAX_MEMBERS:
            raise OptionError(f"{owner} has more than {_MAX_MEMBERS:,} members; a request is a page of YAML")
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, Mapping):
            for key, member in value.items():
                if not isinstance(key, str):
                    raise OptionError(f"{owner}: {clip(key)} must be a text; write it in quotes")
                if isinstance(member, str):
                    refuse_plain(f"{owner}.{key}", key, member)
                waiting.append(member)
        elif isinstance(value, list):
            waiting.extend(value)
        elif not (value is None or isinstance(value, (bool, int, float))):
            raise OptionError(f"{owner} holds {clip(value)}, which JSON does not know; write it in quotes")
    return strings


def _fill_body(body: Any, values: Mapping[str, str], secrets: Secrets) -> Any:
    if isinstance(body, str):
        return _fill(body, values, secrets)
    if isinstance(body, Mapping):
        return {key: _fill_body(value, values, secrets) for key, value in body.items()}
    if isinstance(body, list):
        return [_fill_body(value, values, secrets) for value in body]
    return body


def _fill(text: str, values: Mapping[str, str], secrets: Secrets) -> str:
    """Fill the template in one pass: what was filled in is not read for further places."""
    return PART.sub(lambda match: secrets.value(match[1], secret=False) if match[1] else values.get(match[2], ""), text)


def _url_encode(values: Mapping[str, str]) -> dict[str, str]:
    return {name: quote(value, safe="", errors="replace") for name, value in values.items()}
