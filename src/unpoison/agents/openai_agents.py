"""The OpenAI Agents SDK: an output guardrail for function tools and MCP servers."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("agents.tool_guardrails", "the adapter for the OpenAI Agents SDK")

import copy
import json
from collections.abc import Iterable
from typing import Any

from agents import FunctionTool, Tool, ToolGuardrailFunctionOutput, ToolOutputGuardrail, ToolOutputGuardrailData
from pydantic_core import to_jsonable_python

from unpoison.agents.screening import ScreenedResult
from unpoison.agents.tool_screener import Policy, ToolScreener
from unpoison.errors import OptionError, clip

__all__ = ["screening_guardrail", "screening_tools"]


def screening_guardrail(policy: Policy = None) -> ToolOutputGuardrail[Any]:
    """A guardrail for `function_tool(tool_output_guardrails=[...])` and for MCP servers, which take the same option.

    A result without a finding passes unchanged. Any other is replaced by one text: the redacted result, as JSON if it
    was not a text, or a sentence that it was blocked. The SDK's record of the guardrail (`output_info`) lists the
    removals without their text.

    Args:
        policy: Settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """
    screener = ToolScreener(policy)

    async def screen(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        arguments = _arguments(data.context.tool_arguments)
        screened = await screener.ascreen(data.context.tool_name, data.output, arguments)
        if not screened.changed and not screened.line:
            return ToolGuardrailFunctionOutput.allow(screened.to_dict())
        return ToolGuardrailFunctionOutput.reject_content(_message(screened), screened.to_dict())

    return ToolOutputGuardrail(screen, "unpoison")


def screening_tools(tools: Iterable[Tool], policy: Policy = None) -> list[FunctionTool]:
    """Copies of function tools that have the guardrail, such as those of `agent.as_tool()`.

    Raises:
        OptionError: A hosted tool, whose results cannot be screened here; or a setting out of its range.
    """
    guardrail = screening_guardrail(policy)
    twins = []
    for tool in tools:
        if not isinstance(tool, FunctionTool):
            raise OptionError(
                f"the results of {clip(tool.name)} cannot be screened, for it is no function tool: "
                "pass function tools only"
            )
        twin = copy.copy(tool)
        twin.tool_output_guardrails = [guardrail, *(tool.tool_output_guardrails or ())]
        twins.append(twin)
    return twins


def _message(screened: ScreenedResult) -> str:
    """One text for the model."""
    value = screened.value
    if screened.blocked:
        return str(value)
    if not isinstance(value, str):
        plain = to_jsonable_python(value, fallback=str)
        value = plain["text"] if _is_text(plain) else json.dumps(plain, ensure_ascii=False)
    return f"{value}\n\n{screened.line}" if screened.line else value


def _is_text(value: Any) -> bool:
    """Whether it is the SDK's own form of a text."""
    return isinstance(value, dict) and value.get("type") == "text" and isinstance(value.get("text"), str)


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}
