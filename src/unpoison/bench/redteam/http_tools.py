"""A chat endpoint that asks its caller to run the retrieval: the session goes on until it answers.

What such an endpoint replies is a call of a tool. The tool is run as the configuration says, its result is sent back
with all that was said before, and so on, for `MAX_ROUNDS` rounds. A call that cannot be made, of a tool that is none or
with arguments that are none, is answered with what is wrong about it, as applications do. What the tools returned is
what the system read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from unpoison.bench.redteam.http_calls import Ask, Tool
from unpoison.bench.redteam.http_client import HttpClient, Response
from unpoison.bench.redteam.http_reply import Event, ends, stream_values
from unpoison.bench.redteam.http_request import Request
from unpoison.bench.redteam.http_session import HttpSession
from unpoison.bench.redteam.http_template import Filled
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.presets import RESPONSES
from unpoison.bench.redteam.targets import Answered
from unpoison.core.passages import Passage
from unpoison.errors import TargetError, clip
from unpoison.retrieval import BM25Retriever, StoreRetriever
from unpoison.retrieval.bm25 import words_of_any_script
from unpoison.scan.sources import read_documents
from unpoison.scan.stores import is_store, open_vector_store

__all__ = ["Conversation", "declare"]

MAX_ROUNDS = 10
"""Replies of one session that ask for tools."""

MAX_CALLS = 16
"""Of one reply."""

MAX_ARGUMENT, MAX_RESULT = 10_000, 500_000
"""Characters of an argument, and of what a tool returns."""

_ALL = JsonPath.of("$", "ask")


class ToolCall(NamedTuple):
    """What a reply asks for; the arguments are as they came, a text of JSON or a mapping."""

    id: str
    name: str
    arguments: Any


class Conversation:
    """The session of one question with an endpoint that calls tools.

    Args:
        tools: Those of the configuration.
        session: Of the question.
        folder: Where a store's relative path begins.

    Attributes:
        passages, ids: What the tools returned so far.
    """

    def __init__(self, tools: Sequence[Tool], session: HttpSession, folder: Path) -> None:
        self._tools, self._session, self._folder = {tool.name: tool for tool in tools}, session, folder
        self._said, self._problem = list[Any](), ""
        self.passages, self.ids = list[str](), list[str]()
        session.amend = lambda step, filled: declare(step, filled, tools, self._said)

    def finish(self, step: Request, response: Response) -> Response:
        """The reply that asks for no tool any more.

        Raises:
            TargetError: It asks for tools for ever, or for one where the configuration has none; or a tool failed.
        """
        if not isinstance(step, Ask) or step.preset is None:
            return response
        for number in range(MAX_ROUNDS + 1):
            try:
                said, calls = _read_turn(step.preset, self._session.client, response)
            except TargetError:
                if self._tools:
                    raise
                return response  # whoever reads the answer says what is wrong
            if not calls or (not self._tools and any(map(_speaks, said))):
                return response
            if not self._tools:
                raise TargetError(
                    f"ask was answered with a call of the tool {clip(calls[0].name)}, which the caller has to run; "
                    "describe it under target.tools (docs/redteam.md)"
                )
            if len(calls) > MAX_CALLS:
                raise TargetError(f"ask was answered with {len(calls):,} calls of tools; {MAX_CALLS} are the most")
            if number == MAX_ROUNDS:
                break
            self._said += [*said, *(_result(step.preset, call, self._run(call)) for call in calls)]
            response = self._session.send(step)
        why = f"; the last call could not be made: {self._problem}" if self._problem else ""
        raise TargetError(
            f"ask gave no answer, but called tools more than {MAX_ROUNDS} times{why}; see the system's prompt"
        )

    def add_to(self, answered: Answered) -> Answered:
        """What was said, with what the tools returned."""
        if not self._tools:
            return answered
        told = any(tool.tells_ids for tool in self._tools.values())
        ids = (*(answered.ids or ()), *dict.fromkeys(self.ids)) if told else answered.ids
        return replace(answered, passages=(*(answered.passages or ()), *dict.fromkeys(self.passages)), ids=ids)

    def _run(self, call: ToolCall) -> str:
        """What the model is told: what the tool returned, or why it was not called."""
        tool = self._tools.get(call.name)
        if tool is None:
            return self._refuse(f"there is no tool {clip(call.name)}, only {', '.join(self._tools)}")
        try:
            given = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, Mapping):
            return self._refuse(f"the arguments of {tool.name} are no JSON object: {clip(call.arguments)}")
        values = {name: _text(given[name]) for name in tool.arguments if given.get(name) is not None}
        if missing := [name for name in tool.needs if not values.get(name)]:
            return self._refuse(f"{tool.name} needs {missing[0]}")
        if too_long := [name for name, value in values.items() if len(value) > MAX_ARGUMENT]:
            return self._refuse(f"{tool.name}.{too_long[0]} is longer than {MAX_ARGUMENT:,} characters")
        self._problem = ""
        found = self._search(tool, values["query"]) if tool.store else self._request(tool, values)
        if len(found) > MAX_RESULT:
            raise TargetError(
                f"the tool {tool.name} returned {len(found):,} characters, more than {MAX_RESULT:,}; have it return "
                "fewer passages"
            )
        return found

    def _refuse(self, why: str) -> str:
        self._problem = why
        return json.dumps({"error": why})

    def _request(self, tool: Tool, values: Mapping[str, str]) -> str:
        session = self._session.with_values(values)
        ((_, response),) = session.run([tool])
        paths, text = tool.paths, session.client.reply_text(response)
        reply = None if all(path.whole for path in paths.values()) else session.client.parse_json(tool.owner, response)
        if (path := paths.get("ids")) is not None:
            self.ids += map(str, path.values(reply))
        if (path := paths.get("passages")) is not None:
            found = [text] if path.whole else path.values(reply)
            if strange := [value for value in found if not isinstance(value, str)]:
                raise TargetError(f"{path.owner}: {path.source} leads to {clip(strange[0])}, which is no text")
            self.passages += found
        return text

    def _search(self, tool: Tool, query: str) -> str:
        """The store is read for every call, for it changes under a test."""
        store = str(tool.store)
        if is_store(store):
            with open_vector_store(store, folder=self._folder) as opened:
                found = StoreRetriever(opened, str(tool.encoder)).retrieve(query, tool.k)
        else:
            documents = read_documents(str(self._folder / store), lambda failure: None)
            parts = ((document.passage, document.id) for document in documents)
            passages = (Passage(passage.text, title=passage.title, id=name) for passage, name in parts)
            index = BM25Retriever(passages, tokenize=words_of_any_script)
            found = index.retrieve(query, tool.k)
        self.passages += [passage.text for passage in found]
        self.ids += [passage.id or "" for passage in found]
        rows = [{"id": passage.id, "title": passage.title, "text": passage.text} for passage in found]
        return json.dumps([{name: value for name, value in row.items() if value} for row in rows], ensure_ascii=False)


def declare(step: Request, filled: Filled, tools: Sequence[Tool], said: Sequence[Any] = ()) -> Filled:
    """The request of a chat endpoint with the tools that it may call, and with what was said since the question.

    Raises:
        TargetError: Its body has no messages to add to.
    """
    if not isinstance(step, Ask) or step.preset is None or not tools:
        return filled
    body = json.loads(filled.content or b"{}")
    place = "input" if step.preset == RESPONSES else "messages"
    messages = body.get(place)
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        raise TargetError(f"ask.body.{place} must be a list where there are tools, got {clip(messages)}")
    own = body.get("tools") if isinstance(body.get("tools"), list) else []
    declared = [{"name": t.name, "description": t.description, "parameters": t.schema_of_arguments} for t in tools]
    kinds: list[Any] = [
        {"type": "function", **one} if step.preset == RESPONSES else {"type": "function", "function": one}
        for one in declared
    ]
    body |= {place: [*messages, *said], "tools": [*own, *kinds]}
    return replace(filled, content=json.dumps(body).encode())


def _result(preset: str, call: ToolCall, text: str) -> dict[str, Any]:
    """The message that holds what a tool returned."""
    if preset == RESPONSES:
        return {"type": "function_call_output", "call_id": call.id, "output": text}
    name = {"tool_call_id": call.id} if call.id else {"tool_name": call.name}
    return {"role": "tool", **name, "content": text}


def _read_turn(preset: str, client: HttpClient, response: Response) -> tuple[list[Any], list[ToolCall]]:
    """What has to be sent back, and the tools that are asked for.

    Raises:
        TargetError: No JSON, or a stream that broke off within a call.
    """
    events = client.events(response)
    replies = [client.parse_json("ask", response)] if events is None else stream_values(_ALL, events)
    objects = [reply for reply in replies if isinstance(reply, dict)]
    if preset == RESPONSES:
        items = [item for reply in objects for item in _items(reply)]
        calls = [
            ToolCall(str(item.get("call_id") or ""), str(item.get("name") or ""), item.get("arguments"))
            for item in items
            if item.get("type") == "function_call"
        ]
        said: list[Any] = items
    else:
        message = _join_messages([message for reply in objects if (message := _message(reply))])
        calls = [
            ToolCall(str(call.get("id") or ""), str(part.get("name") or ""), part.get("arguments"))
            for call in message["tool_calls"]
            for part in [_mapping(call.get("function"))]
        ]
        said = [message]
    if calls and events is not None and not any(map(ends, map(_value, events))):
        raise TargetError(f"ask: the stream broke off within a call of {clip(calls[-1].name)}; see the system's log")
    return said, calls


def _items(reply: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a reply in the style of OpenAI's responses puts out: whole, or in events one after the other."""
    found = [reply.get("item")] if reply.get("type") == "response.output_item.done" else _list(reply.get("output"))
    yield from (item for item in found if isinstance(item, dict))


