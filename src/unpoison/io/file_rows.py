"""One row of a user's file: from a line of JSON, and back to one. Nothing that stands there is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn, Protocol

from unpoison.errors import clip
from unpoison.io.delimited import UNREADABLE

__all__ = ["MAX_LINE", "FileRow", "Source", "json_line", "line_text", "parse_json", "read_line"]

MAX_LINE = 256 * 2**20
"""Bytes of one line: room for 5,000 passages with their embeddings; a longer one is refused unread."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of a file.

    Attributes:
        number: Its line or row, from 1.
        fields: What it holds; empty where `error` is set.
        error: Why it could not be read, or None.
        position: How far the source has been read, in the unit of `Source.size`.
    """

    number: int
    fields: Mapping[str, Any]
    error: str | None
    position: int


class Source(Protocol):
    """A question file that is open.

    Attributes:
        name: What messages call it.
        size: The whole length, in bytes or rows; None where unknown.
    """

    name: str
    size: int | None

    def __iter__(self) -> Iterator[FileRow]: ...


def line_text(line: bytes) -> bytes:
    """A line without its end and a byte order mark; empty for a blank one."""
    return line.removeprefix(b"\xef\xbb\xbf").strip()


def read_line(number: int, line: bytes | None, position: int = 0) -> FileRow | None:
    """The record of a line, None for a blank one; a line of None was too long."""
    if line is None:
        return FileRow(number, {}, f"the line is longer than {MAX_LINE // 2**20} MiB", position)
    text = line_text(line)
    return FileRow(number, *_fields(text), position) if text else None


def _fields(line: bytes) -> tuple[Mapping[str, Any], str | None]:
    """The object on a line, or why there is none."""
    try:
        value = parse_json(line)
    except UnicodeDecodeError as error:
        return {}, f"no UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
    except RecursionError:
        return {}, "no usable JSON: nested too deeply"
    except ValueError as error:
        return {}, f"no usable JSON: {error}"
    if isinstance(value, dict) and set(value) == {UNREADABLE}:
        return {}, str(value[UNREADABLE])
    if not isinstance(value, dict):
        return {}, f"a row must be a JSON object, got {clip(value)}"
    return value, None


def parse_json(text: bytes) -> Any:
    """What a JSON text in UTF-8 says; numbers that JSON does not have are errors.

    Raises:
        ValueError: It is no such text.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text.decode("utf-8"), parse_constant=_refuse_number, parse_float=_finite)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number; use null")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{clip(text)} is larger than any float")
    return number


def json_line(record: Mapping[str, Any]) -> bytes:
    """A record as one line of JSON, readable where it can be."""
    try:
        return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can only say it escaped
        return (json.dumps(record, allow_nan=False) + "\n").encode()
