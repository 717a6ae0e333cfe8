"""Verdicts on passages and their spans, the evidence for them, claims and contests.

A claim is an answer that passages give, with the sources behind it; a contest is a contradiction between passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.core.codec import JsonRecord, array_row, read_array, to_row
from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason, as_reason, quotable
from unpoison.errors import clip
from unpoison.utils.plain_text import count_noun, first_of

if TYPE_CHECKING:
    from unpoison.text.alignment import Regions

__all__ = [
    "ACTIONS", "Action", "Claim", "Contest", "Evidence", "Rival", "Span", "Status", "Verdict", "cuts_of",
    "disagreement", "is_disagreement", "merge_spans", "spans_at", "spans_of", "unmistakable", "without",
]  # fmt: skip

Action = Literal["drop", "redact", "flag", "keep"]
"""Drop the passage; keep it without the finding; keep it and report the finding; or skip the check."""

ACTIONS = ("drop", "redact", "flag", "keep")

MAX_REASON_CHARS = 400
"""Maximum characters of the reason of a merged span."""


@dataclass(frozen=True, slots=True)
class Span(JsonRecord):
    """A suspicious part of a passage.

    Attributes:
        start, end: Positions in the caller's text, in characters (code points), `end` exclusive.
        probability: Of being poison, or a prompt injection, in [0, 1].
        reason: One sentence.
        field: Whether the positions refer to the passage's `text` or `title`.
        flagged: Whether it is only reported: a kept passage is read with it.

    Raises:
        ValueError: An empty range, or a probability out of range.
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
            raise ValueError(f"a span needs a reason as a string, got {clip(self.reason)}")
        if self.field not in ("text", "title"):
            raise ValueError(f"a span is in the text or the title, got {clip(self.field)}")

    def to_dict(self) -> dict[str, Any]:
        """Its fields; `flagged` only if true."""
        return to_row(self, leave_out=() if self.flagged else ("flagged",))


def merge_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Merge overlapping spans, with the highest probability; title spans come first.

    A flagged span never widens one that is removed: of it only what stands beside is left.
    """
    given = list(spans)
    cuts = _merged(span for span in given if not span.flagged)
    flagged = _merged(span for span in given if span.flagged)
    beside = [part for span in flagged for part in _beside(span, cuts)] if cuts else flagged
    return tuple(sorted([*cuts, *beside], key=_place))


def _place(span: Span) -> tuple[bool, int, int]:
    return span.field == "text", span.start, span.end


def _beside(span: Span, cuts: Sequence[Span]) -> Iterator[Span]:
    """The parts of a span outside of ascending cuts."""
    start = span.start
    for cut in cuts:
        if cut.field == span.field and cut.end > start and cut.start < span.end:
            if cut.start > start:
                yield replace(span, start=start, end=cut.start)
            start = cut.end
    if start < span.end:
        yield replace(span, start=start)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Of spans that are all flagged or all removed."""
    merged: list[Span] = []
    for span in sorted(spans, key=_place):
        last = merged[-1] if merged else None
        if last is None or last.field != span.field or last.end <= span.start:
            merged.append(span)
            continue
        better, weaker = (span, last) if span.probability > last.probability else (last, span)
        reason = better.reason if weaker.reason in better.reason else f"{better.reason}; {weaker.reason}"
        reason = reason if len(reason) <= MAX_REASON_CHARS else better.reason
        merged[-1] = replace(better, start=last.start, end=max(last.end, span.end), reason=reason)
    return merged


def _parts(passage: Passage) -> list[tuple[Literal["title", "text"], int, int]]:
    """The regions of title and text in `Passage.raw`: (field, start, end)."""
    begin = len(passage.raw) - len(passage.text)
    title: list[tuple[Literal["title", "text"], int, int]] = [("title", 0, begin - 1)] if begin else []
    return [*title, ("text", begin, len(passage.raw))]


