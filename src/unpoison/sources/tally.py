"""Who is in one's data: passages and questions for each origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from unpoison.sources.history import question_hash
from unpoison.sources.sources import Standing

__all__ = ["Tally", "TallyRow"]


class TallyRow(NamedTuple):
    """One origin, "" for unknown: its passages, the questions they were retrieved for, its share, passages by level."""

    origin: str
    passages: int
    questions: int
    share: float
    levels: dict[str, int]


class Tally:
    """Counts of origins; a question that is asked again counts once, its passages each time."""

    def __init__(self) -> None:
        self.passages = 0
        self._passages: Counter[str] = Counter()
        self._questions: dict[str, set[int]] = {}
        self._levels: dict[str, Counter[str]] = {}

    def add(self, question: str | None, standings: Sequence[Standing]) -> None:
        """Count what was retrieved for a question, None for documents that nobody asked for."""
        origins = [standing.origin for standing in standings]
        self.passages += len(origins)
        self._passages.update(origins)
        for standing in standings:
            self._levels.setdefault(standing.origin, Counter())[standing.level] += 1
        if question is not None:
            key = question_hash(question)
            for origin in set(origins):
                self._questions.setdefault(origin, set()).add(key)

    def rows(self) -> list[TallyRow]:
        """All origins, those with the most passages first."""
        ranked = sorted(self._passages.items(), key=lambda item: (-item[1], item[0]))
        return [
            TallyRow(
                origin,
                count,
                len(self._questions.get(origin, ())),
                count / self.passages,
                dict(self._levels[origin].most_common()),
            )
            for origin, count in ranked
        ]
