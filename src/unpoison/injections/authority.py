"""Claims that a memory may not make: rules for the agent, and orders to remember something."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from unpoison.injections.redaction import parts_of, reading_of
from unpoison.injections.signs import read_grammar

__all__ = ["claim_of", "claim_patterns"]

Claim = Literal["memory.rule", "memory.order"]
"""A claim about the agent's permissions or duties; an order to remember something or to act on it from now on."""


@cache
def claim_patterns() -> dict[Claim, re.Pattern[str]]:
    """The pattern of each claim, for a text in lower case."""
    return {claim: re.compile("|".join(patterns)) for claim, patterns in read_grammar()["claims"].items()}


def claim_of(text: str) -> Claim | None:
    """Whether a text claims a rule for the agent or orders it to remember something; None for neither.

    Complexity: O(n) time for n characters.
    """
    words = [" ".join(reading_of(text[start:end]).casefold().split()) for start, end in parts_of(text)]
    words = [part.replace("\u2019", "'") for part in words]
    return next((claim for claim, pattern in claim_patterns().items() if any(map(pattern.search, words))), None)
