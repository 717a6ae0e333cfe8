"""Admission: which of the caller's passages a defense reads, and how its result maps back to all of them.

`admit` leaves out passages of blocked sources, copies and prompt injections. `put_back` turns the screening of the
remaining passages into a screening of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Action, Evidence, Span, Verdict, merge_spans
from unpoison.injections.cutting import Injections, injections_in
from unpoison.injections.detections import MAX_QUOTE_CHARS, THRESHOLD
from unpoison.injections.detector import DETECTOR, Detect
from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.screener.positions import Because, put_back
from unpoison.sources.sources import Sources

__all__ = ["LONG", "Admitted", "admit", "overlong"]

LONG = 20_000
"""Characters of a passage beyond which one planted sentence hardly changes its score. The service judges longer
passages in windows of this size; a screening notes them."""

MAX_NOTES = 10
"""Maximum number of passages with hidden text that are named one by one."""

BLOCKED = Reason.of("sources.blocked")


class Selection(NamedTuple):
    """The passages that a defense reads.

    Attributes:
        read: Their positions, ascending.
        blocked: Positions of passages from blocked sources.
        copies: Each exact duplicate within one source, mapped to the first of its kind.
    """

    read: tuple[int, ...]
    blocked: tuple[int, ...] = ()
    copies: Mapping[int, int] = {}


def select_passages(sources: Sources | None, passages: Sequence[Passage]) -> Selection:
    """Leave out passages of blocked sources, and exact duplicates within one source."""
    if sources is None:
        return Selection(tuple(range(len(passages))))
    first: dict[tuple[str, str | None, str], int] = {}
    blocked, copies = [], {}
    for i, passage in enumerate(passages):
        if sources.blocks(passage):
            blocked.append(i)
            continue
        place = first.setdefault((sources.origin(passage), passage.title, passage.text), i)
        if place != i:
            copies[i] = place
    return Selection(tuple(first.values()), tuple(blocked), copies)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A query and its passages as a defense reads them, with the mapping back to the caller's.

    Attributes:
        query, passages: The defense's input, in the caller's order: without blocked sources, duplicates, injections
            that are to be dropped or cut, and embeddings that cannot be trusted.
        given: The caller's query and passages.
        notes: Hidden text, and embeddings that are not used.
        selected: The passages that are read.
        injections: The injections in them; None if detection is off.
    """

    query: Query
    passages: tuple[Passage, ...]
    given: tuple[Query, tuple[Passage, ...]]
    notes: tuple[str, ...]
    selected: Selection
    injections: Injections | None = None

    @property
    def refused(self) -> bool:
        """Whether the caller passed passages and none was admitted."""
        return bool(self.given[1]) and not self.passages

    def screening(self, screening: Screening) -> Screening:
        """The defense's screening as one of the caller's query and passages, with the notes of admission."""
        query, passages = self.given
        if self.injections is not None:
            screening = _with_injections(screening, self.injections, tuple(passages[i] for i in self.selected.read))
        blocked = dict.fromkeys(self.selected.blocked, Because(BLOCKED))
        screening = put_back(screening, passages, self.selected.read, blocked, self.selected.copies)
        evidence = (
            replace(screening.evidence, notes=(*screening.evidence.notes, *self.notes))
            if self.notes
            else screening.evidence
        )
        return replace(screening, query=query.text, passages=passages, evidence=evidence)

    def answer(self, answer: Answer) -> Answer:
        """The same for an answer."""
        return replace(answer, screening=self.screening(answer.screening))


