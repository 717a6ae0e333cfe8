"""Shared by the framework adapters: screens a tool result of any type and fails closed."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unpoison.agents.leaves import Path
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.screening import ScreenedResult, screen_tool_result
from unpoison.core.reasons import Reason
from unpoison.utils.plain_text import excerpt

__all__ = ["Policy", "ToolScreener", "with_line"]

Policy = ToolPolicy | Mapping[str, Any] | None
"""A policy, settings by the name of a tool, or None for the defaults."""

BLOB_FIELDS = frozenset({"base64", "base64_image", "blob", "data", "file_data", "image_url", "url"})
MIN_BLOB_CHARS = 1_000
_BLOB = re.compile(r"(?:data:[\w.+/;=\-]{0,200},)?[A-Za-z0-9+/\r\n]*+={0,2}")

logger = logging.getLogger("unpoison")


class ToolScreener:
    """Screens the results of tools by one policy, and fails closed.

    Args:
        policy: A `ToolPolicy`, or settings by tool: `{"fetch": {"source": "{url}", "level": "open"}}`.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    def __init__(self, policy: Policy = None) -> None:
        self.policy = ToolPolicy.of(policy)

    def screen(
        self, tool: str, result: Any, arguments: Mapping[str, Any] | None = None, query: str | None = None
    ) -> ScreenedResult:
        """The screened result: the same object without a finding, else a copy of its type.

        If screening fails, the result is blocked. One event per result goes to the logger `unpoison`, without any text
        of the result.
        """
        try:
            found = screen_tool_result(tool, result, query, policy=self.policy, arguments=arguments, skip=_is_blob)
        except Exception as error:  # fail closed: nothing passes unscreened
            found = ScreenedResult(tool, None, "blocked", (), Reason.of("tool.failed", kind=type(error).__name__))
            found = replace(found, value=found.line)
            logger.warning("a result of %s was not screened: %s", excerpt(tool), type(error).__name__)
        logger.info("a result of %s: %s", excerpt(tool), found.outcome, extra={"unpoison": found.to_dict()})
        return found

    async def ascreen(
        self, tool: str, result: Any, arguments: Mapping[str, Any] | None = None, query: str | None = None
    ) -> ScreenedResult:
        """`screen` in a thread, so that the event loop stays free."""
        return await asyncio.to_thread(self.screen, tool, result, arguments, query)


def with_line(screened: ScreenedResult) -> Any:
    """What the model may read: the value, and below a text with a finding a line that reports it."""
    value, line = screened.value, screened.line
    if screened.blocked or not line or not isinstance(value, str) or value.endswith(line):
        return value
    return f"{value}\n\n{line}"


def _is_blob(path: Path, holder: Mapping[str, Any], key: str) -> bool:
    """Whether a field is a file in base64."""
    value = holder[key]
    return (
        key in BLOB_FIELDS
        and isinstance(value, str)
        and len(value) >= MIN_BLOB_CHARS
        and _BLOB.fullmatch(value) is not None
    )
