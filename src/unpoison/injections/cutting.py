"""Removes prompt injections from passages, with the rest of their blocks, until none is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.core.verdicts import Action, Span, merge_spans, spans_of, without
from unpoison.injections.blocks import (
    behind_key,
    elements_to_their_end,
    is_payload,
    join_close_cuts,
    quotation_around,
    region_to_cut,
    string_around,
    value_end,
)
from unpoison.injections.detector import (
    MAX_QUOTE_CHARS,
    STRONG,
    THRESHOLD,
    Detect,
    Detection,
    Injection,
    detect_all,
    detect_flow,
)
from unpoison.injections.imperatives import ORDERS, find_imperatives
from unpoison.text.sentences import around
from unpoison.utils.plain_text import first_of

if TYPE_CHECKING:
    from unpoison.models.requests import Flow

__all__ = [
    "MIN_WORDS", "Injections", "WithoutInjections", "harmless", "hidden_spans", "injection_spans", "injections_in",
    "without_injections",
]  # fmt: skip

MAX_CUTS = 8
"""Maximum rounds of cutting in one passage; one that still holds an injection after them is dropped."""

MAX_PLACES = 16
"""Maximum injections that one round may find in a passage; one with more is dropped."""

RESIDUE = 0.05
"""The highest probability of the rest of a passage after strong evidence, stricter than the threshold."""

MIN_WORDS = 3
"""Minimum words of a rest; a shorter one is dropped."""

MIN_REST_WORDS, MIN_REST_SHARE = 20, 0.5
"""Minimum words, and share of the passage, of a rest after strong evidence; a smaller one is dropped."""


class WithoutInjections(NamedTuple):
    """A passage without its injections.

    Attributes:
        passage: The rest; None if it is too short or suspicious itself.
        spans: The removed parts of the caller's text.
    """

    passage: Passage | None
    spans: tuple[Span, ...]


class Cut(NamedTuple):
    """The part of the caller's text that is removed with an injection.

    Attributes:
        spans: One, or none if the injection has no place in the caller's text.
        quoted: Whether it is a quotation.
        strong: Whether the rest of its block is removed too.
    """

    spans: tuple[Span, ...]
    quoted: bool = False
    strong: bool = False


def find_cuts(passage: Passage, found: Sequence[Injection], value: bool = False) -> list[Cut]:
    """The parts to remove with injections; of more than `MAX_PLACES`, as the passage is dropped, only they themselves.

    Of a quotation only the quotation is removed, from the start of the injection. Strong evidence also removes the rest
    of the block (`injections.blocks.region_to_cut`) or value; weaker evidence removes the sentences of the injection.
    Blocks are those of the caller's text, because a canonical text has no paragraphs. A title is a block.

    Args:
        passage: One that holds them.
        found: The injections.
        value: Whether the text is a value of a tool's result, of which everything from an injection on is removed.

    Complexity: O(n log n) time for n characters.
    """
    few = len(found) <= MAX_PLACES
    places = [(one.start, one.end) for one in found]
    places += [around(passage.reading, *place) for place in places if few]
    reasons = [str(Reason.of(PROMPT_INJECTION, quote=quotable(one.quote, MAX_QUOTE_CHARS))) for one in found]
    known = [(round(one.probability, 4), reason) for one, reason in zip(found, reasons)]
    spans = spans_of(passage, [(*place, *own) for place, own in zip(places, known * 2)])
    if not few:
        return [Cut(tuple(chain.from_iterable(spans)))]
    return [_cut(passage, *own, value) for own in zip(found, spans, spans[len(found) :])]


def _cut(passage: Passage, worst: Injection, found: Sequence[Span], sentences: Sequence[Span], value: bool) -> Cut:
    """The part to remove with an injection, by the spans of itself and of its sentences."""
    if not found:
        return Cut(())
    name = found[0].field
    text = passage.text if name == "text" else passage.title or ""
    start = min(span.start for span in found if span.field == name)
    end = max(span.end for span in found if span.field == name)
    start = behind_key(text, start, end)
    quotation = quotation_around(text, start, min(end, start + 1))
    if quotation is not None:
        start, end = max(region_to_cut(text, start, end)[0], quotation[0]), quotation[1]
    elif worst.probability >= STRONG:
        start, close = region_to_cut(text, start, end)
        end = max(close, value_end(text, end)) if value else close
        start, end = elements_to_their_end(text, start, end)
    else:
        low, high = string_around(text, start) or (0, len(text))
        kept = [
            replace(one, start=max(one.start, low), end=min(one.end, high))
            for one in sentences
            if one.field != name or (one.start < high and low < one.end)
        ]
        begin, close = elements_to_their_end(text, start, end)
        element = [replace(found[0], start=begin, end=close)] if begin < start else []
        return Cut(merge_spans([*kept, *element]))
    cut = replace(found[0], start=start, end=end)
    return Cut((cut,), quotation is not None, worst.probability >= STRONG)


def injection_spans(passage: Passage, found: Sequence[Injection], value: bool = False) -> tuple[Span, ...]:
    """The spans that are cut with injections."""
    return _spans(passage, find_cuts(passage, found, value))


def _spans(passage: Passage, cuts: Sequence[Cut], before: Sequence[Span] = ()) -> tuple[Span, ...]:
    """The spans of cuts and earlier ones, and the text between close ones (`injections.blocks.join_close_cuts`)."""
    spans = merge_spans([*before, *(span for cut in cuts for span in cut.spans)])
    for name in ("title", "text") if not all(cut.quoted for cut in cuts) else ():
        own = [span for span in spans if span.field == name]
        text = passage.text if name == "text" else passage.title or ""
        few = 1 < len(own) <= MAX_CUTS * MAX_PLACES
        for start, end in join_close_cuts(text, [(span.start, span.end) for span in own]) if few else ():
            worst = max((span for span in own if start <= span.start < end), key=lambda span: span.probability)
            spans = merge_spans([*spans, replace(worst, start=start, end=end)])
    return spans


def without_injections(
    passage: Passage,
    detection: Detection,
    detect: Detect = detect_flow,
    threshold: float = THRESHOLD,
    value: bool = False,
) -> Flow[WithoutInjections]:
    """Remove hidden messages and injections from a passage, the most suspicious first.

    O(n log n) time for n characters.

    Args:
        passage: One that holds an injection.
        detection: That on its reading.
        detect: Detects injections in the rest.
        threshold: The probability above which a stretch is an injection.
        value: Whether the text is a value of a tool's result: strong evidence removes everything from it on, and a rest
            of any length is kept. Otherwise, after strong evidence, a rest of few words is dropped.
    """
    whole, spans = passage, hidden_spans(passage, detection.probability)
    strong = bool(spans)
    if spans:
        passage = without(whole, spans)
        (detection,) = yield from detect([passage.reading])
    for _ in range(MAX_CUTS):
        found = _injections_above(detection, RESIDUE if strong else threshold, strong)
        if not found:
            read = sorted({passage.reading, passage.shown})  # with and without the marks of the cuts
            fine = not spans or _worth_keeping(whole, passage, None if not strong else 0 if value else MIN_REST_WORDS)
            if fine:
                again = yield from detect(read)
                fine = not any(_injections_above(one, RESIDUE if strong else threshold, strong) for one in again)
            return WithoutInjections(passage if fine else None, spans)
        cuts = find_cuts(passage, found, value)
        strong = strong or any(one.strong and not one.quoted for one in cuts)
        spans = _spans(passage, cuts, spans)
        if len(found) > MAX_PLACES or not any(one.spans for one in cuts):
            return WithoutInjections(None, spans)
        passage = without(whole, spans)
        (detection,) = yield from detect([passage.reading])
    return WithoutInjections(None, spans)


def _injections_above(detection: Detection, threshold: float, strict: bool = False) -> list[Injection]:
    """The injections above a threshold, without weak ones that only ask unless `strict` (after strong evidence).

    A question is no instruction; other checks find a repeated question of the user. A "?" inside a URL does not count.
    """
    found, text = detection.above(threshold), detection.text
    return [
        one
        for one in found
        if strict
        or one.probability >= STRONG
        or text[one.end : one.end + 1].strip()
        or not _only_asks(text[one.start : one.end])
    ]


def _worth_keeping(whole: Passage, rest: Passage, min_words: int | None) -> bool:
    """Whether a rest may be kept: it has enough words and, after strong evidence, is no payload itself."""
    if min_words is None or not _says_something(rest):
        return _says_something(rest)
    if not min_words:
        return not is_payload(rest.reading, 0)
    words, before = len(rest.reading.split()), len(whole.reading.split())
    return words >= max(min_words, MIN_REST_SHARE * before) and not is_payload(rest.reading)


def hidden_spans(passage: Passage, probability: float) -> tuple[Span, ...]:
    """The hidden messages of a passage, as spans with the given probability."""
    reason = "a message where no reader looks"
    found = spans_of(passage, [(*region, round(probability, 4), reason) for region in passage.messages()])
    return merge_spans(chain.from_iterable(found))


def harmless(passage: Passage) -> bool:
    """Whether a rest has enough words and holds no injection, with and without the marks of the cuts."""
    return _says_something(passage) and all(
        one.probability <= RESIDUE for one in detect_all([passage.reading, passage.shown])
    )


def _says_something(passage: Passage) -> bool:
    return sum(any(map(str.isalnum, word)) for word in passage.reading.split()) >= MIN_WORDS


MAX_NAMED = 10
"""Maximum passages that a note lists."""


class Injections(NamedTuple):
    """The injections of all passages.

    Attributes:
        policy: The action on passages with an injection.
        probability: That a passage holds an injection, by its worst stretch, in [0, 1], shape (k,).
        quotes: The text of that stretch, by position of the passages with an injection.
        passages: Those that the defense reads: passages without an injection, rests of passages that were cut, and
            flagged passages.
        read: Their positions, ascending.
        spans: The injections, by position of their passage.
        notes: What could not be judged.
    """

    policy: Action
    probability: NDArray[np.float64]
    quotes: Mapping[int, str]
    passages: tuple[Passage, ...]
    read: tuple[int, ...]
    spans: Mapping[int, tuple[Span, ...]]
    notes: tuple[str, ...] = ()


def injections_in(
    passages: Sequence[Passage],
    policy: Action,
    detect: Detect = detect_flow,
    threshold: float = THRESHOLD,
    settled: Collection[int] = (),
) -> Flow[Injections]:
    """Detect each passage independently. O(n log n) time in the length of the texts.

    Args:
        passages: All passages of a question.
        policy: `redact` cuts injections and the rest of their blocks out of passages, and drops passages whose rest is
            too short or not harmless; `drop` drops all passages with an injection, `flag` none.
        detect: Detects injections.
        threshold: The probability above which a stretch is an injection.
        settled: Positions of passages that hold none, because somebody has looked.
    """
    detections = yield from detect(["" if i in settled else one.reading for i, one in enumerate(passages)])
    left: list[Passage | None] = list(passages)
    quotes, spans = dict[int, str](), dict[int, tuple[Span, ...]]()
    for i, detection in enumerate(detections):
        if not (found := _injections_above(detection, threshold)):
            continue
        quotes[i] = max(found).quote
        if policy == "redact":
            left[i], spans[i] = yield from without_injections(passages[i], detection, detect, threshold)
        else:
            left[i], spans[i] = None, injection_spans(passages[i], found)
        if policy == "flag":
            left[i], spans[i] = passages[i], tuple(replace(span, flagged=True) for span in spans[i])
    return Injections(
        policy,
        np.array([one.probability for one in detections], float),
        quotes,
        tuple(passage for passage in left if passage is not None),
        tuple(i for i, passage in enumerate(left) if passage is not None),
        spans,
        _notes(detections),
    )


def _only_asks(stretch: str) -> bool:
    """Whether a stretch is a question without an imperative; "Reply with Ghent?" has one."""
    return stretch.rstrip().endswith("?") and all(part.form != ORDERS for part in find_imperatives(stretch))


def _notes(detections: Sequence[Detection]) -> tuple[str, ...]:
    """What could not be judged, one note each, with the positions of the passages."""
    by_note: dict[str, list[int]] = {}
    for i, detection in enumerate(detections):
        if detection.note:
            by_note.setdefault(detection.note, []).append(i)
    return tuple(f"{note}, in passage {first_of(positions, MAX_NAMED)}" for note, positions in by_note.items())
