"""What a defense admits: the caller's question and passages become what it reads, and its result is the caller's again.

Passages of blocked sources, copies and prompt injections are left out on the way in (`admit`). `put_back` turns the
screening of the others into a screening of all.
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
from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.screener.injections import BUILT_IN, MAX_QUOTE_CHARS, THRESHOLD, Detector, Injections, injections_in
from unpoison.screener.positions import Because, put_back
from unpoison.sources.sources import Sources

__all__ = ["LONG", "Admitted", "admit", "overlong"]

LONG = 20_000
"""Characters of a passage beyond which one planted sentence hardly weighs: the service judges longer ones
in windows of so many, and who calls a defense is told."""

MAX_NOTES = 10
"""Maximum number of passages with hidden text that are named one by one."""

BLOCKED = Reason.of("sources.blocked")


class Selection(NamedTuple):
    """Which passages a defense reads at all.

    Attributes:
        read: Their positions, rising.
        blocked: Those whose source is blocked.
        copies: Those that repeat another of their source word for word, and which.
    """

    read: tuple[int, ...]
    blocked: tuple[int, ...] = ()
    copies: Mapping[int, int] = {}


def select_passages(sources: Sources | None, passages: Sequence[Passage]) -> Selection:
    """Drops passages of blocked sources, and exact duplicates of one source."""
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
    """A question and its passages as a defense reads them, and the way back.

    Attributes:
        query, passages: What the defense gets: the same order; passages of blocked sources and what a source repeats,
            passages that hold prompt injections, where these are to be dropped or cut, and embeddings that cannot be
            trusted are out.
        given: The caller's query and passages.
        notes: What was hidden, and which embeddings are not used.
        selected: Which passages are read.
        injections: What the passages that are selected inject, where that is looked at.
    """

    query: Query
    passages: tuple[Passage, ...]
    given: tuple[Query, tuple[Passage, ...]]
    notes: tuple[str, ...]
    selected: Selection
    injections: Injections | None = None

    @property
    def refused(self) -> bool:
        """Whether there were passages and all of them hold injections, or are of blocked sources."""
        return bool(self.given[1]) and not self.passages

    def screening(self, screening: Screening) -> Screening:
        """The caller's own question and passages in the defense's screening, and the notes."""
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
    detector: Detector = BUILT_IN,
    sources: Sources | None = None,
) -> Flow[Admitted]:
    """Let a question and its passages in.

    Args:
        query: As callers pass it.
        passages: As callers pass them.
        encoder: The defense's.
        verbatim: The defense reads the raw texts, as the released codes do; these know no injections.
        trust_embeddings: False encodes here what comes from outside. Otherwise only the embedding of a text in which
            something was hidden is not used, for it was made of other words than the ones that are judged; the others
            keep theirs. Without an encoder all are used.
        prompt_injection: The action on passages with an injection; `keep` skips detection.
        threshold: The probability from which a stretch is an injection.
        detector: Finds them.
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
        injections = yield from injections_in(spoken, prompt_injection, detector, threshold)
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
    """What the defense says of a passage of which something was cut or flagged, and that it was."""
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
    """How many passages are of blocked sources, and how many are repetitions, in sentences."""
    notes = [f"not read, for a blocked source: {len(selected.blocked)} of {k} passages"] if selected.blocked else []
    if selected.copies:
        notes.append(f"not read again, as a source repeats itself: {len(selected.copies)} of {k} passages")
    return tuple(notes)


def _cut(passages: tuple[Passage, ...], longest: int | None) -> tuple[str, ...]:
    """Which passages have more words than the encoder reads tokens, where it says how many."""
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
    """Positions of the passages that are too long to be judged sentence by sentence."""
    return [i for i, passage in enumerate(passages) if max(len(passage.text), len(passage.title or "")) > LONG]


def _too_long(passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """Which passages are so long that a sentence of them was not judged by itself."""
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
    """Which texts say nothing; the passages beyond the tenth are counted."""
    notes = [] if query.text.strip() else ["the question is empty"]
    empty = [i for i, passage in enumerate(passages) if not passage.text.strip()]
    notes += [f"passage {i} is empty" for i in empty[:MAX_NOTES]]
    if len(empty) > MAX_NOTES:
        notes.append(f"{len(empty) - MAX_NOTES} more passages are empty")
    return tuple(notes)


def _hidden(query: Query, passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """What is hidden where, in sentences; the passages beyond the tenth are counted."""
    notes = [f"the question hides {query.hidden}"] if query.hidden else []
    hiding = [i for i, passage in enumerate(passages) if passage.hidden]
    notes += [f"passage {i} hides {passages[i].hidden}" for i in hiding[:MAX_NOTES]]
    if len(hiding) > MAX_NOTES:
        notes.append(f"{len(hiding) - MAX_NOTES} more passages hide something")
    return tuple(notes)
