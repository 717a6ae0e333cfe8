"""The OpenAI Agents SDK: an output guardrail for function tools and MCP servers."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("agents.tool_guardrails", "the adapter for the OpenAI Agents SDK")

import json
from typing import Any

from agents import ToolGuardrailFunctionOutput, ToolOutputGuardrail, ToolOutputGuardrailData
from pydantic_core import to_jsonable_python

from unpoison.agents.screening import Policy, ScreenedResult, ToolScreener

__all__ = ["screening_guardrail"]


def screening_guardrail(policy: Policy = None) -> ToolOutputGuardrail[Any]:
    """A guardrail for `function_tool(tool_output_guardrails=[...])` and for MCP servers, which take the same option.

    A tool that exists already takes it as its attribute `tool_output_guardrails`; hosted tools have none.

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
