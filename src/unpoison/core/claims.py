"""What passages say in answer to the question: claims, each with the sources behind it, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, Self

from unpoison.core.codec import from_row, to_row
from unpoison.core.passages import Passage
from unpoison.errors import clip

__all__ = ["Claim", "Contest", "Rival", "Status", "disagreement", "is_disagreement", "unmistakable"]


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


Status = Literal["agreed", "disputed", "single", "none"]
"""Two or more sources say so; sources contradict each other; one says so; none does."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One answer that passages give, in all the wordings that mean the same.

    Attributes:
        text: Its words, from a passage; hostile.
        weight: What its sources weigh together: for each its trust times how surely it says so, 0 or more.
        origins: Who says so, in alphabetical order; a passage without a source has none.
        passages: Positions of the passages that say so, ascending; at least one.
        quotes: Sentences that say so, the surest first, one for a source, three at most; hostile.

    Raises:
        ValueError: An empty text, a weight out of range, or positions that do not ascend.
    """

    text: str
    weight: float
    origins: tuple[str, ...]
    passages: tuple[int, ...]
    quotes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ValueError(f"a claim needs words, got {clip(self.text)}")
        if not (isinstance(self.weight, (int, float)) and isfinite(self.weight) and self.weight >= 0):
            raise ValueError(f"a claim weighs 0 or more, got {clip(self.weight)}")
        rising = all(type(i) is int and i >= 0 for i in self.passages) and list(self.passages) == sorted(
            set(self.passages)
        )
        if not self.passages or not rising:
            raise ValueError(f"a claim needs ascending positions of its passages, got {clip(self.passages)}")

    def to_dict(self) -> dict[str, Any]:
        return to_row(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return from_row(cls, data)


def disagreement(claims: Sequence[Claim], passages: Sequence[Passage]) -> str:
    """A sentence for the user: "Sources disagree: 14 days (handbook.example); 30 days (wiki.example, intranet)".

    A source that stands on both sides is shown by its pages, with author and date where they are known.
    """
    shared = [origin for claim in claims for origin in claim.origins]
    sides = []
    for claim in claims:
        names = [origin for origin in claim.origins if shared.count(origin) == 1]
        pages = [] if len(names) == len(claim.origins) else [_page(passages[i]) for i in claim.passages]
        named = list(dict.fromkeys([*map(_one_line, names), *filter(None, pages)]))
        count = len(claim.passages)
        who = ", ".join(named[:MAX_NAMED]) + (f" and {len(named) - MAX_NAMED} more" * (len(named) > MAX_NAMED))
        sides.append(f"{unmistakable(claim.text)} ({who or f'{count} passage' + 's' * (count > 1)})")
    return f"{DISAGREE}{'; '.join(sides)}"


DISAGREE = "Sources disagree: "
"""How an answer begins that shows both sides; a measurement counts it as neither right nor wrong."""

MAX_NAMED = 3
"""Sources of a side that are named."""


def is_disagreement(answer: str) -> bool:
    """Whether an answer shows what sources disagree on, as `disagreement` words it."""
    return answer.startswith(DISAGREE)


def _page(passage: Passage) -> str:
    """Which page it is: its address or title, who wrote it, when."""
    details = [str(passage.metadata[name]) for name in ("author", "date", "published") if name in passage.metadata]
    page = passage.source or passage.title or ""
    return ", ".join([_one_line(page), *map(_one_line, details)]) if page else ""


def _one_line(text: str) -> str:
    """At most 80 characters of a text on one line, in quotation marks if it could be taken for the sentence."""
    from unpoison.sources.addresses import visible  # most passages are never cited

    line = visible(" ".join(text.split()))
    line = line if len(line) <= 80 else f"{line[:79]}…"
    return unmistakable(line, '(),;"')