def spans_of(passage: Passage, windows: Sequence[tuple[int, int, float, str]]) -> list[list[Span]]:
    """For each window of a passage's reading the spans of the caller's text: one for each region behind it.

    Args:
        passage: The passage.
        windows: Start and end in its `reading`, probability, reason.

    Complexity: O(n log n) time for n characters, plus the size of the windows.
    """
    found = zip(windows, passage.regions(windows), strict=True)
    return [
        [span for region in regions for span in spans_at(passage, *region, probability, reason)]
        for (_, _, probability, reason), regions in found
    ]


def spans_at(passage: Passage, start: int, end: int, probability: float, reason: str) -> Iterator[Span]:
    """A region of `Passage.raw` as spans: one in the title, one in the text, or both."""
    for part, begin, close in _parts(passage):
        if max(start, begin) < min(end, close):
            yield Span(max(start, begin) - begin, min(end, close) - begin, probability, reason, part)


def cuts_of(passage: Passage, spans: Sequence[Span]) -> Regions:
    """The spans as regions of `Passage.raw`; spans of an unread title are skipped."""
    begins = {part: begin for part, begin, _ in _parts(passage)}
    found = ((span, begins[span.field]) for span in spans if span.field in begins)
    return tuple((span.start + begin, span.end + begin) for span, begin in found)


def without(passage: Passage, spans: Sequence[Span]) -> Passage:
    """The passage without these spans; the same object if there are none."""
    return passage.without(cuts_of(passage, spans)) if spans else passage


@dataclass(frozen=True, slots=True)
class Verdict(JsonRecord):
    """The verdict on one passage.

    Attributes:
        index: Its position in the input.
        kept: Whether the model may read it.
        score: The defense's own trust score; higher is more trusted; scales differ between defenses.
        rank: 0 for the best kept passage, None if dropped.
        reason: Sentence, code and parameters, with the neighbours that incriminate or support it; a string becomes a
            reason without a code.
        spans: Suspicious parts, the title's first, ascending and without overlaps; a kept passage is read without
            these, except flagged ones.

    Raises:
        ValueError: Spans that overlap or are not ascending, or a reason that is neither a `Reason` nor a string.
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
            raise ValueError(f"spans of passage {self.index} must ascend without overlaps, got {clip(self.spans)}")

    @property
    def cuts(self) -> tuple[Span, ...]:
        """The spans that are removed from a kept passage."""
        return tuple(span for span in self.spans if not span.flagged) if self.kept else ()


@dataclass(frozen=True, slots=True)
class Evidence(Mapping[str, NDArray[Any]]):
    """The named arrays behind a decision, read-only, and notes on unusual events.

    Attributes:
        arrays: For example `similarity` (k, k), `clusters` (k,), `centrality` (k,).
        notes: Sentences such as "fewer than 3 passages: nothing to compare".
        graph: The name of the (k, k) array of edges that decided, if any.
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

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.arrays), self.notes, self.graph)

    def to_dict(self) -> dict[str, Any]:
        """Arrays and graph; the notes are in the row of the screening."""
        return {"arrays": {name: array_row(array) for name, array in self.items()}, "graph": self.graph}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], notes: Iterable[str] = ()) -> Self:
        """Read the output of `to_dict`."""
        return cls({name: read_array(row) for name, row in data["arrays"].items()}, tuple(notes), data["graph"])

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


