"""Screening for agents: tool results, memories, and a proxy for MCP servers.

    from unpoison.agents import screen_tool_result

    page = screen_tool_result("fetch", page).value

The names are imported when they are first used. Adapters to frameworks are a file each: `unpoison.agents.langchain`,
`openai_agents`, `pydantic_ai`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.extras import lazy_names

if TYPE_CHECKING:
    from unpoison.agents.memory import MemoryGate, Remembered
    from unpoison.agents.policy import ToolPolicy, ToolSettings
    from unpoison.agents.screening import ScreenedResult, screen_tool_result

__all__ = ["MemoryGate", "Remembered", "ScreenedResult", "ToolPolicy", "ToolSettings", "screen_tool_result"]

_HOMES = {
    "memory": "MemoryGate Remembered",
    "policy": "ToolPolicy ToolSettings",
    "screening": "ScreenedResult screen_tool_result",
}

__getattr__ = lazy_names(__name__, _HOMES)
