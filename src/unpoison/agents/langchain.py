"""LangChain and LangGraph: middleware for `create_agent` and for a `ToolNode`."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("langchain", "the LangChain adapter for agents")

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from unpoison.agents.screening import Policy, ScreenedResult, ToolScreener, with_line

__all__ = ["ScreeningMiddleware"]


class ScreeningMiddleware(AgentMiddleware[Any, Any, Any]):
    """Screens every tool result before it is added to the thread.

    In a graph of your own: `ToolNode(tools, wrap_tool_call=screening.wrap_tool_call,
    awrap_tool_call=screening.awrap_tool_call)`.

    Args:
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    def __init__(self, policy: Policy = None) -> None:
        super().__init__()
        self._screener = ToolScreener(policy)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """The tool's result, screened; an error message if it is blocked."""
        return self._result(request, handler(request))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` for asyncio."""
        return await asyncio.to_thread(self._result, request, await handler(request))

    def _result(self, request: Any, result: Any) -> Any:
        call, history = request.tool_call, _messages(request.state)
        query = _question(history)

        def screen(value: Any) -> ScreenedResult:
            return self._screener.screen(call["name"], value, call["args"], query)

        def one(part: Any) -> Any:
            if isinstance(part, BaseMessage):
                return _message(part, screen)
            if isinstance(part, Command):
                return replace(part, update=update(part.update))
            return with_line(screen(part))

        def update(given: Any) -> Any:
            """An update of the state; messages that are already in the state are not results of the tool."""
            if isinstance(given, Mapping):
                return {key: update(held) for key, held in given.items()}
            if isinstance(given, (list, tuple)):
                old = {id(message) for message in history}, {message.id for message in history} - {None}
                parts = [part if _is_old(part, *old) else update(part) for part in given]
                return type(given)(parts)
            return given if given is None or isinstance(given, (bool, int, float)) else one(given)

        return [one(part) for part in result] if isinstance(result, list) else one(result)


def _message(message: BaseMessage, screen: Callable[[Any], ScreenedResult]) -> BaseMessage:
    """The message itself without a finding, else a copy."""
    screened = screen(message.content)
    content = with_line(screened)
    if isinstance(content, list) and screened.line:
        content = [*content, {"type": "text", "text": screened.line}]
    if content is message.content:
        return message
    status = {"status": "error"} if screened.blocked and isinstance(message, ToolMessage) else {}
    return message.model_copy(update={"content": content, **status})


def _messages(state: Any) -> list[Any]:
    held = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", state)
    return list(held) if isinstance(held, (list, tuple)) else []


def _question(messages: Sequence[Any]) -> str | None:
    """The user's last message."""
    return next((message.text for message in reversed(messages) if isinstance(message, HumanMessage)), None)


def _is_old(part: Any, objects: set[int], identifiers: set[str]) -> bool:
    return isinstance(part, BaseMessage) and (id(part) in objects or part.id in identifiers)
