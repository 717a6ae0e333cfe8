"""Paths into a reply: a small part of JSONPath (RFC 9535), such as `$.answer`, `$.hits[-1].id`, `$['my field'][0]`.

A path has names, positions and all members, but no filters, scripts or descent, so one pass over the reply is enough.
`text` stands for the whole reply where that is no JSON. `$header.NAME` leads to a header of the reply.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from unpoison.errors import OptionError, TargetError, clip

__all__ = ["WHOLE_TEXT", "JsonPath"]

WHOLE_TEXT = "text"
HEADER = "$header."
ALL = "*"
MAX_VALUES = 10_000
"""That one path may lead to."""

MAX_LENGTH = 500
"""Characters of a path."""

_HEADER = re.compile(r"\$header\.[A-Za-z0-9_-]{1,100}")

MAX_SHOWN, MAX_DEPTH, MAX_NAME = 20, 5, 60
"""Of the paths that an error shows: how many, their steps, and the characters of a name."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path, read once.

    Attributes:
        owner: The field of the configuration, such as `ask.answer`.
        source: As it was written.
        steps: Names, positions, and `*` for all members (as None, for a name may be an asterisk).
    """

    owner: str
    source: str
    steps: tuple[str | int | None, ...]

    @classmethod
    def of(cls, source: object, owner: str) -> Self:
        """Read a path.

        Raises:
            OptionError: It is not a path.
        """
        if source == WHOLE_TEXT or (isinstance(source, str) and _HEADER.fullmatch(source)):
            return cls(owner, str(source), ())
        if not isinstance(source, str) or not source.startswith("$") or len(source) > MAX_LENGTH:
            raise OptionError(f"{owner} must be a path such as $.answer or $.passages[*].text, got {clip(source)}")
        return cls(owner, source, _steps(source, owner))

    @property
    def whole(self) -> bool:
        """Whether it stands for the reply's text."""
        return self.source == WHOLE_TEXT

    @property
    def header(self) -> str | None:
        """The name of the header that it leads to, in small letters; None where it leads into the reply itself."""
        return self.source.removeprefix(HEADER).lower() if self.source.startswith(HEADER) else None

    @property
    def several(self) -> bool:
        return None in self.steps

    def values(self, reply: Any) -> list[Any]:
        """Everything that the path leads to; nothing where a field is missing.

        Raises:
            TargetError: More than 10,000 values.
        """
        values = [reply]
        for step in self.steps:
            values = [member for value in values for member in _members(value, step)]
            if len(values) > MAX_VALUES:
                raise TargetError(f"{self.owner}: {self.source} leads to more than {MAX_VALUES:,} values; narrow it")
        return values

    def first(self, reply: Any) -> Any:
        """The first value.

        Raises:
            TargetError: There is none; the message has the paths that lead to something.
        """
        for value in self.values(reply):
            return value
        raise TargetError(f"{self.owner}: {self.source} leads to nothing in the reply, which {_outline(reply)}")


def _members(value: Any, step: str | int | None) -> list[Any]:
    if step is None:
        return list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    if isinstance(step, str):
        return [value[step]] if isinstance(value, Mapping) and step in value else []
    return [value[step]] if isinstance(value, list) and -len(value) <= step < len(value) else []


def _outline(reply: Any) -> str:
    """What a reply is, as the paths that could have been meant; the shallowest first."""
    if not isinstance(reply, (Mapping, list)):
        return f"is {clip(reply)}"
    if not reply:
        return "is empty"
    paths, waiting = list[str](), deque[tuple[str, Any, int]]([("$", reply, 0)])
    while waiting and len(paths) <= MAX_SHOWN:
        path, value, depth = waiting.popleft()
        if isinstance(value, list) and depth < MAX_DEPTH:
            waiting.append((f"{path}[{ALL}]", value[0] if value else None, depth + 1))
        elif isinstance(value, Mapping) and value and depth < MAX_DEPTH:
            steps = ((_step(name), member) for name, member in islice(value.items(), MAX_SHOWN + 1))
            waiting.extend((path + step, member, depth + 1) for step, member in steps if step)
        else:
            paths.append(path)
    shown = [*paths[:MAX_SHOWN], *["..."][: len(paths) > MAX_SHOWN]]
    return f"has {', '.join(shown)}"


def _step(name: object) -> str:
    """A name as a path has it; "" for what cannot be written there, or is too long to be shown."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        return ""
    quote = "'" if "'" not in name else '"'
    return f".{name}" if name.isidentifier() else f"[{quote}{name}{quote}]" if quote not in name else ""


def _steps(source: str, owner: str) -> tuple[str | int | None, ...]:
    """The steps behind the dollar sign, each read from where the last one ended."""
    steps, at = list[str | int | None](), 1
    while at < len(source):
        if source[at] == "." and source[at + 1 : at + 2] != ".":
            ends = [position for mark in ".[" if (position := source.find(mark, at + 1)) >= 0]
            end = min(ends, default=len(source))
            name = source[at + 1 : end]
            step: str | int | None = None if name == ALL else name
        elif source[at] == "[":
            step, end = _bracket(source, at + 1)
        else:
            step, end = "", at
        if step == "" or end < 0:
            raise OptionError(
                f"{owner}: {clip(source)} cannot be read from its character {at + 1} on; "
                "write names, [0], [*] or ['a name'], as in $.hits[*].text"
            )
        steps.append(step)
        at = end
    return tuple(steps)


def _bracket(source: str, at: int) -> tuple[str | int | None, int]:
    """What stands in brackets, and where they end; "" for what cannot be read."""
    mark = source[at : at + 1]
    if mark in ("'", '"') and mark:
        end = source.find(f"{mark}]", at + 1)
        return (source[at + 1 : end], end + 2) if end >= 0 else ("", -1)
    end = source.find("]", at)
    inside = source[at:end] if end >= 0 else ""
    if inside == ALL:
        return None, end + 1
    digits = inside.removeprefix("-")
    return (int(inside), end + 1) if digits.isascii() and digits.isdigit() and len(digits) < 8 else ("", -1)
