"""HTTP requests as a configuration describes them: templates with places for the values of each call.

`{question}`, `{text}`, `{title}`, `{canary}`, `{uuid}` and `{id}` are replaced inside the strings of a body, which is
made into JSON afterwards, and percent-encoded in an address: no value can become structure. What was filled in is never
looked at again, so a poison that holds `${NAME}` stays a poison. No secret may stand in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlsplit

from unpoison.bench.redteam.http_reply import JsonPath
from unpoison.bench.redteam.secrets import SENSITIVE, VARIABLE, Secrets
from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["KINDS", "Filled", "Request", "read_headers"]

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

_PART = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|\{([a-z]{1,20})\}")
"""A variable of the environment, or a place for a value."""

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
    paths: Mapping[str, JsonPath]
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
            url=_read_url(values.get("url"), kind),
            headers={**headers, **read_headers(values.get("headers"), kind)},
            body=values.get("body"),
            file=_read_file(values.get("file"), values.get("body"), kind),
            paths={
                name: JsonPath.of(values[name], f"{kind}.{name}")
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
        used = {match[2] for text in texts for match in _PART.finditer(text) if match[2]}
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
        return any(match[2] in ("canary", "uuid") for text in texts for match in _PART.finditer(text))

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
                    _refuse_plain(f"{owner}.{key}", key, member)
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
    return _PART.sub(
        lambda match: secrets.value(match[1], secret=False) if match[1] else values.get(match[2], ""), text
    )


def _url_encode(values: Mapping[str, str]) -> dict[str, str]:
    return {name: quote(value, safe="", errors="replace") for name, value in values.items()}


def read_headers(values: object, owner: str) -> dict[str, str]:
    """Headers of the configuration.

    Raises:
        OptionError: They are no mapping of texts, or hold a secret in plain text.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise OptionError(f"{owner}.headers must be a mapping of names to texts, got {clip(values)}")
    headers = {}
    for name, value in values.items():
        if not isinstance(name, str) or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise OptionError(f"{owner}.headers: {clip(name)} is no name of a header")
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            raise OptionError(f"{owner}.headers.{name} must be a text")
        if name.lower() in ("host", "content-length", "transfer-encoding", "connection", "accept-encoding"):
            raise OptionError(f"{owner}.headers.{name} cannot be set; leave it out")
        _refuse_plain(f"{owner}.headers.{name}", name, str(value))
        headers[name] = str(value)
    return headers


def _refuse_plain(owner: str, name: str, value: str) -> None:
    """A secret stands in the environment, for configurations are committed and journals are kept."""
    if SENSITIVE.search(name) and value and not _PART.search(value):
        raise OptionError(f"{owner} looks like a secret in plain text; write ${{NAME}} and put it into the environment")


def _read_url(value: object, kind: str) -> str:
    """The address of a request.

    Raises:
        OptionError: It is not a url, its host is not fixed, or it holds a secret in plain text.
    """
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        raise OptionError(f"{kind}.url must be an address such as http://127.0.0.1:8000/{kind}, got {clip(value)}")
    try:
        parts = urlsplit(value)
    except ValueError:
        parts = urlsplit("")
    host = VARIABLE.sub("", parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.netloc or "{" in host or "@" in host or "\\" in value:
        raise OptionError(
            f"{kind}.url must begin with http:// or https:// and a host without user, password or {{place}}, "
            f"got {clip(value.partition('@')[2] or value)}"
        )
    for name, text in parse_qsl(parts.query, keep_blank_values=True):
        _refuse_plain(f"{kind}.url", name, text)
    return value


def _read_file(value: object, body: object, kind: str) -> dict[str, str] | None:
    """The upload of a request, with defaults for what is not given; None where there is none.

    Raises:
        UnknownNameError: An unknown field.
        OptionError: A field that cannot be used.
    """
    if value is None:
        return None
    names = {"field": "file", "name": "{canary}.txt", "content": "{text}"}
    fields = isinstance(body, Mapping) and all(isinstance(text, str) for text in body.values())
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise OptionError(f"{kind}.file must be a mapping with {', '.join(names)}, got {clip(value)}")
    if not fields and body is not None:
        raise OptionError(f"{kind}.body must map names to texts where a file is sent, got {clip(body)}")
    for name in value:
        if name not in names:
            raise UnknownNameError(f"field of {kind}.file", str(name), names)
    return {**names, **value}
