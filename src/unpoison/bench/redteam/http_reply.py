"""Read a reply: the values that a path leads to, and the answer of a streamed reply.

A path is a small part of JSONPath (RFC 9535): `$.answer`, `$.passages[*].text`, `$['my field'][0]`, `$.hits[-1].id`. It
has names, positions and all members, but no filters, scripts or descent, so one pass over the reply is enough. `text`
stands for the whole reply where that is no JSON.

A stream is server-sent events (WHATWG HTML, section 9.2.6) or one JSON object on each line. Its answer is
put together from the pieces of the events. The frames around the pieces are not judged: they hold the cited passages
too. A stream whose pieces are not known is refused with a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from unpoison.errors import OptionError, TargetError, clip

__all__ = ["WHOLE_TEXT", "Event", "JsonPath", "join_text", "read_events", "stream_text", "stream_values"]

WHOLE_TEXT = "text"
ALL = "*"
MAX_VALUES = 10_000
"""That one path may lead to."""

MAX_LENGTH = 500
"""Characters of a path."""


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
        if source == WHOLE_TEXT:
            return cls(owner, WHOLE_TEXT, ())
        if not isinstance(source, str) or not source.startswith("$") or len(source) > MAX_LENGTH:
            raise OptionError(f"{owner} must be a path such as $.answer or $.passages[*].text, got {clip(source)}")
        return cls(owner, source, _steps(source, owner))

    @property
    def whole(self) -> bool:
        """Whether it stands for the reply's text."""
        return self.source == WHOLE_TEXT

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
            TargetError: There is none; the message names the fields that there are.
        """
        for value in self.values(reply):
            return value
        raise TargetError(f"{self.owner}: {self.source} leads to nothing in the reply, which is {_outline(reply)}")


def _members(value: Any, step: str | int | None) -> list[Any]:
    if step is None:
        return list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    if isinstance(step, str):
        return [value[step]] if isinstance(value, Mapping) and step in value else []
    return [value[step]] if isinstance(value, list) and -len(value) <= step < len(value) else []


def _outline(reply: Any) -> str:
    if isinstance(reply, Mapping):
        return f"an object with {clip(list(reply)[:20], 200)}"
    return f"a list of {len(reply):,}" if isinstance(reply, list) else clip(reply)


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


DONE = "[DONE]"
"""What OpenAI ends a stream with, and many after it."""


class Event(NamedTuple):
    """One event.

    Attributes:
        name: Its field `event`; "" without one.
        value: Its data: an object of JSON, otherwise the text as it is.
    """

    name: str
    value: Any


PIECES = tuple(
    (kind, JsonPath.of(path, "ask.answer"))
    for kind, path in (
        (None, "$.choices[0].delta.content"),  # OpenAI's chat completions, and what speaks like them
        (None, "$.choices[0].text"),  # its completions
        ("response.output_text.delta", "$.delta"),  # its responses
        ("content_block_delta", "$.delta.text"),  # Anthropic's messages
        ("text-delta", "$.delta"),  # Vercel's AI SDK
        (None, "$.message.content"),  # Ollama's chat
        (None, "$.response"),  # its completions
    )
)
"""The type of the events that carry the answer, None for any, and where its piece stands in them."""

ENDS = ("message_stop", "response.completed", "response.incomplete", "finish")
"""Types of the events that end a stream of such pieces."""

_LINES = re.compile(r"\r\n|\n|\r")
_FIELD = re.compile(r"(data|event|id|retry)?:")
_JSON_LINES = ("ndjson", "jsonl", "json-lines", "jsonlines", "stream+json")


def read_events(kind: str, text: str) -> list[Event] | None:
    """The events of a reply.

    Args:
        kind: The reply's Content-Type. Streams are also known without: frameworks send them as whatever they are told.
        text: The whole reply.

    Returns:
        None where the reply is no stream.
    """
    lines = _LINES.split(text.removeprefix("\ufeff"))
    if "event-stream" in kind.lower() or _looks_like_frames(lines):
        return _events(lines)
    filled = [line for line in lines if line.strip()]
    told = any(name in kind.lower() for name in _JSON_LINES)
    if told or (len(filled) > 1 and all(line.lstrip().startswith("{") for line in filled)):
        values = list(map(_value, filled))
        if told or all(isinstance(value, dict) for value in values):
            return [Event("", value) for value in values]
    return None


def stream_text(events: Sequence[Event], owner: str) -> str:
    """The answer of a stream, by the pieces that known services send, or of plain text.

    Args:
        events: All of them.
        owner: The field of the configuration, for messages.

    Raises:
        TargetError: No answer that is known to be one, an error in its place, or a stream that broke off.
    """
    told = _event_values(events)
    objects = [value for value in told if isinstance(value, dict)]
    if not objects:
        strings = [_parse_json(value) for value in told]
        return "".join(strings if all(isinstance(value, str) for value in strings) else told)
    for kind, path in PIECES:
        own = [value for value in objects if kind is None or value.get("type") == kind]
        if pieces := [piece for value in own if _first_choice(value) for piece in path.values(value)]:
            if not any(_ends(event.value) for event in events):
                raise TargetError(f"{owner}: the stream broke off after {len(told):,} events; see the system's log")
            return _join_pieces(pieces, path, owner)
    beside = " beside plain text" if len(objects) < len(told) else ""
    raise TargetError(
        f"{owner} is 'text', but the reply is a stream of objects with {_names(objects)}{beside}, of which "
        f"nobody knows which are the answer; write the path of its pieces, such as $.{_example(objects)}"
    )


def stream_values(path: JsonPath, events: Iterable[Event]) -> list[Any]:
    """Everything that a path leads to in any event.

    Raises:
        TargetError: An error in place of an answer, or no event at all.
    """
    return [found for value in _event_values(events) for found in path.values(value)]


def join_text(path: JsonPath, events: Sequence[Event]) -> str:
    """The answer that a path's pieces make.

    Raises:
        TargetError: It leads to nothing in any event, or to what is no text.
    """
    pieces = stream_values(path, events)
    if not pieces:
        objects = [event.value for event in events if isinstance(event.value, dict)]
        raise TargetError(
            f"{path.owner}: {path.source} leads to nothing in any of {len(events):,} events, which have "
            f"{_names(objects)}"
        )
    return _join_pieces(pieces, path, path.owner)


def _join_pieces(pieces: Iterable[Any], path: JsonPath, owner: str) -> str:
    for piece in pieces:
        if piece is not None and (isinstance(piece, bool) or not isinstance(piece, (str, int, float))):
            raise TargetError(f"{owner}: {path.source} leads to {clip(piece)} in an event, which is no text")
    return "".join(str(piece) for piece in pieces if piece is not None)


def _event_values(events: Iterable[Event]) -> list[Any]:
    """What the events hold, their end left out.

    Raises:
        TargetError: Nothing, or an error.
    """
    values = []
    for event in events:
        value = event.value
        failed = isinstance(value, dict) and (value.get("error") or value.get("type") in ("error", "response.failed"))
        if failed or event.name == "error":
            raise TargetError(f"the stream holds an error in place of an answer: {clip(value, 200)}")
        if value != DONE:
            values.append(value)
    if not values:
        raise TargetError("the reply is a stream with no event; see the system's log")
    return values


def _ends(value: Any) -> bool:
    if not isinstance(value, dict):
        return bool(value == DONE)
    choices = value.get("choices")
    choices = choices if isinstance(choices, list) else []
    reasons = [choice.get("finish_reason") for choice in choices if isinstance(choice, dict)]
    return value.get("type") in ENDS or value.get("done") is True or any(reasons)


def _first_choice(value: Any) -> bool:
    """Whether it is of the first answer, where a service writes several at once."""
    choices = value.get("choices")
    return not (isinstance(choices, list) and choices and isinstance(choices[0], dict) and choices[0].get("index"))


def _names(objects: Iterable[Any]) -> str:
    return clip(list(dict.fromkeys(name for value in objects for name in value))[:20], 200)


def _example(objects: Sequence[Any]) -> str:
    texts = [name for value in objects for name, member in value.items() if isinstance(member, str)]
    return str(next(iter(texts), "token"))[:40]


def _looks_like_frames(lines: Sequence[str]) -> bool:
    """Whether every line is a field of an event, and the last event is whole."""
    filled = [line for line in lines if line]
    whole = len(lines) > 2 and not lines[-1] and not lines[-2]
    return whole and any(line.startswith("data:") for line in filled) and all(map(_FIELD.match, filled))


def _events(lines: Iterable[str]) -> list[Event]:
    events, name, data = list[Event](), "", list[str]()
    for line in [*lines, ""]:  # the last event counts without its end, too
        field, _, value = line.partition(":")
        if not line:
            if data:
                events.append(Event(name, _value("\n".join(data))))
            name, data = "", []
        elif field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.removeprefix(" ")
    return events


def _value(data: str) -> Any:
    """An object of JSON, otherwise the text itself: a piece of plain text may be a number, or [1], too."""
    value = _parse_json(data)
    return value if isinstance(value, dict) else data


def _parse_json(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
