"""Read a streamed reply: its events, and the answer that their pieces make.

A stream is server-sent events (WHATWG HTML, section 9.2.6) or one JSON object on each line. Its answer is
put together from the pieces of the events. The frames around the pieces are not judged: they hold the cited passages
too. A stream whose pieces are not known is refused with a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from unpoison.bench.redteam.json_path import JsonPath
from unpoison.errors import TargetError, clip

__all__ = ["Event", "ends", "join_text", "read_events", "stream_text", "stream_values"]

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
            if not any(ends(event.value) for event in events):
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


def ends(value: Any) -> bool:
    """Whether an event says that the answer is whole."""
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
