"""Prompt injections cut out of the passages that hold them: whole sentences, until what is left holds none."""

from __future__ import annotations

from typing import NamedTuple

from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.core.verdicts import Span, merge_spans, spans_of, without
from unpoison.defenses.detector import Detector, Injection, injections
from unpoison.models.requests import Flow
from unpoison.text.sentences import around, sentences
from unpoison.types import Passage

__all__ = ["MAX_QUOTE_CHARS", "WithoutInjections", "harmless", "hidden_spans", "injection_spans", "without_injections"]

MAX_QUOTE_CHARS = 160
"""Characters of an injection that a reason shows."""

MAX_CUTS = 8
"""Injections of one passage that are cut; one that holds more consists of them."""

RESIDUE = 0.05
"""What is left of a passage that held an injection may look like one at most so much, in probability; of 1,328 clean
passages 98 % look like one less than that, so little is lost by being strict with those that held one."""

MIN_WORDS = 3
"""A rest of fewer words says nothing."""


class WithoutInjections(NamedTuple):
    """A passage without its injections.

    Attributes:
        passage: Its reading holds none; None where they are not confined to a few sentences.
        spans: Where they stand in the caller's text.
    """

    passage: Passage | None
    spans: tuple[Span, ...]


def injection_spans(passage: Passage, worst: Injection) -> tuple[Span, ...]:
    """The sentences of an injection in the caller's text. O(n log n) time for n characters."""
    reason = str(Reason.of(PROMPT_INJECTION, quote=quotable(worst.quote, MAX_QUOTE_CHARS)))
    window = (*around(passage.reading, worst.start, worst.end), round(worst.probability, 4), reason)
    return merge_spans(spans_of(passage, [window]))


def without_injections(passage: Passage, worst: Injection, detector: Detector) -> Flow[WithoutInjections]:
    """Cut what a passage hides, and its injections, the most suspicious first. O(n log n) time for n characters.

    Args:
        passage: One that holds an injection.
        worst: That injection.
        detector: Judges what is left.
    """
    whole, spans = passage, hidden_spans(passage, worst.probability)
    if spans:
        passage = without(whole, spans)
        worst = yield from detector.worst(passage.reading)
    for _ in range(MAX_CUTS):
        if worst.probability <= RESIDUE:
            spans = _close_gaps(whole, spans)
            passage = without(whole, spans)
            read = sorted({passage.reading, passage.shown})  # with and without the marks of the cuts
            fine = _says_something(passage) and (yield from detector.probabilities(read)).max() <= RESIDUE
            return WithoutInjections(passage if fine else None, spans)
        spans = merge_spans([*spans, *injection_spans(passage, worst)])
        passage = without(whole, spans)
        worst = yield from detector.worst(passage.reading)
    return WithoutInjections(None, spans)


def _close_gaps(passage: Passage, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """The same, and with them each single sentence that stands between two of them in a paragraph.

    What an injection is explained with ("This was approved last week.") is none, and its place is its only evidence:
    on both sides of it, not on one, for an honest sentence stands beside every injection that was planted.
    """
    closed = list(spans[:1])
    for span in spans[1:]:
        last = closed[-1]
        between = (passage.text if span.field == "text" else passage.title or "")[last.end : span.start]
        if span.field == last.field and "\n" not in between and len(sentences(between)) <= 1:
            reason = last.reason if last.probability >= span.probability else span.reason
            closed[-1] = Span(last.start, span.end, max(last.probability, span.probability), reason, span.field)
        else:
            closed.append(span)
    return tuple(closed)


def hidden_spans(passage: Passage, probability: float) -> tuple[Span, ...]:
    """Messages where no reader looks, in a passage that has so much suspicion on it otherwise."""
    reason = "a message where no reader looks"
    return merge_spans(spans_of(passage, [(*region, round(probability, 4), reason) for region in passage.messages()]))


def harmless(passage: Passage) -> bool:
    """Whether a rest says anything, and holds no injection, with the marks of the cuts or without."""
    return _says_something(passage) and bool(injections([passage.reading, passage.shown]).max() <= RESIDUE)


def _says_something(passage: Passage) -> bool:
    return sum(any(map(str.isalnum, word)) for word in passage.reading.split()) >= MIN_WORDS