def admit(
    query: object,
    passages: Any,
    encoder: Encoder | None,
    *,
    verbatim: bool = False,
    trust_embeddings: bool = True,
    prompt_injection: Action = "keep",
    threshold: float = THRESHOLD,
    detect: Detect = DETECTOR.flow,
    sources: Sources | None = None,
) -> Flow[Admitted]:
    """Validate a query and its passages, and select those that the defense reads.

    Args:
        query: As callers pass it.
        passages: As callers pass them.
        encoder: The defense's.
        verbatim: The defense reads raw text, as the released code does, which detects no injections.
        trust_embeddings: False ignores the caller's embeddings and encodes every text here. True ignores only the
            embeddings of texts with hidden parts, since they were computed from other words than those judged.
            Without an encoder all are used.
        prompt_injection: The action on passages with an injection; `keep` skips detection.
        threshold: The minimum probability of an injection.
        detect: Finds injections.
        sources: Decides which sources are blocked, and finds their duplicates.
    """
    question, given = as_query(query), as_passages(passages)
    selected = select_passages(sources, given)
    spoken = tuple(given[i] for i in selected.read)
    if verbatim:
        whole = tuple(replace(p, verbatim=True) for p in spoken)
        notes = (*_too_long(given), *_not_read(selected, len(given)))
        return Admitted(replace(question, verbatim=True), whole, (question, given), notes, selected)
    notes = (
        *_empty(question, given),
        *_hidden(question, given),
        *_too_long(given),
        *_cut(given, getattr(encoder, "longest", None)),
        *_not_read(selected, len(given)),
    )
    injections = None
    if prompt_injection != "keep":
        injections = yield from injections_in(spoken, prompt_injection, detect, threshold)
    whole = spoken if injections is None else injections.passages
    read, unused = (question, whole), 0
    if encoder is not None:
        texts: tuple[Query | Passage, ...] = (question, *whole)
        cut = [bool(getattr(text, "cuts", ())) for text in texts]
        doubtful = [bool(text.hidden) or c or not trust_embeddings for text, c in zip(texts, cut)]
        brought = [text.embedding is not None for text in texts]
        out = [d and b for d, b in zip(doubtful, brought)]
        unused = sum(out)
        read = (
            replace(question, embedding=None) if out[0] else question,
            tuple(replace(p, embedding=None) if gone else p for p, gone in zip(whole, out[1:])),
        )
    if unused:
        why = "the texts hide something" if trust_embeddings else "embeddings from outside are not trusted"
        alone = trust_embeddings and getattr(encoder, "per_set", False) and unused < sum(brought)
        instead = "they are compared by their words" if alone else "the texts were encoded here"
        notes = (*notes, f"{unused} given embedding{'s are' if unused > 1 else ' is'} not used, for {why}; {instead}")
    return Admitted(*read, (question, given), notes, selected, injections)


def _with_injections(screening: Screening, injections: Injections, passages: tuple[Passage, ...]) -> Screening:
    """The screening of the passages that were read as a screening of all; what was cut or flagged becomes spans."""
    read, k = set(injections.read), len(passages)
    dropped = {i: _because(injections, i) for i in range(k) if i not in read}
    screening = put_back(screening, passages, injections.read, dropped)
    verdicts = tuple(
        _with_spans(v, injections) if v.index in injections.spans and v.index in read else v for v in screening.verdicts
    )
    arrays = {**screening.evidence.arrays, PROMPT_INJECTION: injections.probability}
    notes = (*screening.evidence.notes, *_injection_notes(injections, k))
    evidence = Evidence(arrays, notes, screening.evidence.graph)
    return replace(screening, passages=passages, verdicts=verdicts, evidence=evidence)


def _injection_notes(injections: Injections, k: int) -> list[str]:
    unread = k - len(injections.read)
    read = [spans for i, spans in injections.spans.items() if i in injections.read]
    flagged = sum(_all_flagged(spans) for spans in read)
    notes = [f"not read, for prompt injection: {unread} of {k} passages"] if unread else []
    if flagged:
        notes.append(f"flagged for prompt injection and read: {flagged} of {k} passages")
    if len(read) > flagged:
        notes.append(f"read without the prompt injections in them: {len(read) - flagged} of {k} passages")
    return [*notes, *injections.notes]


