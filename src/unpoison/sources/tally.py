"""Who is in one's data: passages and questions for each origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from unpoison.sources.history import question_hash

__all__ = ["Tally", "TallyRow"]


class TallyRow(NamedTuple):
    """One origin: its passages, the questions they were retrieved for, its share of all passages; "" for unknown."""

    origin: str
    passages: int
    questions: int
    share: float


class Tally:
    """Counts of origins; a question that is asked again counts once, its passages each time."""

    def __init__(self) -> None:
        self.passages = 0
        self._passages: Counter[str] = Counter()
        self._questions: dict[str, set[int]] = {}

    def add(self, question: str | None, origins: Sequence[str]) -> None:
        """Count what was retrieved for a question, None for documents that nobody asked for."""
        self.passages += len(origins)
        self._passages.update(origins)
        if question is not None:
            key = question_hash(question)
            for origin in set(origins):
                self._questions.setdefault(origin, set()).add(key)

    def rows(self) -> list[TallyRow]:
        """All origins, those with the most passages first."""
        ranked = sorted(self._passages.items(), key=lambda item: (-item[1], item[0]))
        return [
            TallyRow(origin, count, len(self._questions.get(origin, ())), count / self.passages)
            for origin, count in ranked
        ]
