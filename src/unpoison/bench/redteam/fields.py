"""Single fields of a request, read from a configuration: headers, addresses, uploads; and no secret in plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from unpoison.bench.redteam.secrets import SENSITIVE, VARIABLE
from unpoison.errors import OptionError, UnknownNameError, clip

__all__ = ["PART", "read_file", "read_headers", "read_url", "refuse_plain"]

PART = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|\{([a-z]{1,20})\}")
"""A variable of the environment, or a place for a value."""


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
        refuse_plain(f"{owner}.headers.{name}", name, str(value))
        headers[name] = str(value)
    return headers


def refuse_plain(owner: str, name: str, value: str) -> None:
    """A secret stands in the environment, for configurations are committed and journals are kept."""
    if SENSITIVE.search(name) and value and not PART.search(value):
        raise OptionError(f"{owner} looks like a secret in plain text; write ${{NAME}} and put it into the environment")


def read_url(value: object, kind: str) -> str:
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
        refuse_plain(f"{kind}.url", name, text)
    return value


def read_file(value: object, body: object, kind: str) -> dict[str, str] | None:
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
