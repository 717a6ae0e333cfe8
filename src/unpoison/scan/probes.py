"""Questions made from the documents themselves: what somebody would ask to be answered by this unit."""

from __future__ import annotations

import re

from unpoison.scan.units import Unit, sentences

__all__ = ["Probe", "probe"]

MAX_PROBE = 40
"""Words of a question."""

MIN_WORDS = 4
"""With fewer words a first sentence is a heading, and the next one is asked with it."""

INTERROGATIVE = re.compile(
    r"(?:(?:in|on|at|by|for|from|of|to|with) )?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had)\b",
    re.IGNORECASE,
)
"""How an English question begins; in other languages the mark tells."""

MAX_QUESTION = 45
"""Words of a question in front."""


class Probe:
    """The question of a unit.

    Attributes:
        question: What is asked.
        asks: Whether a question stands in front of the unit's text.
        lead: Where its first sentence stands in the body.
    """

    __slots__ = ("asks", "lead", "question")

    def __init__(self, question: str, asks: bool, lead: tuple[int, int]) -> None:
        self.question, self.asks, self.lead = question, asks, lead


def probe(unit: Unit) -> Probe:
    """The first sentence as a question, behind the title where it does not name it. O(n) time."""
    stands = sentences(unit.body[:4_000])
    if not stands:
        return Probe(unit.title, asks=False, lead=(0, 0))
    lead = stands[0]
    first = unit.body[lead[0] : lead[1]]
    words = first.split()
    asks = len(stands) > 1 and _asks(first, words)
    if len(words) < MIN_WORDS and len(stands) > 1:
        words += unit.body[stands[1][0] : stands[1][1]].split()
    named = unit.title.split()
    if named and not asks and named[0] not in words:
        words = named + words
    return Probe(" ".join(words[:MAX_PROBE]), asks, lead)


def _asks(sentence: str, words: list[str]) -> bool:
    if not MIN_WORDS - 1 <= len(words) <= MAX_QUESTION:
        return False
    return sentence.rstrip("\"'\u201d\u2019) ").endswith(("?", "\uff1f")) or INTERROGATIVE.match(sentence) is not None
