"""For whom each passage speaks, wherever passages are counted: one voice for each source.

Without `sources` every passage is its own voice. With them, passages of one origin share one, and so do equal texts of
unknown origin. Where a policy or a history tells sources apart, what was never seen before does not count beside what
was (`Voice.counts`), and an unknown source that brings many texts to one question weighs less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from unpoison.sources import Sources
from unpoison.types import Passage

__all__ = ["Voice", "by_turns", "one_voice_each", "voices_of"]

COUNTING = frozenset(("trusted", "known", "seen"))
"""Levels of standing that weigh against others."""


class Voice(NamedTuple):
    """For whom a passage speaks.

    Attributes:
        name: Equal for passages that have one voice together: the origin; where that is unknown the text itself, and ""
            for all whose address counts nevertheless: who leaves out the author is no crowd.
        origin: The source, "" where it is unknown.
        level: Its standing (`sources.Standing`).
        trust: What the voice weighs, in [0, 1].
        counts: Whether it weighs against others; what was never seen before does not, beside what was.
    """

    name: str
    origin: str = ""
    level: str = "unknown"
    trust: float = 1.0
    counts: bool = True


def voices_of(sources: Sources | None, question: str, passages: Sequence[Passage]) -> list[Voice]:
    """The voice of each passage.

    A source that does not count, or of which nothing is known, weighs 1 / (n - 1) of its trust where it brings n > 2
    different texts: who owns one page that ranks may own five.
    """
    if sources is None:
        return [Voice(str(i)) for i in range(len(passages))]
    standings = sources.standings(question, passages)
    informed = sources.informed
    texts = defaultdict[str, set[str]](set)
    for standing, passage in zip(standings, passages, strict=True):
        texts[standing.origin].add(passage.reading)
    voices = []
    for standing, passage in zip(standings, passages, strict=True):
        counts = standing.level in COUNTING or (not informed and standing.level != "blocked")
        many = len(texts[standing.origin]) if standing.origin and standing.level not in COUNTING else 1
        name = standing.origin or ("" if standing.level in COUNTING else f"text: {passage.reading}")
        voices.append(Voice(name, standing.origin, standing.level, standing.trust / max(1, many - 1), counts))
    return voices


def by_turns(voices: Sequence[Voice]) -> list[int]:
    """The positions of those that count first, the first of each voice before the second of any."""
    turns: list[int] = []
    spoken = Counter[str]()
    for voice in voices:
        turns.append(spoken[voice.name])
        spoken[voice.name] += 1
    return sorted(range(len(voices)), key=lambda i: (not voices[i].counts, turns[i]))


def one_voice_each(voices: Sequence[Voice], positions: Iterable[int]) -> list[int]:
    """Of these positions the first of each voice."""
    first: dict[str, int] = {}
    for i in positions:
        first.setdefault(voices[i].name, i)
    return list(first.values())
