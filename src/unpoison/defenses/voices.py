"""Voices: which passages share one vote, because one source wrote them.

Without `sources` every passage is a voice. With `sources`, all passages of one origin share a voice, and so do equal
texts of unknown origin. If a policy or a history distinguishes sources, new sources do not count beside known ones
(`Voice.counts`), and an unknown source with many texts for one question weighs less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from unpoison.core.passages import Passage

if TYPE_CHECKING:
    from unpoison.sources.sources import Sources

__all__ = ["COUNTING", "Voice", "by_turns", "those_that_count", "voices_of"]

COUNTING = frozenset(("trusted", "known", "seen"))
"""Levels of standing that weigh against others."""


class Voice(NamedTuple):
    """The voter behind a passage.

    Attributes:
        name: Equal for passages that share a voice: the origin; if it is unknown, the text itself, or "" for all pages
            of known addresses without an author, so that these share one vote.
        origin: The source, "" if unknown.
        level: Its standing (`sources.Standing`).
        trust: The weight of the voice, in [0, 1].
        counts: Whether it weighs against others; new sources do not, beside known ones.
    """

    name: str
    origin: str = ""
    level: str = "unknown"
    trust: float = 1.0
    counts: bool = True

    @property
    def weight(self) -> float:
        """The weight in a vote: its trust, or 1 if no sources are distinguished."""
        return 1.0 if self.counts and self.level == "unknown" else self.trust

    @property
    def most(self) -> float:
        """The maximum weight of its source in a vote, whatever the source writes."""
        return self.trust if self.level in COUNTING else 1.0


def voices_of(sources: Sources | None, question: str, passages: Sequence[Passage]) -> list[Voice]:
    """The voice of each passage.

    The trust of a source that does not count, or is unknown, is divided by n - 1 if it has n > 2 different texts: an
    attacker with one page that is retrieved may have five.
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
    """Positions of passages: counting voices first, then the first passage of each voice before the second of any."""
    turns: list[int] = []
    passages_of = Counter[str]()
    for voice in voices:
        turns.append(passages_of[voice.name])
        passages_of[voice.name] += 1
    return sorted(range(len(voices)), key=lambda i: (not voices[i].counts, turns[i]))


def those_that_count(voices: Sequence[Voice], speaking: Iterable[int]) -> list[int]:
    """The given positions whose voice counts; all of them if none does."""
    positions = list(speaking)
    return [i for i in positions if voices[i].counts] or positions
