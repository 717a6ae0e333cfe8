"""Haystack: tools whose results are screened, for `Agent` and every pipeline that calls tools."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("haystack", "the Haystack adapter for agents")

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

from haystack.core.serialization import import_class_by_name
from haystack.tools import Toolset, ToolsType, flatten_tools_or_toolsets, warm_up_tools
from haystack.tools.errors import ToolInvocationError
from haystack.tools.tool import Tool

from unpoison.agents.policy import ToolPolicy
from unpoison.agents.tool_screener import Policy, ToolScreener, with_line
from unpoison.errors import OptionError, clip

__all__ = ["ScreeningTool", "screening_tools"]


def screening_tools(tools: ToolsType, policy: Policy = None) -> list[Tool]:
    """Copies of tools, of their types, whose results and errors are screened.

    What a tool returns is screened before it is written to an agent's state and before it is made a string.

    Args:
        tools: As an agent takes them. A toolset is warmed up and becomes its tools of that moment.
        policy: What becomes of results, by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """
    screener = ToolScreener(policy)
    given = [tools] if isinstance(tools, Toolset) else list(tools)
    warm_up_tools([tool for tool in given if isinstance(tool, Toolset)])
    return [_screening_tool(tool, screener, policy) for tool in flatten_tools_or_toolsets(given)]


class ScreeningTool(Tool):
    """What `screening_tools` returns: a tool whose results are screened. A result that is blocked is an error."""

    _tool: Tool
    _screener: ToolScreener
    _policy: Policy

    def invoke(self, **kwargs: Any) -> Any:
        """Call the tool.

        Raises:
            ToolInvocationError: It failed, or its result is blocked.
        """
        try:
            result = super().invoke(**kwargs)
        except ToolInvocationError as error:
            self._value(str(error), kwargs, error=True)
            raise
        return self._value(result, kwargs)

    async def invoke_async(self, **kwargs: Any) -> Any:
        """`invoke` for asyncio."""
        if self.async_function is None:
            return await asyncio.to_thread(self.invoke, **kwargs)
        try:
            result = await super().invoke_async(**kwargs)
        except ToolInvocationError as error:
            await asyncio.to_thread(self._value, str(error), kwargs, error=True)
            raise
        return await asyncio.to_thread(self._value, result, kwargs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a pipeline file.

        Raises:
            OptionError: The policy is an object, which a file cannot hold.
        """
        if isinstance(self._policy, ToolPolicy) or not _is_plain(self._policy):
            raise OptionError(
                f"a pipeline file cannot hold {clip(self._policy)}; give screening_tools a dict of plain values"
            )
        data = {"tool": self._tool.to_dict(), "policy": self._policy and dict(self._policy)}
        return {"type": f"{__name__}.ScreeningTool", "data": data}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Tool:
        """Read what `to_dict` wrote."""
        kind: Any = import_class_by_name(data["data"]["tool"]["type"])
        return screening_tools([kind.from_dict(data["data"]["tool"])], data["data"]["policy"])[0]

    def _value(self, value: Any, arguments: dict[str, Any], error: bool = False) -> Any:
        """The value screened; raises where it is blocked, or is an error's text that has to change."""
        screened = self._screener.screen(self.name, value, arguments)
        if screened.blocked or (error and screened.changed):
            raise ToolInvocationError(screened.value, tool_name=self.name) from None
        return with_line(screened)


def _screening_tool(tool: Tool, screener: ToolScreener, policy: Policy) -> Tool:
    """A copy of a tool that is of its type as well: Haystack asks for that."""
    twin = copy.copy(tool)
    own = type(tool)
    twin.__class__ = ScreeningTool if own is Tool else type(f"Screening{own.__name__}", (ScreeningTool, own), {})
    twin.__dict__.update(_tool=tool, _screener=screener, _policy=policy)
    return twin


def _is_plain(value: Any) -> bool:
    """Whether YAML holds it."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(held) for key, held in value.items())
    return value is None or isinstance(value, (str, bool, int, float))
