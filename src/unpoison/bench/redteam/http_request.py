"""An HTTP request as a configuration describes it.

It may `take` values out of its reply for the requests behind it, and may be sent until a `value` is what it should be,
as a job that is polled. `http_template` says how the places are filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from unpoison.bench.redteam.config import as_tuple
from unpoison.bench.redteam.http_template import (
    PLACE_NAME,
    Filled,
    fill_body,
    fill_header,
    fill_text,
    places_of,
    refuse_plain,
    url_encode,
)
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.secrets import VARIABLE, Secrets
from unpoison.errors import OptionError, clip
from unpoison.io.settings import Section, walk

__all__ = ["MARKERS", "Headers", "Request"]

Method = Annotated[
    Literal["GET", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(lambda method: str(method).upper())
]

MARKERS = "markers"
"""Stands for the path of citations where the answer's own words hold them."""

_HEADER = re.compile(r"[A-Za-z0-9_-]{1,200}")
_PLACE = re.compile(r"\{(" + PLACE_NAME.pattern + r")\}")
_OWN_HEADERS = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")
"""What we set ourselves."""

_RESERVED = ("question", "text", "title", "canary", "uuid", "id")
"""Places that no reply may fill."""

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
            refuse_plain(f"{cls.owner}.headers.{name}", name, value)
        return headers


class Upload(Section):
    """The file of a multipart upload: the field's name, the file's name and its content, as templates."""

    field: str = "file"
    name: str = "{canary}.txt"
    content: str = "{text}"


class Request(Headers):
    """A request as the configuration describes it, `${NAME}` and all.

    Attributes:
        url, method, headers, body, form, file: As written; `form` is sent as a page's form is.
        take: Where values stand in the reply that later steps of the call have as `{name}`.
        value, equals: The request is sent again until the value is `equals`, or one of several.
        fails: Values that say that it never will be.
        places: What may be filled in.
        addresses: Of these, what may be the whole url: the id of a document, where that is its address.
        needed: Of which a request, or one of its steps, must hold one.
        required: Fields that one of the steps must have, all together.
    """

    places: ClassVar[tuple[str, ...]] = ("id",)
    addresses: ClassVar[tuple[str, ...]] = ("id",)
    needed: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[tuple[str, ...]] = ()

    url: str
    method: Method = "POST"
    body: Any = None
    form: dict[str, str] | None = None
    file: Upload | None = None
    take: dict[str, JsonPath] = Field(default_factory=dict)
    value: JsonPath | None = None
    equals: Any = True
    fails: Annotated[tuple[Any, ...], BeforeValidator(as_tuple)] = ()

    @field_validator(
        "answer", "passages", "ids", "cited", "id", "items", "canary", "value", mode="before", check_fields=False
    )
    @classmethod
    def _read_path(cls, path: Any, field: Any) -> Any:
        if field.field_name == "cited" and path == MARKERS:
            return path
        read = JsonPath.of(path, f"{cls.owner}.{field.field_name}")
        if read.header and (cls.owner, field.field_name) != ("plant", "id"):
            raise OptionError(f"{read.owner} cannot be {clip(path)}: headers are read by take, and by the id of plant")
        return read

    @field_validator("take", mode="before")
    @classmethod
    def _read_take(cls, take: Any) -> Any:
        if not isinstance(take, Mapping):
            return take
        for name in take:
            if not PLACE_NAME.fullmatch(str(name)) or name in _RESERVED:
                raise OptionError(
                    f"{cls.owner}.take: {clip(name)} cannot name a value; use up to 30 small letters and underscores, "
                    f"and none of {', '.join(_RESERVED)}"
                )
        return {name: JsonPath.of(path, f"{cls.owner}.take.{name}") for name, path in take.items()}

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        """Refuse what is no url, whose host is not fixed, or that holds a secret in plain text.

        A place alone is an address that an earlier reply gave (`HttpClient.check_given`).
        """
        if place := _PLACE.fullmatch(url):
            if place[1] in _RESERVED and place[1] not in cls.addresses:
                raise OptionError(
                    f"{cls.owner}.url cannot be {url}; only what take took out of a reply can be an address"
                )
            return url
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
            refuse_plain(f"{cls.owner}.url", name, text)
        return url

    @model_validator(mode="after")
    def _check_body(self) -> Self:
        """Refuse a body that is no JSON or holds a secret in plain text, and fields that need another."""
        for key, value in walk([self.body, self.form], f"{self.owner}.body"):
            if not isinstance(key, str) and key is not None:
                raise OptionError(f"{self.owner}.body: {clip(key)} must be a text; write it in quotes")
            if not (value is None or isinstance(value, (str, bool, int, float, list, Mapping))):
                raise OptionError(f"{self.owner}.body holds {clip(value)}, no value of JSON; write it in quotes")
            if key is not None and isinstance(value, str):
                refuse_plain(f"{self.owner}.{'body' if self.form is None else 'form'}.{key}", key, value)
        waits = {"equals", "fails"} & self.model_fields_set
        if waits and self.value is None:
            raise OptionError(f"{self.owner}.{min(waits)} needs value, the path of what is compared; add it")
        if self.form is not None and (self.body is not None or self.file is not None):
            raise OptionError(f"{self.owner} has form beside body or file; a request is sent in one way")
        texts = isinstance(self.body, Mapping) and all(isinstance(text, str) for text in self.body.values())
        if self.file is not None and self.body is not None and not texts:
            raise OptionError(f"{self.owner}.body must map names to texts where a file is sent, got {clip(self.body)}")
        return self

    @property
    def used(self) -> set[str]:
        """The places that its url, body, file and headers have."""
        return places_of([self.url, self.body, self.form, self.file and dict(self.file), self.headers], self.owner)

    @property
    def address(self) -> str | None:
        """The place that is the whole url: an address out of a reply; None where the url is written out."""
        place = _PLACE.fullmatch(self.url)
        return None if place is None else place[1]

    @property
    def reads_headers(self) -> bool:
        """Whether something is taken out of the reply's headers: it may be a redirect then."""
        return any(path.header for path in (*self.take.values(), *self.paths.values()))

    @property
    def paths(self) -> dict[str, JsonPath]:
        """Where something stands in the reply, by the field's name; `value` and what it takes apart."""
        return {name: value for name, value in self if isinstance(value, JsonPath) and name != "value"}

    def fill(self, values: Mapping[str, str], secrets: Secrets) -> Filled:
        """The request with its values.

        Raises:
            OptionError: A variable that is not set, or whose value no header can hold.
            TargetError: A value of a reply that no header can hold.
        """
        headers = {
            name: fill_header(value, values, secrets, f"{self.owner}.headers.{name}")
            for name, value in self.headers.items()
        }
        url = fill_text(self.url, values if self.address else url_encode(values), secrets)
        base = Filled(self.method, url, headers)
        if self.file is not None:
            name, content = (fill_text(text, values, secrets) for text in (self.file.name, self.file.content))
            file = (self.file.field, name, content.encode("utf-8", "replace"))
            return replace(base, file=file, fields=fill_body(self.body or {}, values, secrets))
        if self.form is not None:
            content = urlencode(fill_body(self.form, values, secrets), errors="replace")
            kind = "application/x-www-form-urlencoded"
        elif self.body is None:
            return base
        elif isinstance(self.body, str):
            content, kind = fill_text(self.body, values, secrets), "text/plain; charset=utf-8"
        else:
            content, kind = json.dumps(fill_body(self.body, values, secrets)), "application/json"
        if not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = kind
        return replace(base, content=content.encode("utf-8", "replace"))
