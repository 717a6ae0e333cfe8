"""A gate for an agent's memory: memories may carry information, never authority.

    gate = MemoryGate(sources="sources.yaml")
    written = gate.write(note, source=page_url)
    if written.kept:
        store.add(written.text, source=written.source)
    texts = [memory.text for memory in gate.read(store.search(question)) if memory.kept]

The store is the caller's. A memory may state facts, never permissions: prompt injections, claims about the agent's
permissions or duties, and instructions to remember something are not kept. Claims and instructions are detected by
phrases in English, German, French and Spanish; other phrases pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal, NamedTuple

from unpoison.agents.policy import ToolPolicy, ToolSettings
from unpoison.agents.screening import screen_tool_result
from unpoison.core.reasons import Reason
from unpoison.errors import InputError, clip
from unpoison.injections import THRESHOLD
from unpoison.injections.redaction import parts_of, reading_of
from unpoison.sources.sources import SourcesOption
from unpoison.sources.trust import Level
from unpoison.utils.assets import read_data

__all__ = ["MemoryGate", "Remembered", "claim_of", "claim_patterns"]

MAX_CHARS = 20_000
"""Maximum characters of a memory."""

TOOL = "memory"
"""The tool name under which memories are screened."""


class Remembered(NamedTuple):
    """A memory, judged.

    Attributes:
        kept: Whether it may be stored or read.
        text: The text without hidden characters; empty if it is not kept.
        reason: The reason, with its code.
        source: Its source; None if unknown.
        level: Trust in the source (`sources.trust.Level`).
        trust: The weight of that level, in [0, 1].
    """

    kept: bool
    text: str
    reason: Reason
    source: str | None
    level: Level
    trust: float


class MemoryGate:
    """Screens writes to and reads from a store of memories. Thread-safe.

    Args:
        sources: Trust in sources: `Sources`, or a policy as a file or a mapping; None for no policy.
        threshold: The probability above which a stretch is a prompt injection, in [0, 1].

    Raises:
        OptionError: An option out of its range.
        InputError: The policy's file cannot be used.
    """

    def __init__(self, *, sources: SourcesOption = None, threshold: float = THRESHOLD) -> None:
        settings = ToolSettings(action="block", threshold=threshold)
        self._policy = ToolPolicy({TOOL: settings}, sources=sources)  # type: ignore[arg-type]

    def write(self, text: str, source: str | None = None) -> Remembered:
        """Screen a text before it is stored.

        Args:
            text: The memory, at most 20,000 characters.
            source: Its source: an address or a name, such as that of a user. For a summary of several texts, the least
                trusted source.

        Raises:
            InputError: An empty text, or one that is too long.
        """
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_CHARS:
            raise InputError(f"a memory must be a text of 1 to {MAX_CHARS:,} characters, got {clip(text)}")
        return self._judge(text, source)

    def read(self, memories: Iterable[str | Mapping[str, str]]) -> list[Remembered]:
        """Screen memories from a store, as `write` does: they may be older than the gate, or bypass it.

        Args:
            memories: Texts; or mappings with `text` and `source`.

        Returns:
            One result per memory, in order; the agent must not read memories that are not kept.
        """
        found = [{"text": one} if isinstance(one, str) else one for one in memories]
        return [self._judge(str(one.get("text", "")), one.get("source")) for one in found]

    def _judge(self, text: str, source: str | None) -> Remembered:
        screened = screen_tool_result(TOOL, text, policy=self._policy, source=source)
        standing = screened.source, screened.level, screened.trust
        if screened.blocked:
            return Remembered(False, "", screened.reason, *standing)
        claim = claim_of(text)
        if claim is not None:
            return Remembered(False, "", Reason.of(claim), *standing)
        return Remembered(True, screened.value, Reason.of("memory.kept"), *standing)


Claim = Literal["memory.rule", "memory.order"]
"""A claim about the agent's permissions or duties; an instruction to remember something, or to act from now on."""


@cache
def claim_patterns() -> dict[Claim, re.Pattern[str]]:
    """The pattern of each claim, for a text in lower case."""
    return {claim: re.compile("|".join(patterns)) for claim, patterns in read_data("injections.yaml")["claims"].items()}


def claim_of(text: str) -> Claim | None:
    """The kind of claim if a text states a rule for the agent or tells it to remember something; None for neither.

    Complexity: O(n) time for n characters.
    """
    words = [" ".join(reading_of(text[start:end]).casefold().split()) for start, end in parts_of(text)]
    words = [part.replace("\u2019", "'") for part in words]
    return next((claim for claim, pattern in claim_patterns().items() if any(map(pattern.search, words))), None)
