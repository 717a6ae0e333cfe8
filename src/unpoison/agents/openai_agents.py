"""The OpenAI Agents SDK: an output guardrail for function tools and MCP servers, and a gate for calls."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("agents.tool_guardrails", "the adapter for the OpenAI Agents SDK")

import asyncio
import json
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import agents as sdk
from pydantic_core import to_jsonable_python

from unpoison.agents.arguments import Conversation, HistoryEvent, mode_of, refusal, replay, write_down
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.screening import Policy, ScreenedResult, ToolScreener

__all__ = ["guard_calls", "screening_guardrail"]

MAX_ASKED = 1_000
"""Calls that wait for an approval and are remembered."""


def screening_guardrail(policy: Policy = None) -> sdk.ToolOutputGuardrail[Any]:
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

    async def screen(data: sdk.ToolOutputGuardrailData) -> sdk.ToolGuardrailFunctionOutput:
        arguments = _arguments(data.context.tool_arguments)
        screened = await screener.ascreen(data.context.tool_name, data.output, arguments)
        if not screened.changed and not screened.line:
            return sdk.ToolGuardrailFunctionOutput.allow(screened.to_dict())
        return sdk.ToolGuardrailFunctionOutput.reject_content(_message(screened), screened.to_dict())

    return sdk.ToolOutputGuardrail(screen, "unpoison")


def guard_calls(tools: Iterable[sdk.FunctionTool], policy: Policy = None, arguments: str = "log") -> None:
    """Check the targets of calls of these tools. Pass all of an agent's tools in one call: their results are compared.

    Sets `tool_input_guardrails`, `tool_output_guardrails` and `needs_approval` of each tool, and keeps what is there.

    Args:
        tools: The agent's function tools.
        policy: Settings by tool: `arguments`, `allow`, and the trust in results.
        arguments: A call whose target only a result named: `log`, `block`, or `ask` as a tool that needs approval
            (`result.interruptions`).

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """
    gate = _CallGate(ToolPolicy.of(policy), arguments)
    before = sdk.ToolInputGuardrail[Any](gate.check, "unpoison")
    after = sdk.ToolOutputGuardrail[Any](gate.record, "unpoison")
    for tool in tools:
        tool.tool_input_guardrails = [*(tool.tool_input_guardrails or ()), before]
        tool.tool_output_guardrails = [after, *(tool.tool_output_guardrails or ())]
        if gate.mode == "ask":
            tool.needs_approval = partial(gate.needs_approval, tool.name, tool.needs_approval)


class _CallGate:
    """The targets that each run named, kept while the SDK keeps the run's usage object, which its contexts share."""

    def __init__(self, policy: ToolPolicy, arguments: str) -> None:
        self.policy, self.mode = policy, mode_of(arguments)
        self._runs: dict[int, Conversation] = {}
        self._asked: dict[str, Conversation] = {}

    def of_run(self, context: sdk.RunContextWrapper[Any], call: str = "") -> Conversation:
        """The targets that a run named. A run resumed after an approval has new contexts, and is found by that call."""
        key = id(context.usage)
        if key not in self._runs:
            made = self._asked.get(call)
            if made is None:
                own = context.turn_input if context.tool_input is None else []  # a nested agent's is a model's
                made = replay(self.policy, _events(own), asks=False)
                made.full = bool(context._approvals)  # it goes on after a refusal, and what its results named is lost
            self._runs[key] = made
            weakref.finalize(context.usage, self._runs.pop, key, None)
        return self._runs[key]

    async def needs_approval(
        self, name: str, own: Any, context: sdk.RunContextWrapper[Any], arguments: dict[str, Any], call: str
    ) -> bool:
        """Whether the user is asked, by the gate or by the tool's own setting."""
        seen = self.of_run(context, call)
        if await asyncio.to_thread(seen.foreign, name, arguments):
            self._asked[call] = seen
            if len(self._asked) > MAX_ASKED:
                del self._asked[next(iter(self._asked))]
            return True
        return bool(await own(context, arguments, call) if callable(own) else own)

    async def check(self, data: sdk.ToolInputGuardrailData) -> sdk.ToolGuardrailFunctionOutput:
        """Before a call: allow it, or tell the model why not."""
        context, seen = data.context, self.of_run(data.context, data.context.tool_call_id)
        name, arguments = context.tool_name, _arguments(context.tool_arguments)
        found = await asyncio.to_thread(seen.foreign, name, arguments)
        if not found:
            seen.allow_call(name, arguments)
            return sdk.ToolGuardrailFunctionOutput.allow()
        approved = self.mode == "ask" and context.is_tool_approved(name, context.tool_call_id)
        outcome = "logged" if self.mode == "log" else "approved" if approved else "blocked"
        write_down(name, found, outcome)
        if outcome == "blocked":
            return sdk.ToolGuardrailFunctionOutput.reject_content(refusal(name, found))
        if approved:
            seen.allow_call(name, arguments, approved=True)
        return sdk.ToolGuardrailFunctionOutput.allow()

    async def record(self, data: sdk.ToolOutputGuardrailData) -> sdk.ToolGuardrailFunctionOutput:
        """After a call: record the targets that its result names."""
        given = data.context.tool_name, data.output, _arguments(data.context.tool_arguments)
        await asyncio.to_thread(self.of_run(data.context).add_result, *given)
        return sdk.ToolGuardrailFunctionOutput.allow()


def _events(items: Sequence[Any]) -> Iterator[HistoryEvent]:
    """Record the input of a run: the user's texts, and the calls and results of earlier runs."""
    for item in items:
        held = item if isinstance(item, dict) else {}
        kind, call = str(held.get("type")), str(held.get("call_id"))
        if held.get("role") == "user":
            said = held.get("content")
            parts = said if isinstance(said, list) else [said]
            yield HistoryEvent("user", [part.get("text", "") if isinstance(part, dict) else part for part in parts])
        elif kind == "function_call":
            yield HistoryEvent("call", _arguments(str(held.get("arguments"))), str(held.get("name")), call)
        elif kind.endswith("_output"):
            yield HistoryEvent("result", held.get("output"), "", call)


def _message(screened: ScreenedResult) -> str:
    """One text for the model."""
    value = screened.value
    if screened.blocked:
        return str(value)
    if not isinstance(value, str):
        plain = to_jsonable_python(value, fallback=str)
        match plain:
            case {"type": "text", "text": str(value)}:  # the SDK's own form of a text
                pass
            case _:
                value = json.dumps(plain, ensure_ascii=False)
    return f"{value}\n\n{screened.line}" if screened.line else value


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}
