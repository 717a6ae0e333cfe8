"""Templates of HTTP requests: places for the values of each call, filled in one pass.

`{question}` or `{text}` is replaced inside the strings of a body, which is made into JSON afterwards, and
percent-encoded in an address: no value can become structure. What was filled in is never looked at again, so a poison
that holds `${NAME}` stays a poison. No secret may stand in plain text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from unpoison.bench.redteam.secrets import SENSITIVE, Secrets
from unpoison.errors import OptionError, TargetError
from unpoison.io.settings import walk

__all__ = ["PLACE_NAME", "Filled", "fill_body", "fill_header", "fill_text", "places_of", "refuse_plain", "url_encode"]

_PART = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|\{([a-z][a-z_]{0,29})\}")
"""A variable of the environment, or a place for a value."""

PLACE_NAME = re.compile(r"[a-z][a-z_]{0,29}")


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


def fill_text(text: str, values: Mapping[str, str], secrets: Secrets, *, secret: bool = False) -> str:
    """Fill the template in one pass: what was filled in is not read for further places.

    Raises:
        OptionError: A variable that is not set.
    """
    return _PART.sub(
        lambda match: secrets.value(match[1], secret=secret) if match[1] else values.get(match[2], ""), text
    )


def fill_body(body: Any, values: Mapping[str, str], secrets: Secrets, name: object = "") -> Any:
    """A body with its values. What stands under the name of a secret is one, however short.

    Raises:
        OptionError: A variable that is not set.
    """
    if isinstance(body, str):
        return fill_text(body, values, secrets, secret=SENSITIVE.search(str(name)) is not None)
    if isinstance(body, Mapping):
        return {key: fill_body(value, values, secrets, key) for key, value in body.items()}
    if isinstance(body, list):
        return [fill_body(value, values, secrets, name) for value in body]
    return body


def fill_header(text: str, values: Mapping[str, str], secrets: Secrets, owner: str) -> str:
    """The value of a header.

    Raises:
        OptionError: A variable that is not set, or whose value no header can hold.
        TargetError: A value that the system gave, and no header can hold.
    """
    given = [values.get(name, "") for name in places_of(text, owner)]
    if not all(value.isprintable() and value.isascii() for value in given):
        raise TargetError(f"{owner} would hold a character that no header can; see what the place in it stands for")
    filled = fill_text(text, values, secrets, secret=True)
    if not filled.isprintable() or not filled.isascii():
        raise OptionError(f"{owner} holds a character that no header can; see its variable")
    return filled


def places_of(value: Any, owner: str) -> set[str]:
    """The names of the places in a text, or anywhere in a mapping or list."""
    texts = (member for _, member in walk(value, owner) if isinstance(member, str))
    return {match[2] for text in texts for match in _PART.finditer(text) if match[2]}


def url_encode(values: Mapping[str, str]) -> dict[str, str]:
    """Values as they stand in an address."""
    return {name: quote(value, safe="", errors="replace") for name, value in values.items()}


def refuse_plain(owner: str, name: str, value: str) -> None:
    """A secret stands in the environment, for configurations are committed and journals are kept.

    Raises:
        OptionError: The name is that of a secret, and its value stands there.
    """
    if SENSITIVE.search(name) and value and not _PART.search(value):
        raise OptionError(f"{owner} looks like a secret in plain text; write ${{NAME}} and put it into the environment")
