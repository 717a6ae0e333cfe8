"""Pydantic AI: a capability that screens every tool of an agent, and a toolset around another."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("pydantic_ai", "the Pydantic AI adapter")

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ModelMessage, ToolReturn
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from unpoison.agents.arguments import HistoryEvent, mode_of, question, refusal, replay, write_down
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.screening import Policy, ToolScreener, with_line

__all__ = ["ScreeningToolset", "ToolScreening"]


@dataclass
class ScreeningToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose tool results and retry messages are screened, and the targets of whose calls are checked.

    Attributes:
        wrapped: The toolset: functions, an MCP server, several together.
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.
        arguments: A call whose target only a result named: `log`, `block`, or `ask` as a deferred tool, which needs
            `DeferredToolRequests` among the agent's output types.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    policy: Policy = None
    arguments: str = "log"

    def __post_init__(self) -> None:
        self._screener, self._mode = ToolScreener(self.policy), mode_of(self.arguments)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Call the tool.

        Raises:
            ToolFailed: Its result is blocked, or it is not called; the model reads why.
            ApprovalRequired: The user is asked.
        """
        await self._check(name, tool_args, ctx)
        query = ctx.prompt if isinstance(ctx.prompt, str) else None
        try:
            result = await super().call_tool(name, tool_args, ctx, tool)
        except (ModelRetry, ToolFailed) as error:
            screened = await self._screener.ascreen(name, error.message, tool_args, query)
            if not screened.changed:
                raise
            raise type(error)(screened.value) from None
        shown = [result.return_value, result.content] if isinstance(result, ToolReturn) else [result]
        screened = await self._screener.ascreen(name, shown[0] if len(shown) == 1 else shown, tool_args, query)
        if screened.blocked:
            raise ToolFailed(screened.value)
        if screened.value is shown:
            return result
        if isinstance(result, ToolReturn):
            return replace(result, return_value=screened.value[0], content=screened.value[1])
        return with_line(screened)

    async def _check(self, name: str, arguments: dict[str, Any], ctx: RunContext[AgentDepsT]) -> None:
        """Refuse a call, ask about it, or log it, if only a result named its target."""

        def foreign() -> Any:
            conversation = replay(self._screener.policy, _events(ctx.messages), asks=self._mode == "ask")
            return conversation.foreign(name, arguments)

        if not (found := await asyncio.to_thread(foreign)):
            return
        if self._mode == "block":
            write_down(name, found, "blocked")
            raise ToolFailed(refusal(name, found))
        if self._mode == "ask" and not ctx.tool_call_approved:
            write_down(name, found, "asked about")
            raise ApprovalRequired({"question": question(name, found)})
        write_down(name, found, "logged" if self._mode == "log" else "approved")


def _events(messages: Sequence[ModelMessage]) -> Iterator[HistoryEvent]:
    """The history as events for the gate. A user prompt beside a tool's result counts as a result, too."""
    for message in messages:
        kinds = [part.part_kind for part in message.parts]
        returned = any(kind.endswith("tool-return") or kind == "retry-prompt" for kind in kinds)
        for part in message.parts:
            held: Any = part
            if part.part_kind == "user-prompt":
                yield HistoryEvent("result" if returned else "user", held.content)
            elif part.part_kind.endswith("tool-call"):
                yield HistoryEvent("call", held.args_as_dict(), held.tool_name, held.tool_call_id)
            elif part.part_kind.endswith("tool-return"):
                made = held.outcome == "success"
                yield HistoryEvent("result", held.content, held.tool_name, held.tool_call_id, made)
            elif part.part_kind == "retry-prompt":
                yield HistoryEvent("result", held.content, held.tool_name or "", made=False)


@dataclass
class ToolScreening(AbstractCapability[AgentDepsT]):
    """Screens the results of all tools of an agent, and checks the targets of calls: `capabilities=[ToolScreening()]`.

    Attributes:
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.
        arguments: A call whose target only a result named: `log`, `block`, or `ask` as a deferred tool, which needs
            `DeferredToolRequests` among the agent's output types.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    policy: Policy = None
    arguments: str = "log"

    def __post_init__(self) -> None:
        self.policy, self.arguments = ToolPolicy.of(self.policy), mode_of(self.arguments)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The agent's tools, screened."""
        return ScreeningToolset(toolset, self.policy, self.arguments)