def _because(injections: Injections, i: int) -> Because:
    quote = quotable(injections.quotes[i], MAX_QUOTE_CHARS)
    return Because(Reason.of(PROMPT_INJECTION, quote=quote), injections.spans[i])


def _with_spans(verdict: Verdict, injections: Injections) -> Verdict:
    """The defense's verdict on a passage, extended by what was cut from it or flagged in it."""
    quote = quotable(injections.quotes[verdict.index], MAX_QUOTE_CHARS)
    found, wider = injections.spans[verdict.index], verdict.spans
    code = "prompt_injection.flagged" if _all_flagged(found) else "prompt_injection.cut"
    reason = Reason.of(code, quote=quote, clauses=[verdict.reason])
    if _all_flagged(found):  # a wider span around a flagged one would hide where it stands
        wider = tuple(span for span in wider if not any(_overlap(span, own) for own in found))
    return replace(verdict, reason=reason, spans=merge_spans([*wider, *found]))


def _all_flagged(spans: Sequence[Span]) -> bool:
    return all(span.flagged for span in spans)


def _overlap(span: Span, other: Span) -> bool:
    return span.field == other.field and span.start < other.end and other.start < span.end


def _not_read(selected: Selection, k: int) -> tuple[str, ...]:
    """Notes with the numbers of passages left out for a blocked source or as duplicates."""
    notes = [f"not read, for a blocked source: {len(selected.blocked)} of {k} passages"] if selected.blocked else []
    if selected.copies:
        notes.append(f"not read again, as a source repeats itself: {len(selected.copies)} of {k} passages")
    return tuple(notes)


def _cut(passages: tuple[Passage, ...], longest: int | None) -> tuple[str, ...]:
    """A note on passages with more words than the encoder reads tokens, if it states a limit."""
    if longest is None:
        return ()
    cut = [i for i, passage in enumerate(passages) if len(passage.reading.split(None, longest)) > longest]
    if not cut:
        return ()
    return (
        f"the encoder reads {longest} tokens of a text, so vectors made here leave out the rest of passage "
        f"{_list_positions(cut)}",
    )


def overlong(passages: Sequence[Passage]) -> list[int]:
    """Positions of passages too long to be judged sentence by sentence."""
    return [i for i, passage in enumerate(passages) if max(len(passage.text), len(passage.title or "")) > LONG]


def _too_long(passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """A note on passages so long that their sentences were not judged one by one."""
    long = overlong(passages)
    if not long:
        return ()
    return (
        f"longer than {LONG:,} characters and judged as one text, in which one planted sentence weighs little: passage "
        f"{_list_positions(long)}; screen it in parts, as it should be indexed",
    )


def _list_positions(positions: list[int]) -> str:
    more = len(positions) - MAX_NOTES
    return ", ".join(map(str, positions[:MAX_NOTES])) + (f" and {more} more" if more > 0 else "")


def _empty(query: Query, passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """Notes on empty texts; beyond ten passages only their number."""
    notes = [] if query.text.strip() else ["the question is empty"]
    empty = [i for i, passage in enumerate(passages) if not passage.text.strip()]
    notes += [f"passage {i} is empty" for i in empty[:MAX_NOTES]]
    if len(empty) > MAX_NOTES:
        notes.append(f"{len(empty) - MAX_NOTES} more passages are empty")
    return tuple(notes)


def _hidden(query: Query, passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """Notes on hidden text; beyond ten passages only their number."""
    notes = [f"the question hides {query.hidden}"] if query.hidden else []
    hiding = [i for i, passage in enumerate(passages) if passage.hidden]
    notes += [f"passage {i} hides {passages[i].hidden}" for i in hiding[:MAX_NOTES]]
    if len(hiding) > MAX_NOTES:
        notes.append(f"{len(hiding) - MAX_NOTES} more passages hide something")
    return tuple(notes)
