"""HTTP requests as a configuration describes them: templates with places for the values of each call.

`{question}`, `{text}`, `{title}`, `{canary}`, `{uuid}` and `{id}` are replaced inside the strings of a body, which is
made into JSON afterwards, and percent-encoded in an address: no value can become structure. What was filled in is never
looked at again, so a poison that holds `${NAME}` stays a poison. No secret may stand in plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import parse_qsl, quote, urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from unpoison.bench.redteam.http_reply import JsonPath
from unpoison.bench.redteam.secrets import SENSITIVE, VARIABLE, Secrets
from unpoison.errors import OptionError, clip
from unpoison.io.settings import Section, walk

__all__ = ["Ask", "Filled", "Find", "Headers", "Plant", "Ready", "Remove", "Request"]

Method = Annotated[
    Literal["GET", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(lambda method: str(method).upper())
]

_PART = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|\{([a-z]{1,20})\}")
"""A variable of the environment, or a place for a value."""

_HEADER = re.compile(r"[A-Za-z0-9_-]{1,200}")
_OWN_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")
"""What we set ourselves."""


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


HeaderText = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


class Headers(Section):
    """What has `headers`: names to texts, none of which is a secret in plain text."""

    owner: ClassVar[str] = "target"

    headers: dict[str, HeaderText] = Field(default_factory=dict)

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER.fullmatch(name):
                raise OptionError(f"{cls.owner}.headers: {clip(name)} is no name of a header")
            if name.lower() in _OWN_HEADERS:
                raise OptionError(f"{cls.owner}.headers.{name} cannot be set; leave it out")
            _refuse_plain(f"{cls.owner}.headers.{name}", name, value)
        return headers


class Upload(Section):
    """The file of a multipart upload: the field's name, the file's name and its content, as templates."""

    field: str = "file"
    name: str = "{canary}.txt"
    content: str = "{text}"


class Request(Headers):
    """A request as the configuration describes it, `${NAME}` and all.

    Attributes:
        url, method, headers, body, file: As written.
        places: What may be filled in.
        needed: Of which a request must hold one.
    """

    places: ClassVar[tuple[str, ...]] = ("id",)
    needed: ClassVar[tuple[str, ...]] = ()

    url: str
    method: Method = "POST"
    body: Any = None
    file: Upload | None = None

    @field_validator("answer", "passages", "ids", "id", "items", "canary", "value", mode="before", check_fields=False)
    @classmethod
    def _read_path(cls, path: Any, field: Any) -> JsonPath:
        return JsonPath.of(path, f"{cls.owner}.{field.field_name}")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        """Refuse what is no url, whose host is not fixed, or that holds a secret in plain text."""
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        host = VARIABLE.sub("", parts.netloc)
        printable = url.isprintable() and not {" ", "\\"} & set(url)
        if not printable or parts.scheme not in ("http", "https") or not parts.netloc or {"{", "@"} & set(host):
            raise OptionError(
                f"{cls.owner}.url must begin with http:// or https:// and a host without user, password or {{place}}, "
                f"got {clip(url.partition('@')[2] or url)}"
            )
        for name, text in parse_qsl(parts.query, keep_blank_values=True):
            _refuse_plain(f"{cls.owner}.url", name, text)
        return url

    @model_validator(mode="after")
    def _check_templates(self) -> Self:
        """Refuse a place that is missing or unknown, and a body that is no JSON or holds a secret in plain text."""
        for key, value in walk(self.body, f"{self.owner}.body"):
            if not isinstance(key, str) and key is not None:
                raise OptionError(f"{self.owner}.body: {clip(key)} must be a text; write it in quotes")
            if not (value is None or isinstance(value, (str, bool, int, float, list, Mapping))):
                raise OptionError(f"{self.owner}.body holds {clip(value)}, no value of JSON; write it in quotes")
            if key is not None and isinstance(value, str):
                _refuse_plain(f"{self.owner}.body.{key}", key, value)
        texts = isinstance(self.body, Mapping) and all(isinstance(text, str) for text in self.body.values())
        if self.file is not None and self.body is not None and not texts:
            raise OptionError(f"{self.owner}.body must map names to texts where a file is sent, got {clip(self.body)}")
        for name in self.used - set(self.places):
            known = ", ".join(f"{{{place}}}" for place in self.places)
            raise OptionError(f"{self.owner}: {{{name}}} is unknown; it may hold {known}")
        if self.needed and not self.used & set(self.needed):
            raise OptionError(
                f'{self.owner} never mentions {{{self.needed[0]}}}; write it in quotes, as in "{{{self.needed[0]}}}"'
            )
        return self

    @property
    def used(self) -> set[str]:
        """The places that its url, body and file have."""
        parts = [self.url, self.body, self.file and dict(self.file)]
        texts = (value for _, value in walk(parts, self.owner) if isinstance(value, str))
        return {match[2] for text in texts for match in _PART.finditer(text) if match[2]}

    @property
    def paths(self) -> dict[str, JsonPath]:
        """Where something stands in the reply, by the field's name."""
        return {name: value for name, value in self if isinstance(value, JsonPath)}

    def fill(self, values: Mapping[str, str], secrets: Secrets) -> Filled:
        """The request with its values.

        Raises:
            OptionError: A variable that is not set, or whose value no header can hold.
        """
        headers = {name: secrets.fill(value) for name, value in self.headers.items()}
        for name, value in headers.items():
            if not value.isprintable() or not value.isascii():
                raise OptionError(f"{self.owner}.headers.{name} holds a character that no header can; see its variable")
        base = Filled(self.method, _fill(self.url, _url_encode(values), secrets), headers)
        if self.file is not None:
            name, content = (_fill(text, values, secrets) for text in (self.file.name, self.file.content))
            file = (self.file.field, name, content.encode("utf-8", "replace"))
            return replace(base, file=file, fields=_fill_body(self.body or {}, values, secrets))
        if self.body is None:
            return base
        if isinstance(self.body, str):
            content, kind = _fill(self.body, values, secrets), "text/plain; charset=utf-8"
        else:
            content, kind = json.dumps(_fill_body(self.body, values, secrets)), "application/json"
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = kind
        return replace(base, content=content.encode("utf-8", "replace"))


class Ask(Request):
    """`ask`: the answer to a question, and the passages or their ids where the system tells them."""

    owner = "ask"
    places = needed = ("question",)

    answer: JsonPath
    passages: JsonPath | None = None
    ids: JsonPath | None = None


class Plant(Request):
    """`plant`: puts a document in; `id` says where its id stands in the reply."""

    owner = "plant"
    places, needed = ("text", "title", "canary", "uuid"), ("text",)

    id: JsonPath | None = None


class Remove(Request):
    """`remove`: takes a document out."""

    owner = "remove"
    needed = ("id",)


class Find(Request):
    """`find`: the documents with a canary, and in each of them its id and its canary."""

    owner = "find"
    places = needed = ("canary", "uuid")

    method: Method = "GET"
    items: JsonPath
    id: JsonPath
    canary: JsonPath


class Ready(Request):
    """`ready`: whether a document is indexed, which it is where `value` is `equals`."""

    owner = "ready"

    method: Method = "GET"
    value: JsonPath
    equals: Any = True


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


def _refuse_plain(owner: str, name: str, value: str) -> None:
    """A secret stands in the environment, for configurations are committed and journals are kept."""
    if SENSITIVE.search(name) and value and not _PART.search(value):
        raise OptionError(f"{owner} looks like a secret in plain text; write ${{NAME}} and put it into the environment")
