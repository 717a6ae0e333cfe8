"""JSON-RPC messages as lines, parsed strictly, because parsers disagree on anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["Key", "Message", "dump", "error_reply", "key_of", "parse"]

Key = tuple[str, Any]
"""An id with its type: 1 and "1" are two."""


class Message(NamedTuple):
    """A message.

    Attributes:
        value: The object.
        plain: Whether all parsers agree on its line: duplicate keys are resolved differently, and some parsers end a
            line at a carriage return.
    """

    value: dict[str, Any]
    plain: bool


def parse(line: bytes) -> Message | None:
    """The object on a line; None for anything else, such as NaN."""
    twice: list[bool] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) < len(found):
            twice.append(True)
        return made

    try:
        value = json.loads(line.decode(), object_pairs_hook=pairs, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return Message(value, not twice and b"\r" not in line.rstrip()) if isinstance(value, dict) else None


def dump(message: Mapping[str, Any]) -> bytes:
    """A message as one line, without its end."""
    return json.dumps(message).encode()


def key_of(identifier: object) -> Key:
    """An id with its type."""
    return type(identifier).__name__, identifier if isinstance(identifier, (str, int)) else None


def error_reply(identifier: object, code: int, message: str) -> dict[str, Any]:
    """A JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}


def _no_number(name: str) -> None:
    raise ValueError(name)
