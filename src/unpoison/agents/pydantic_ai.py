"""Pydantic AI: a capability that screens every tool of an agent, and a toolset around another."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("pydantic_ai", "the Pydantic AI adapter")

from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from unpoison.agents.policy import ToolPolicy
from unpoison.agents.screening import Policy, ToolScreener, with_line

__all__ = ["ScreeningToolset", "ToolScreening"]


@dataclass
class ScreeningToolset(WrapperToolset[AgentDepsT]):
    """A toolset whose tool results and retry messages are screened.

    Attributes:
        wrapped: The toolset: functions, an MCP server, several together.
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    policy: Policy = None

    def __post_init__(self) -> None:
        self._screener = ToolScreener(self.policy)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Call the tool.

        Raises:
            ToolFailed: Its result is blocked; the model reads why.
        """
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


@dataclass
class ToolScreening(AbstractCapability[AgentDepsT]):
    """Screens the results of all tools of an agent: `Agent(..., capabilities=[ToolScreening()])`.

    Attributes:
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    policy: Policy = None

    def __post_init__(self) -> None:
        self.policy = ToolPolicy.of(self.policy)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        """The agent's tools, screened."""
        return ScreeningToolset(toolset, self.policy)