@dataclass(frozen=True, slots=True)
class Rival(JsonRecord):
    """One of several answers that cannot all be right.

    Attributes:
        answer: Its words, from a passage; untrusted.
        passages: Positions of the passages that give it, ascending; at least one.
        voices: The number of independent ones, 1 to all: near-copies share one voice.

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


def _is_ascending(positions: Sequence[object]) -> bool:
    numbers = [i for i in positions if type(i) is int and i >= 0]
    return len(numbers) == len(positions) and numbers == sorted(set(numbers))


@dataclass(frozen=True, slots=True)
class Contest(JsonRecord):
    """A contradiction between passages without a clear majority; as a string, a sentence for the user.

    Attributes:
        rivals: Two or more, those with the most voices first; no passage supports two of them.

    Raises:
        ValueError: Fewer than two rivals, or a passage behind two of them.
    """

    rivals: tuple[Rival, ...]

    def __post_init__(self) -> None:
        if len(self.rivals) < 2:
            raise ValueError(f"a contest needs two or more rivals, got {len(self.rivals)}")
        if len(self.passages) < sum(len(rival.passages) for rival in self.rivals):
            raise ValueError("a passage supports two rivals of one contest; assign it to one of them")

    @property
    def passages(self) -> tuple[int, ...]:
        """All positions, ascending."""
        return tuple(sorted({i for rival in self.rivals for i in rival.passages}))

    def __str__(self) -> str:
        """Such as "sources disagree: 30 days (2 passages), 14 days (1)", with the number of independent ones."""
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


def unmistakable(answer: str, marks: str = '(),:;"') -> str:
    """An answer inside a sentence: in quotation marks if it is a sentence, or has marks of the surrounding counts."""
    return '"{}"'.format(answer.replace('"', "'")) if {*marks} & {*answer} or answer[-1:] in {*".!?。"} else answer


Status = Literal["agreed", "disputed", "single", "none"]
"""Two or more sources agree; sources contradict each other; one source answers; none does."""


@dataclass(frozen=True, slots=True)
class Claim(JsonRecord):
    """One answer that passages give, in all equivalent wordings.

    Attributes:
        text: Its words, from a passage; untrusted.
        weight: The sum over its sources of trust times certainty, 0 or more.
        origins: Its sources, in alphabetical order; a passage without a source has none.
        passages: Positions of the passages that give it, ascending; at least one.
        quotes: At most three sentences that contain it, the surest first; untrusted.

    Raises:
        ValueError: An empty text, a weight out of range, or positions that are not ascending.
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
        if not self.passages or not _is_ascending(self.passages):
            raise ValueError(f"a claim needs ascending positions of its passages, got {clip(self.passages)}")


def disagreement(claims: Sequence[Claim], passages: Sequence[Passage]) -> str:
    """A sentence for the user: "Sources disagree: 14 days (handbook.example); 30 days (wiki.example, intranet)".

    A source on both sides is shown by its pages, with author and date if known.
    """
    shared = [origin for claim in claims for origin in claim.origins]
    sides = []
    for claim in claims:
        names = [origin for origin in claim.origins if shared.count(origin) == 1]
        pages = [] if len(names) == len(claim.origins) else [_page(passages[i]) for i in claim.passages]
        named = list(dict.fromkeys([*map(_one_line, names), *filter(None, pages)]))
        who = first_of(named, MAX_NAMED) or count_noun(len(claim.passages), "passage")
        sides.append(f"{unmistakable(claim.text)} ({who})")
    return f"{DISAGREE}{'; '.join(sides)}"


DISAGREE = "Sources disagree: "
"""The beginning of an answer with both sides; evaluations count it as neither right nor wrong."""

MAX_NAMED = 3
"""Maximum number of sources named for each side."""


def is_disagreement(answer: str) -> bool:
    """Whether an answer was worded by `disagreement`."""
    return answer.startswith(DISAGREE)


def _page(passage: Passage) -> str:
    """The page of a passage: address or title, author, date."""
    details = [str(passage.metadata[name]) for name in ("author", "date", "published") if name in passage.metadata]
    page = passage.source or passage.title or ""
    return ", ".join([_one_line(page), *map(_one_line, details)]) if page else ""


def _one_line(text: str) -> str:
    """At most 80 characters of a text on one line, in quotation marks if it could be mistaken for the sentence."""
    from unpoison.sources.addresses import visible  # imported lazily: rarely needed

    return unmistakable(quotable(visible(" ".join(text.split()))), '(),;"')
