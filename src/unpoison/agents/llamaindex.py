"""LlamaIndex: tools whose results are screened, for every agent and every loop that calls tools."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("llama_index.core", "the LlamaIndex adapter for agents")

import copy
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.base.llms.types import TextBlock
from llama_index.core.tools import AsyncBaseTool, BaseTool, FunctionTool, ToolOutput
from llama_index.core.tools.types import adapt_to_async_tool

from unpoison.agents.screening import ScreenedResult
from unpoison.agents.tool_screener import Policy, ToolScreener

__all__ = ["ScreeningTool", "screening_tools"]


def screening_tools(tools: Sequence[BaseTool | Callable[..., Any]], policy: Policy = None) -> list[AsyncBaseTool]:
    """Copies of tools, of their types, whose results and errors are screened. Functions become tools.

    Args:
        tools: As an agent takes them.
        policy: What becomes of results, by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """
    screener = ToolScreener(policy)
    return [_screening_tool(tool, screener) for tool in tools]


class ScreeningTool(AsyncBaseTool):
    """What `screening_tools` returns: a tool whose results are screened. A result that is blocked is an error."""

    _screener: ToolScreener

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """Call the tool."""
        arguments = self._arguments(args, kwargs)
        try:
            output = super().call(*args, **kwargs)  # type: ignore[safe-super]
        except Exception as error:
            if not (screened := self._screener.screen(self._name, str(error), arguments)).changed:
                raise
            raise RuntimeError(screened.value) from None
        return _with_blocks(output, self._screener.screen(self._name, output.blocks, arguments))

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        """`call` for asyncio."""
        arguments = self._arguments(args, kwargs)
        try:
            output = await super().acall(*args, **kwargs)  # type: ignore[safe-super]
        except Exception as error:
            if not (screened := await self._screener.ascreen(self._name, str(error), arguments)).changed:
                raise
            raise RuntimeError(screened.value) from None
        return _with_blocks(output, await self._screener.ascreen(self._name, output.blocks, arguments))

    to_langchain_tool = BaseTool.to_langchain_tool
    to_langchain_structured_tool = BaseTool.to_langchain_structured_tool  # that of a function tool calls the function

    @property
    def _name(self) -> str:
        return self.metadata.name or "tool"

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**dict(zip(self.metadata.get_parameters_dict().get("properties", {}), args)), **kwargs}


def _screening_tool(tool: BaseTool | Callable[..., Any], screener: ToolScreener) -> AsyncBaseTool:
    """A copy of a tool that is of its type as well: agents ask for that."""
    own = adapt_to_async_tool(tool if isinstance(tool, BaseTool) else FunctionTool.from_defaults(tool))
    twin = copy.copy(own)
    twin.__class__ = type(f"Screening{type(own).__name__}", (ScreeningTool, type(own)), {})
    twin._screener = screener  # type: ignore[attr-defined]
    return twin


def _with_blocks(output: ToolOutput, screened: ScreenedResult) -> ToolOutput:
    """The output itself where nothing is found."""
    if not screened.changed and not screened.line:
        return output
    line = TextBlock(text=screened.line)
    blocks = [line] if screened.blocked else [*screened.value, *([line] if screened.line else [])]
    found = ToolOutput(
        blocks=blocks,
        tool_name=output.tool_name,
        raw_input=output.raw_input,
        is_error=output.is_error or screened.blocked,
    )
    found.raw_output = found.content  # an agent may return it as it is
    return found
