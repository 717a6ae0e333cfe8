"""What passages disagree on: rival answers, each with the passages behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from unpoison.core.codec import from_row, to_row
from unpoison.errors import clip

__all__ = ["Contest", "Rival", "unmistakable"]


@dataclass(frozen=True, slots=True)
class Rival:
    """One of several answers that cannot all be right.

    Attributes:
        answer: Its words, from a passage; hostile.
        passages: Positions of the passages that give it, ascending; at least one.
        voices: How many of them are independent, 1 to all: near-copies have one voice together.

    Raises:
        ValueError: An empty answer, positions that are not ascending, or voices out of range.
    """

    answer: str
    passages: tuple[int, ...]
    voices: int

    def __post_init__(self) -> None:
        if not isinstance(self.answer, str) or not self.answer.strip():
            raise ValueError(f"a rival needs an answer, got {clip(self.answer)}")
        if not self.passages or not _is_ascending(self.passages):
            raise ValueError(f"a rival needs ascending positions of its passages, got {clip(self.passages)}")
        if not 1 <= self.voices <= len(self.passages):
            raise ValueError(f"{len(self.passages)} passages have 1 to {len(self.passages)} voices, got {self.voices}")

    def to_dict(self) -> dict[str, Any]:
        return to_row(self)


def _is_ascending(positions: Sequence[object]) -> bool:
    numbers = [i for i in positions if type(i) is int and i >= 0]
    return len(numbers) == len(positions) and numbers == sorted(set(numbers))


@dataclass(frozen=True, slots=True)
class Contest:
    """What the passages disagree on, with nobody clearly in the right; as text, a sentence for the user.

    Attributes:
        rivals: Two or more, those with the most voices first; no passage is behind two of them.

    Raises:
        ValueError: Fewer than two rivals, or a passage behind two of them.
    """

    rivals: tuple[Rival, ...]

    def __post_init__(self) -> None:
        if len(self.rivals) < 2:
            raise ValueError(f"a contest needs two or more rivals, got {len(self.rivals)}")
        if len(self.passages) < sum(len(rival.passages) for rival in self.rivals):
            raise ValueError("a passage stands behind two rivals of one contest; give it to one of them")

    @property
    def passages(self) -> tuple[int, ...]:
        """All positions, ascending."""
        return tuple(sorted({i for rival in self.rivals for i in rival.passages}))

    def __str__(self) -> str:
        """Such as "sources disagree: 30 days (2 passages), 14 days (1)"; copies are said to be copies."""
        sides = []
        for number, rival in enumerate(self.rivals):
            count = len(rival.passages)
            unit = "" if number else " passages" if count > 1 else " passage"
            copies = f", {rival.voices} independent" if rival.voices < count else ""
            sides.append(f"{unmistakable(rival.answer)} ({count}{unit}{copies})")
        return f"sources disagree: {', '.join(sides)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; `says` is the sentence."""
        return {"says": str(self), **to_row(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return from_row(cls, data)


def unmistakable(answer: str, marks: str = '(),:;"') -> str:
    """An answer as a sentence can hold it: in quotation marks if it could be taken for the counts around it."""
    return '"{}"'.format(answer.replace('"', "'")) if any(mark in answer for mark in marks) else answer
