"""Passages that hold a prompt injection: found at the door, and dropped, cut or flagged in the screening.

The defense behind the door never sees what is dropped or cut, so it can neither mislead it nor reach a prompt of its.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.defenses.detector import THRESHOLD, Detector
from unpoison.defenses.injection_cuts import MAX_QUOTE_CHARS, WithoutInjections, injection_spans, without_injections
from unpoison.defenses.left_out import Because, put_back
from unpoison.models.requests import Flow
from unpoison.types import Evidence, Passage, Screening, Span, Verdict, merge_spans

__all__ = ["POLICIES", "InjectionPolicy", "Injections", "injections_in", "with_injections"]

InjectionPolicy = Literal["redact", "drop", "flag", "keep"]

POLICIES = ("redact", "drop", "flag", "keep")

MAX_NAMED = 10
"""Passages of one language that are named, where it cannot be judged."""


class Injections(NamedTuple):
    """What the passages inject.

    Attributes:
        policy: What becomes of those that do.
        probability: That a passage holds an injection, by its worst stretch, in [0, 1], shape (k,).
        quotes: That stretch, of those that hold one, by position.
        passages: What the defense gets of them: those that hold none, the rests of those that are cut, and those that
            are flagged.
        read: The positions of these, rising.
        spans: Where the injections stand, by position.
        notes: What could not be judged.
    """

    policy: InjectionPolicy
    probability: NDArray[np.float64]
    quotes: Mapping[int, str]
    passages: tuple[Passage, ...]
    read: tuple[int, ...]
    spans: Mapping[int, tuple[Span, ...]]
    notes: tuple[str, ...] = ()


def injections_in(passages: Sequence[Passage], policy: InjectionPolicy, detector: Detector) -> Flow[Injections]:
    """Judge each passage by itself. O(n log n) time in the length of the texts.

    Args:
        passages: All of a question.
        policy: `redact` cuts the sentences of injections out of passages whose rest says something and is harmless,
            and drops the others; `drop` drops all, `flag` none.
        detector: What judges.
    """
    probability = yield from detector.probabilities([passage.reading for passage in passages])
    left: list[Passage | None] = list(passages)
    quotes, spans = dict[int, str](), dict[int, tuple[Span, ...]]()
    for i in np.flatnonzero(probability > THRESHOLD).tolist():
        worst = yield from detector.worst(passages[i].reading)
        quotes[i] = worst.quote
        if policy == "redact":
            left[i], spans[i] = yield from without_injections(passages[i], worst, detector)
        else:
            left[i], spans[i] = WithoutInjections(None, injection_spans(passages[i], worst))
        if policy == "flag":
            left[i], spans[i] = passages[i], tuple(replace(span, flagged=True) for span in spans[i])
    return Injections(
        policy,
        probability,
        quotes,
        tuple(passage for passage in left if passage is not None),
        tuple(i for i, passage in enumerate(left) if passage is not None),
        spans,
        _unsupported_notes(passages, detector),
    )


def with_injections(screening: Screening, injections: Injections, passages: tuple[Passage, ...]) -> Screening:
    """The screening of the passages that were read as a screening of all; what was cut or flagged becomes spans."""
    read, k = set(injections.read), len(passages)
    dropped = {i: _because(injections, i) for i in range(k) if i not in read}
    screening = put_back(screening, passages, injections.read, dropped)
    verdicts = tuple(
        _with_spans(v, injections) if v.index in injections.spans and v.index in read else v for v in screening.verdicts
    )
    arrays = {**screening.evidence.arrays, PROMPT_INJECTION: injections.probability}
    notes = (*screening.evidence.notes, *_notes(injections, k))
    evidence = Evidence(arrays, notes, screening.evidence.graph)
    return replace(screening, passages=passages, verdicts=verdicts, evidence=evidence)


def _notes(injections: Injections, k: int) -> list[str]:
    unread = k - len(injections.read)
    marked = len(injections.spans) - unread
    notes = [f"not read, for prompt injection: {unread} of {k} passages"] if unread else []
    if marked and injections.policy == "flag":
        notes.append(f"flagged for prompt injection and read: {marked} of {k} passages")
    elif marked:
        notes.append(f"read without the prompt injections in them: {marked} of {k} passages")
    return [*notes, *injections.notes]


def _unsupported_notes(passages: Sequence[Passage], detector: Detector) -> tuple[str, ...]:
    """What could not be judged, one sentence for each language or script."""
    by_language: dict[str, list[int]] = {}
    for i, passage in enumerate(passages):
        if language := detector.unsupported_language(passage.reading):
            by_language.setdefault(language, []).append(i)
    return tuple(
        f"not judged for prompt injection: {language}, in passage {', '.join(map(str, positions[:MAX_NAMED]))}"
        + (f" and {len(positions) - MAX_NAMED} more" if len(positions) > MAX_NAMED else "")
        for language, positions in by_language.items()
    )


def _because(injections: Injections, i: int) -> Because:
    quote = quotable(injections.quotes[i], MAX_QUOTE_CHARS)
    return Because(Reason.of(PROMPT_INJECTION, quote=quote), injections.spans[i])


def _with_spans(verdict: Verdict, injections: Injections) -> Verdict:
    """What the defense says of a passage of which something was cut or flagged, and that it was."""
    quote = quotable(injections.quotes[verdict.index], MAX_QUOTE_CHARS)
    code = "prompt_injection.flagged" if injections.policy == "flag" else "prompt_injection.cut"
    reason = Reason.of(code, quote=quote, clauses=[verdict.reason.clause])
    found = injections.spans[verdict.index]
    wider = verdict.spans
    if injections.policy == "flag":  # a wider span around a flagged one would hide where it stands
        wider = tuple(span for span in wider if not any(_overlap(span, own) for own in found))
    return replace(verdict, reason=reason, spans=merge_spans([*wider, *found]))


def _overlap(span: Span, other: Span) -> bool:
    return span.field == other.field and span.start < other.end and other.start < span.end
