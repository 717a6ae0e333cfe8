"""For whom each passage speaks, wherever passages are counted: one voice for each source.

Without `sources` every passage is its own voice. With them, passages of one origin share one, and so do equal texts of
unknown origin. Where a policy or a history tells sources apart, what was never seen before does not count beside what
was (`Voice.counts`), and an unknown source that brings many texts to one question weighs less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage

if TYPE_CHECKING:
    from unpoison.sources.sources import Sources

__all__ = [
    "Voice",
    "by_turns",
    "of_one_voice",
    "ranks_of",
    "texts_by_voice",
    "those_that_count",
    "voices_of",
    "votes_of",
]

K = TypeVar("K", bound=Hashable)

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

    @property
    def weight(self) -> float:
        """What it weighs in a vote: its trust, and 1 where no source can be told from another."""
        return 1.0 if self.counts and self.level == "unknown" else self.trust

    @property
    def most(self) -> float:
        """The most that its source can weigh in a vote, whatever it writes."""
        return self.trust if self.level in COUNTING else 1.0


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


def those_that_count(voices: Sequence[Voice], speaking: Iterable[int]) -> list[int]:
    """Of the positions that say anything those whose voice counts; all of them where none does."""
    positions = list(speaking)
    return [i for i in positions if voices[i].counts] or positions


def of_one_voice(voices: Sequence[Voice]) -> NDArray[np.bool_]:
    """Which two passages share a voice, shape (k, k); every passage shares its own."""
    names = np.array([voice.name for voice in voices], object)
    return np.asarray(names[:, None] == names[None, :], bool)


def texts_by_voice(voices: Sequence[Voice], passages: Sequence[Passage]) -> dict[str, str]:
    """What each voice says in all its passages, one text below the other, in the order in which voices first speak."""
    said: dict[str, list[str]] = {}
    for voice, passage in zip(voices, passages, strict=True):
        said.setdefault(voice.name, []).append(passage.reading)
    return {name: "\n\n".join(texts) for name, texts in said.items()}


def ranks_of(voices: Sequence[Voice]) -> list[int]:
    """For each passage the rank of its voice, from 0: how many others spoke before it."""
    rank: dict[str, int] = {}
    return [rank.setdefault(voice.name, len(rank)) for voice in voices]


def votes_of(voices: Sequence[Voice], said: Mapping[int, Iterable[K]]) -> dict[K, dict[str, float]]:
    """Who votes for what: for each thing that is said the weight of each voice that says it, once.

    Args:
        voices: Of all passages.
        said: What each passage says, by position; those that say nothing are missing.

    Returns:
        In the order in which things are said; empty where only voices say it that do not count, and others do.
    """
    votes: dict[K, dict[str, float]] = {thing: {} for things in said.values() for thing in things}
    for i in those_that_count(voices, said):
        for thing in said[i]:
            votes[thing][voices[i].name] = voices[i].weight
    return votes
