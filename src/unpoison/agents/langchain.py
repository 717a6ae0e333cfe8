"""LangChain and LangGraph: middleware for `create_agent`, and a `ToolNode` for graphs of your own."""
# ruff: noqa: E402  first of all the sentence that says what to install

from __future__ import annotations

from unpoison.utils.extras import require

require("langchain", "the LangChain adapter for agents")

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from unpoison.agents.screening import ScreenedResult
from unpoison.agents.tool_screener import Policy, ToolScreener, with_line
from unpoison.utils.lru_cache import LRUCache

__all__ = ["ScreeningMiddleware", "screening_tool_node"]

REMEMBERED = 10_000
"""Messages that are known to be screened, and so are not screened again before each call of the model."""


class ScreeningMiddleware(AgentMiddleware[Any, Any, Any]):
    """Screens what every tool returns, and before each call of the model the tool messages that came otherwise.

    The latter are those of a thread that was saved before this middleware stood in front of it, or that another node
    wrote. The saved thread stays as it is.

    Args:
        policy: What becomes of results, by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    def __init__(self, policy: Policy = None) -> None:
        super().__init__()
        self._screener = ToolScreener(policy)
        self._known: LRUCache[bytes, bool] = LRUCache(lambda digest, known: 1, REMEMBERED)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """What the tool returned, screened; an error message where it is blocked."""
        return self._result(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` for asyncio."""
        return await asyncio.to_thread(self._result, request, await handler(request))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model with tool messages that are screened."""
        return handler(self._history(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call` for asyncio."""
        return await handler(await asyncio.to_thread(self._history, request))

    def _result(self, request: Any, result: Any) -> Any:
        call, history = request.tool_call, _messages(request.state)
        query = _question(history)

        def screen(value: Any) -> ScreenedResult:
            return self._screener.screen(call["name"], value, call["args"], query)

        def one(part: Any) -> Any:
            if isinstance(part, BaseMessage):
                return self._message(call["name"], part, screen)
            if isinstance(part, Command):
                return replace(part, update=update(part.update))
            return with_line(screen(part))

        def update(given: Any) -> Any:
            """An update of the state. What it takes over from the state is no result of the tool."""
            if isinstance(given, Mapping):
                return {key: update(held) for key, held in given.items()}
            if isinstance(given, (list, tuple)):
                old = {id(message) for message in history}, {message.id for message in history} - {None}
                parts = [part if _is_old(part, *old) else update(part) for part in given]
                return type(given)(parts)
            return given if given is None or isinstance(given, (bool, int, float)) else one(given)

        return [one(part) for part in result] if isinstance(result, list) else one(result)

    def _message(self, tool: str, message: BaseMessage, screen: Callable[[Any], ScreenedResult]) -> BaseMessage:
        """The message itself where nothing is found, else a copy."""
        screened = screen(message.content)
        content = with_line(screened)
        if isinstance(content, list) and screened.line:
            content = [*content, {"type": "text", "text": screened.line}]
        self._known.put(_digest(tool, content), True)
        if content is message.content:
            return message
        status = {"status": "error"} if screened.blocked and isinstance(message, ToolMessage) else {}
        return message.model_copy(update={"content": content, **status})

    def _history(self, request: Any) -> Any:
        calls = {
            call["id"]: call
            for message in request.messages
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        }
        query = _question(request.messages)

        def one(message: Any) -> Any:
            if not isinstance(message, ToolMessage):
                return message
            call = calls.get(message.tool_call_id)
            tool = call["name"] if call else message.name or "tool"
            if self._known.get(_digest(tool, message.content)):
                return message
            arguments = call["args"] if call else None
            return self._message(tool, message, lambda value: self._screener.screen(tool, value, arguments, query))

        messages = [one(message) for message in request.messages]
        same = all(new is old for new, old in zip(messages, request.messages, strict=True))
        return request if same else request.override(messages=messages)


def screening_tool_node(
    tools: Sequence[BaseTool | Callable[..., Any]], policy: Policy = None, **options: Any
) -> ToolNode:
    """A `ToolNode` whose tools' results are screened, for a graph of your own.

    Args:
        tools: Those of the node.
        policy: As that of `ScreeningMiddleware`.
        options: Others of `ToolNode`, such as `handle_tool_errors`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """
    middleware = ScreeningMiddleware(policy)
    wrappers: dict[str, Any] = {
        "wrap_tool_call": middleware.wrap_tool_call,
        "awrap_tool_call": middleware.awrap_tool_call,
    }
    return ToolNode(tools, **wrappers, **options)


def _digest(tool: str, content: Any) -> bytes:
    return sha256(repr((tool, content)).encode("utf-8", "replace")).digest()


def _messages(state: Any) -> list[Any]:
    held = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    return list(held) if isinstance(held, (list, tuple)) else []


def _question(messages: Sequence[Any]) -> str | None:
    """What the user said last."""
    return next((message.text for message in reversed(messages) if isinstance(message, HumanMessage)), None)


def _is_old(part: Any, objects: set[int], identifiers: set[str]) -> bool:
    return isinstance(part, BaseMessage) and (id(part) in objects or part.id in identifiers)
