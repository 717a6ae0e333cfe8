"""Removes prompt injections and hidden characters from a text and keeps the rest byte for byte.

Cuts in the raw text, so that tables, code and logs keep their layout.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from unpoison.core.passages import Passage
from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.core.verdicts import Span
from unpoison.injections.cutting import injection_spans, without_injections
from unpoison.injections.detector import MAX_QUOTE_CHARS, detect
from unpoison.text.alignment import Region, merge_regions
from unpoison.text.canonical import MARK
from unpoison.text.invisible import IGNORED, TAG

__all__ = ["MARK", "PART_CHARS", "RedactedPart", "RedactedText", "hidden_parts", "parts_of", "reading_of", "redact"]

PART_CHARS, OVERLAP = 20_000, 2_000
"""Characters of a part of a long text that is judged at a time, and that it shares with the next."""

_RUN, GROUP = re.compile(r"(?<![^\s\"',;:])[^\s\"',;:]{1000,}+"), 64
"""A long run, and the number of its characters at which groups of any encoding end, also of one inside another."""

CONTROLS = r"\x00-\x1f\x7f-\x9f\ud800-\udfff"
"""Invisible, but left: a terminal's colours, and halves of characters."""

JOINERS = r"\u034f\u200c\u200d"
"""One of them is left behind any letter but those of ASCII: it shapes the letter, or parts two of its points."""

SELECTORS = r"\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""One of them is left, as it chooses a form of the character before it; several carry a message."""

DIRECTIONS = r"\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069"
"""They are left beside letters that are written from right to left."""

_ANY = re.compile(f"[{IGNORED}{TAG}]")
_FLAG = "\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f"
_HIDDEN = re.compile(
    rf"({_FLAG}|\A\ufeff(?![{IGNORED}{TAG}]))"
    rf"|(?:(?![{CONTROLS}{JOINERS}{SELECTORS}{DIRECTIONS}\u00ad])[{IGNORED}{TAG}])+"
    rf"|[{JOINERS}\u00ad]{{2,}}|(?:(?<=[\x00-\x7f])|\A)[{JOINERS}]|[{SELECTORS}]{{2,}}"
)
_DIRECTIONS = re.compile(rf"[{DIRECTIONS}]+")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

T = TypeVar("T")


class RedactedPart(NamedTuple):
    """A stretch of a text that is cut.

    Attributes:
        start, end: Positions in the text.
        probability: Of being a prompt injection, in [0, 1]; 1 for hidden characters.
        reason: Why.
    """

    start: int
    end: int
    probability: float
    reason: Reason


class RedactedText(NamedTuple):
    """The remaining text and the removed parts, by position; injections may overlap hidden parts."""

    text: str
    parts: tuple[RedactedPart, ...]


def parts_of(text: str) -> list[Region]:
    """A text in parts of at most 20,000 characters that overlap by about 2,000 and end with a line where they can.

    A part that begins in a long run begins at a whole group of its letters, as base64 and the like have them.
    """
    regions, start, runs = list[Region](), 0, [run.span() for run in _RUN.finditer(text)]
    while len(text) - start > PART_CHARS:
        line = text.rfind("\n", start + PART_CHARS - OVERLAP // 2, start + PART_CHARS)
        end = line + 1 if line > 0 else start + PART_CHARS
        regions.append((start, end))
        start = end - OVERLAP
        start -= next(((start - first) % GROUP for first, last in runs if first < start < last), 0)
    return [*regions, (start, len(text))]


def reading_of(text: str) -> str:
    """The canonical text, cached, with comments and attributes that a model reads."""
    return Passage(text).reading


def hidden_parts(text: str) -> list[RedactedPart]:
    """Invisible characters that have no meaning at their position.

    Joiners in emoji and in scripts that need them stay, single soft hyphens and variation selectors, a byte order mark
    at the beginning, and marks of direction beside letters that are written from right to left. O(n) time.
    """
    if text.isascii() or not _ANY.search(text):
        return []
    runs = [run.span() for run in _HIDDEN.finditer(text) if run[1] is None]
    if not _RIGHT_TO_LEFT.search(text):
        runs += [run.span() for run in _DIRECTIONS.finditer(text)]
    return [
        RedactedPart(start, end, 1.0, Reason.of("tool.hidden", count=end - start))
        for start, end in merge_regions(sorted(runs))
    ]


def redact(text: str, threshold: float, hidden: Sequence[RedactedPart] = ()) -> RedactedText:
    """Cut prompt injections out of a text, sentence by sentence, and hidden parts.

    If an injection cannot be separated from the rest of a part of 20,000 characters, the whole part is cut.

    Args:
        text: Any.
        threshold: The probability above which a part is cut.
        hidden: Hidden parts to cut as well.

    Complexity: O(n log n) time for n characters.
    """
    parts = [part for region in parts_of(text) for part in _injected_parts(text, region, threshold)]
    new = cut(text, parts, hidden)
    if parts and any(detect(reading_of(new[start:end])).probability > threshold for start, end in parts_of(new)):
        worst = max(parts, key=lambda part: part.probability)
        parts = [RedactedPart(0, len(text), worst.probability, worst.reason)]
        new = MARK
    return RedactedText(new, tuple(sorted([*parts, *hidden])))


def cut(text: str, parts: Sequence[RedactedPart], hidden: Sequence[RedactedPart]) -> str:
    """A text with one mark per injection (adjacent ones share a mark), and without the hidden parts."""
    marked: list[Region] = []
    for start, end in merge_regions([(part.start, part.end) for part in parts]):
        if marked and not text[marked[-1][1] : start].strip():
            marked[-1] = marked[-1][0], end
        else:
            marked.append((start, end))
    changes = [(*region, MARK) for region in marked]
    changes += [
        (part.start, part.end, "") for part in hidden if not any(a <= part.start and part.end <= b for a, b in marked)
    ]
    pieces, last = list[str](), 0
    for start, end, new in sorted(changes):
        pieces += [text[last:start], new] if start >= last else []
        last = max(last, end)
    return "".join([*pieces, text[last:]])


def _injected_parts(text: str, region: Region, threshold: float) -> list[RedactedPart]:
    passage = Passage(text[region[0] : region[1]])
    detection = detect(passage.reading)
    if detection.probability <= threshold:
        return []
    worst = detection.worst
    rest = _end(without_injections(passage, detection, threshold=threshold, value=True))
    if rest.passage is None:
        quote = quotable(worst.quote, MAX_QUOTE_CHARS)
        return [RedactedPart(*region, worst.probability, Reason.of(PROMPT_INJECTION, quote=quote))]
    return [
        _part(span, region[0], worst.quote)
        for span in rest.spans or injection_spans(passage, detection.above(threshold), value=True)
    ]


def _part(span: Span, offset: int, quote: str) -> RedactedPart:
    reason = Reason.of(PROMPT_INJECTION, quote=quotable(quote, MAX_QUOTE_CHARS))
    return RedactedPart(span.start + offset, span.end + offset, span.probability, reason)


def _end(flow: Generator[Any, Any, T]) -> T:
    """The result of a flow without model calls."""
    try:
        next(flow)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("the built-in detector asks no model")
