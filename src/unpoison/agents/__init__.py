"""What agents read: results of tools and memories, screened, and a proxy in front of any MCP server.

    from unpoison.agents import screen_tool_result

    page = screen_tool_result("fetch", page).value

The names are imported when they are first used. Adapters to frameworks are a file each: `unpoison.agents.langchain`,
`llamaindex`, `haystack`, `openai_agents`, `pydantic_ai`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.agents.memory import Changed, MemoryGate, Written
    from unpoison.agents.memory_recall import MemoryContest, Recall, Recalled
    from unpoison.agents.memory_store import KeyValueMemories, Memory, SqliteMemories
    from unpoison.agents.policy import Bounds, ToolPolicy, ToolSettings
    from unpoison.agents.screening import Cut, ScreenedResult, screen_tool_result

__all__ = [
    "Bounds",
    "Changed",
    "Cut",
    "KeyValueMemories",
    "Memory",
    "MemoryContest",
    "MemoryGate",
    "Recall",
    "Recalled",
    "ScreenedResult",
    "SqliteMemories",
    "ToolPolicy",
    "ToolSettings",
    "Written",
    "screen_tool_result",
]

__getattr__ = lazy_names(
    __name__,
    {
        "Bounds": "policy",
        "Changed": "memory",
        "Cut": "screening",
        "KeyValueMemories": "memory_store",
        "Memory": "memory_store",
        "MemoryContest": "memory_recall",
        "MemoryGate": "memory",
        "Recall": "memory_recall",
        "Recalled": "memory_recall",
        "ScreenedResult": "screening",
        "SqliteMemories": "memory_store",
        "ToolPolicy": "policy",
        "ToolSettings": "policy",
        "Written": "memory",
        "screen_tool_result": "screening",
    },
)
