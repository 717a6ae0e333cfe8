"""What a defense says of each passage, of which spans of it, and the evidence that this rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.core.codec import array_row, from_row, read_array, to_row
from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason, as_reason
from unpoison.errors import clip

if TYPE_CHECKING:
    from unpoison.text.alignment import Region, Regions

__all__ = ["Evidence", "Span", "Verdict", "cuts_of", "merge_spans", "spans_at", "spans_of", "without"]

MAX_REASON_CHARS = 400
"""Characters of the reason of a span that stands for several."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a passage, why it is suspicious, and how much.

    Attributes:
        start, end: Positions in the caller's text, counted in characters (code points); `end` is behind the last one.
        probability: Of being poison, or a prompt injection, in [0, 1].
        reason: One sentence.
        field: Whether the positions are those of the passage's `text` or of its `title`.
        flagged: Whether it is only pointed out: a passage that is kept is read with it.

    Raises:
        ValueError: Positions that hold no character, or a probability out of range.
    """

    start: int
    end: int
    probability: float
    reason: str
    field: Literal["text", "title"] = "text"
    flagged: bool = False

    def __post_init__(self) -> None:
        if type(self.start) is not int or type(self.end) is not int or not 0 <= self.start < self.end:
            raise ValueError(f"a span needs whole numbers 0 <= start < end, got {clip((self.start, self.end))}")
        number: object = self.probability
        if isinstance(number, bool) or not (isinstance(number, (int, float)) and isfinite(number) and 0 <= number <= 1):
            raise ValueError(f"a span needs a probability between 0 and 1, got {clip(number)}")
        if not isinstance(self.reason, str):
            raise ValueError(f"a span needs a reason in words, got {clip(self.reason)}")
        if self.field not in ("text", "title"):
            raise ValueError(f"a span is in the text or the title, got {clip(self.field)}")

    def to_dict(self) -> dict[str, Any]:
        """Its fields; `flagged` where it is."""
        return to_row(self, leave_out=() if self.flagged else ("flagged",))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return from_row(cls, data)


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same parts without overlaps, the title's first; what overlaps is one span with the highest probability."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.field == "text", s.start, s.end)):
        last = merged[-1] if merged else None
        if last is None or last.field != span.field or last.end <= span.start:
            merged.append(span)
            continue
        better, weaker = (span, last) if span.probability > last.probability else (last, span)
        reason = better.reason if weaker.reason in better.reason else f"{better.reason}; {weaker.reason}"
        reason = reason if len(reason) <= MAX_REASON_CHARS else better.reason
        merged[-1] = replace(
            better,
            start=last.start,
            end=max(last.end, span.end),
            reason=reason,
            flagged=last.flagged and span.flagged,
        )
    return tuple(merged)


def _parts(passage: Passage) -> list[tuple[Literal["title", "text"], int, int]]:
    """Where title and text stand in what is read: (field, start, end)."""
    begin = len(passage.raw) - len(passage.text)
    title: list[tuple[Literal["title", "text"], int, int]] = [("title", 0, begin - 1)] if begin else []
    return [*title, ("text", begin, len(passage.raw))]


def spans_of(passage: Passage, windows: Sequence[tuple[int, int, float, str]]) -> Iterator[Span]:
    """Windows of a passage's reading as spans of the caller's text: one for each part that a window was made of.

    Args:
        passage: The passage.
        windows: Start and end in its `reading`, probability, reason.

    Complexity: as reading it, O(n log n) time for n characters, whatever the number of windows, and theirs.
    """
    for (_, _, probability, reason), regions in zip(windows, passage.regions(windows), strict=True):
        for first, last in regions:
            yield from spans_at(passage, first, last, probability, reason)


def spans_at(passage: Passage, start: int, end: int, probability: float, reason: str) -> Iterator[Span]:
    """A stretch of `Passage.raw` as spans: one in the title, one in the text, or both."""
    for part, begin, close in _parts(passage):
        if max(start, begin) < min(end, close):
            yield Span(max(start, begin) - begin, min(end, close) - begin, probability, reason, part)


def cuts_of(passage: Passage, spans: Sequence[Span]) -> Regions:
    """The spans as positions in `Passage.raw`; a title that is not read has none."""
    begins = {part: begin for part, begin, _ in _parts(passage)}
    return tuple(_shift(span, begins[span.field]) for span in spans if span.field in begins)


def _shift(span: Span, begin: int) -> Region:
    return span.start + begin, span.end + begin


def without(passage: Passage, spans: Sequence[Span]) -> Passage:
    """The passage, its reading without these spans; the same object where there are none."""
    return passage.without(cuts_of(passage, spans)) if spans else passage


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a defense says of one passage.

    Attributes:
        index: Its position in the input.
        kept: Whether the model may read it.
        score: The defense's own trust score; higher is more trusted; scales differ between defenses.
        rank: 0 for the best of the kept, None when dropped.
        reason: One sentence, naming the neighbours that incriminate or support it, with its code, parameters and
            plain words (`Reason`); a string becomes a reason without a code.
        spans: What in its text is suspicious, the title's first, rising and without overlaps; a kept passage is read
            without these, but for those that are only flagged.

    Raises:
        ValueError: Spans that overlap or do not rise, or a reason that is no string.
    """

    index: int
    kept: bool
    score: float
    rank: int | None
    reason: Reason
    spans: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", as_reason(self.reason))
        if self.spans and merge_spans(self.spans) != tuple(self.spans):
            raise ValueError(f"the spans of passage {self.index} must rise and not overlap, got {clip(self.spans)}")

    @property
    def cuts(self) -> tuple[Span, ...]:
        """What a kept passage is read without; of a dropped one nothing is read."""
        return tuple(span for span in self.spans if not span.flagged) if self.kept else ()

    def to_dict(self) -> dict[str, Any]:
        return to_row(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; without `spans` it has none."""
        return from_row(cls, data)


@dataclass(frozen=True, slots=True)
class Evidence(Mapping[str, NDArray[Any]]):
    """The named arrays that a decision rests on, read-only, plus notes on anything unusual.

    Attributes:
        arrays: For example `similarity` (k, k), `clusters` (k,), `centrality` (k,).
        notes: Sentences such as "fewer than 3 passages: nothing to compare".
        graph: Which (k, k) array the picture draws as edges.
    """

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    graph: str | None = None

    def __post_init__(self) -> None:
        frozen = {}
        for name, value in self.arrays.items():
            array = np.asarray(value).view()
            array.setflags(write=False)
            frozen[name] = array
        object.__setattr__(self, "arrays", MappingProxyType(frozen))

    def to_dict(self) -> dict[str, Any]:
        """Arrays and graph; the notes stand in the row of the screening."""
        return {"arrays": {name: array_row(array) for name, array in self.items()}, "graph": self.graph}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], notes: Iterable[str] = ()) -> Self:
        """Read what `to_dict` wrote."""
        return cls({name: read_array(row) for name, row in data["arrays"].items()}, tuple(notes), data["graph"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)
