"""LangChain and LangGraph: middleware for `create_agent` and for a `ToolNode`."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("langchain", "the LangChain adapter for agents")

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command, interrupt

from unpoison.agents.arguments import ForeignArgument, HistoryEvent, mode_of, question, refusal, replay, write_down
from unpoison.agents.screening import Policy, ScreenedResult, ToolScreener, with_line

__all__ = ["ScreeningMiddleware"]


class ScreeningMiddleware(AgentMiddleware[Any, Any, Any]):
    """Screens every tool result before it is added to the thread, and checks the targets of calls.

    In a graph of your own: `ToolNode(tools, wrap_tool_call=screening.wrap_tool_call,
    awrap_tool_call=screening.awrap_tool_call)`.

    Args:
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.
        arguments: A call whose target only a result named: `log`, `block`, or `ask` by an interrupt of the graph, which
            needs a checkpointer and resumes with `Command(resume=True)`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    def __init__(self, policy: Policy = None, arguments: str = "log") -> None:
        super().__init__()
        self._screener, self._mode = ToolScreener(policy), mode_of(arguments)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """The tool's result, screened; an error message if it is blocked or the call is not made."""
        refused = self._refusal(request, self._foreign(request))
        return self._result(request, handler(request)) if refused is None else refused

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_tool_call` for asyncio."""
        refused = self._refusal(request, await asyncio.to_thread(self._foreign, request))
        return await asyncio.to_thread(self._result, request, await handler(request)) if refused is None else refused

    def _foreign(self, request: Any) -> tuple[ForeignArgument, ...]:
        history = _events(_messages(request.state))
        conversation = replay(self._screener.policy, history, asks=self._mode == "ask")
        return conversation.foreign(request.tool_call["name"], request.tool_call["args"])

    def _refusal(self, request: Any, found: tuple[ForeignArgument, ...]) -> ToolMessage | None:
        """The message of a call that is not made; None to make it."""
        name = request.tool_call["name"]
        if found and self._mode != "log":
            places = [{"path": one.path, "kind": one.kind, "value": one.value} for one in found]
            asked = {"question": question(name, found), "tool": name, "arguments": places}
            if self._mode == "block" or interrupt(asked) is not True:
                write_down(name, found, "blocked" if self._mode == "block" else "declined")
                return ToolMessage(
                    refusal(name, found), tool_call_id=request.tool_call["id"], name=name, status="error"
                )
        if found:
            write_down(name, found, "logged" if self._mode == "log" else "approved")
        return None

    def _result(self, request: Any, result: Any) -> Any:
        call, history = request.tool_call, _messages(request.state)
        query = _question(history)

        def screen(value: Any) -> ScreenedResult:
            return self._screener.screen(call["name"], value, call["args"], query)

        def one(part: Any) -> Any:
            if isinstance(part, BaseMessage):
                return _message(part, screen)
            return replace(part, update=update(part.update)) if isinstance(part, Command) else with_line(screen(part))

        def update(given: Any) -> Any:
            """Screen an update of the state; messages that are already in the state are not results of the tool."""
            if isinstance(given, Mapping):
                return {key: update(held) for key, held in given.items()}
            if isinstance(given, (list, tuple)):
                old = {id(message) for message in history}, {message.id for message in history} - {None}
                parts = [part if _is_old(part, *old) else update(part) for part in given]
                return type(given)(parts)
            return given if given is None or isinstance(given, (bool, int, float)) else one(given)

        return [one(part) for part in result] if isinstance(result, list) else one(result)


def _message(message: BaseMessage, screen: Callable[[Any], ScreenedResult]) -> BaseMessage:
    """The message itself if nothing was found, else a copy."""
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


def _events(messages: Sequence[Any]) -> Iterator[HistoryEvent]:
    """The history as events for the gate of calls; a summary does not count as text of the user."""
    for message in messages:
        if isinstance(message, HumanMessage):
            own = "lc_source" not in message.additional_kwargs
            yield HistoryEvent("user" if own else "result", message.content)
        elif isinstance(message, AIMessage):
            yield from (HistoryEvent("call", call["args"], call["name"], call["id"]) for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            made = message.status != "error"
            yield HistoryEvent("result", message.content, message.name or "", message.tool_call_id, made)


def _is_old(part: Any, objects: set[int], identifiers: set[str]) -> bool:
    return isinstance(part, BaseMessage) and (id(part) in objects or part.id in identifiers)
