"""The answer in a reply to `ask`, with what the system read or cites: out of JSON, of plain text, or of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unpoison.bench.redteam.citations import read_markers
from unpoison.bench.redteam.http_calls import Ask
from unpoison.bench.redteam.http_client import HttpClient, Response
from unpoison.bench.redteam.http_reply import Event, join_text, stream_text, stream_values
from unpoison.bench.redteam.http_request import MARKERS
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.presets import RESPONSES
from unpoison.bench.redteam.targets import Answered
from unpoison.errors import TargetError, clip

__all__ = ["read_answer"]


def read_answer(client: HttpClient, step: Ask, response: Response, earlier: Answered | None = None) -> Answered:
    """What a reply adds to what the earlier ones of the same call said.

    Args:
        client: Reads replies, without secrets.
        step: Where everything stands.
        response: The reply.
        earlier: What was said so far.

    Raises:
        TargetError: Something does not stand where it should.
    """
    before = earlier or Answered("")
    if not step.paths:
        return before
    events = client.events(response)
    answer, found = _of_reply(client, step, response) if events is None else _of_events(client, step, events)
    if answer is not None and step.cited == MARKERS:
        found["cited"] = read_markers(answer)

    def join(name: str) -> tuple[str, ...] | None:
        own, held = found.get(name), getattr(before, name)
        return held if own is None else (*(held or ()), *own)

    return Answered(before.answer if answer is None else answer, join("passages"), join("ids"), join("cited"))


def _of_reply(client: HttpClient, step: Ask, response: Response) -> tuple[str | None, dict[str, list[str]]]:
    paths, answer = step.paths, None
    parsed = None if all(path.whole for path in paths.values()) else client.parse_json("ask", response)
    if step.preset == RESPONSES and isinstance(parsed, dict) and isinstance(parsed.get("output"), list):
        said = [item for item in parsed["output"] if isinstance(item, dict) and item.get("type") == "message"]
        parsed = {**parsed, "output": said}  # what it thought, and the tools that it called, are no answer
    replies = {name: client.text("ask", response) if path.whole else parsed for name, path in paths.items()}
    if (path := paths.get("answer")) is not None:
        several = path.several
        answer = "\n".join(_texts(path, path.values(replies["answer"]))) if several else _text(path, replies["answer"])
    found = {name: path.values(replies[name]) for name, path in paths.items() if name != "answer"}
    return answer, {name: _names_or_texts(paths[name], name, values) for name, values in found.items()}


def _of_events(client: HttpClient, step: Ask, events: Sequence[Event]) -> tuple[str | None, dict[str, list[str]]]:
    """The answer of a stream, put together of its pieces; passages may stand in any event, and in several."""
    paths, answer = step.paths, None
    if (path := paths.get("answer")) is not None:
        answer = stream_text(events, "ask.answer") if path.whole else join_text(path, events)
        answer = str(client.mask(answer))  # a secret may come in pieces
    found = {name: stream_values(path, events) for name, path in paths.items() if name != "answer"}
    texts = {name: _names_or_texts(paths[name], name, values) for name, values in found.items()}
    return answer, {name: list(dict.fromkeys(values)) for name, values in texts.items()}


def _names_or_texts(path: JsonPath, name: str, values: list[Any]) -> list[str]:
    return _texts(path, values) if name == "passages" else [str(value) for value in values]


def _text(path: JsonPath, reply: Any) -> str:
    """One text; a null is an empty one, for systems say so that they know nothing."""
    value = path.first(reply)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TargetError(f"{path.owner}: {path.source} leads to {clip(value)}, which is no text")
    return str(value)


def _texts(path: JsonPath, values: list[Any]) -> list[str]:
    for value in values:
        if not isinstance(value, str):
            raise TargetError(
                f"{path.owner}: {path.source} leads to {clip(value)}, which is no text; go on to its text"
            )
    return values