def _message(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of a reply, or the part of it that an event holds; of several choices that of the first."""
    choices = [_mapping(choice) for choice in _list(reply.get("choices"))]
    first = next((choice for choice in choices if not choice.get("index")), {})
    return _mapping(first.get("delta") or first.get("message") or reply.get("message"))


def _join_messages(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One message of all its parts; a call whose arguments came in pieces is put together."""
    calls, content = dict[Any, dict[str, Any]](), list[str]()
    for part in parts:
        content += [text for text in [part.get("content")] if isinstance(text, str)]
        for piece in map(_mapping, _list(part.get("tool_calls"))):
            function, index = _mapping(piece.get("function")), piece.get("index")
            name, arguments = function.get("name") or "", function.get("arguments")
            key: object = ("whole", len(calls))
            if len(parts) > 1 and not isinstance(arguments, Mapping):  # a piece, which says to which call it belongs
                if isinstance(index, int):
                    key = index
                elif calls and not name and not piece.get("id"):
                    key = next(reversed(calls))
            call = calls.setdefault(key, {"type": "function", "function": {"name": "", "arguments": ""}})
            call |= {"id": piece["id"]} if piece.get("id") else {}
            inside = call["function"]
            inside["name"] = inside["name"] or name
            if isinstance(arguments, str) and isinstance(inside["arguments"], str):
                inside["arguments"] += arguments
            elif arguments is not None:
                inside["arguments"] = arguments
    return {"role": "assistant", "content": "".join(content), "tool_calls": list(calls.values())}


def _speaks(message: Mapping[str, Any]) -> bool:
    """Whether a message holds an answer too: some systems only tell which tools they have called themselves."""
    return bool(message.get("content")) and message.get("type") in (None, "message")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(event: Event) -> Any:
    return event.value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
