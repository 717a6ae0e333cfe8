"""What a defense says of each passage, and the evidence that this rests on: frozen, validated where it is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.core.codec import array_row, from_row, read_array, to_row
from unpoison.core.reasons import Reason, as_reason
from unpoison.core.spans import Span, merge_spans
from unpoison.errors import clip

__all__ = ["Evidence", "Verdict"]


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
