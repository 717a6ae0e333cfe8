"""Admission: which of the caller's passages a defense reads, and how its result maps back to all of them.

`admit` leaves out passages of blocked sources, copies and prompt injections. `put_back` turns the screening of the
remaining passages into a screening of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages, as_query
from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Action, Evidence, Span, Verdict, merge_spans
from unpoison.injections.cutting import Injections, injections_in
from unpoison.injections.detector import MAX_QUOTE_CHARS, THRESHOLD, Detect, detect_flow
from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.sources.allow import Allowed
from unpoison.sources.sources import Sources
from unpoison.utils.plain_text import first_of

__all__ = ["LONG", "Admitted", "Because", "admit", "overlong", "put_back"]

LONG = 20_000
"""Characters of a passage beyond which one planted sentence hardly changes its score; a screening adds a note then."""

MAX_NOTES = 10
"""Maximum number of passages that are named one by one in notes."""


def admit(
    query: object,
    passages: Any,
    encoder: Encoder | None,
    *,
    verbatim: bool = False,
    trust_embeddings: bool = True,
    prompt_injection: Action = "keep",
    threshold: float = THRESHOLD,
    detect: Detect = detect_flow,
    sources: Sources | None = None,
    allowed: Sequence[Allowed] = (),
) -> Flow[Admitted]:
    """Validate a query and its passages, and select those that the defense reads.

    Args:
        query: As callers pass it.
        passages: As callers pass them.
        encoder: The encoder of the defense.
        verbatim: The defense reads raw text, as the released code does, which detects no injections.
        trust_embeddings: False ignores the caller's embeddings and encodes every text here. True ignores only the
            embeddings of texts with hidden parts, since they were computed from other words than those judged.
            Without an encoder all are used.
        prompt_injection: The action on passages with an injection; `keep` skips detection.
        threshold: The minimum probability of an injection.
        detect: Finds injections.
        sources: Decides which sources are blocked, and finds their duplicates.
        allowed: A hash in these lists settles that a text without a title of its own holds no injection.
    """
    question, given = as_query(query), as_passages(passages)
    selected = select_passages(sources, given)
    spoken = tuple(given[i] for i in selected.read)
    if verbatim:
        whole = tuple(replace(p, verbatim=True) for p in spoken)
        notes = (*length_notes(given), *selected.notes(len(given)))
        return Admitted(replace(question, verbatim=True), whole, (question, given), notes, selected)
    notes = (*input_notes(question, given, getattr(encoder, "longest", None)), *selected.notes(len(given)))
    injections = None
    if prompt_injection != "keep":
        settled = [i for i, p in enumerate(spoken) if p.raw == p.text and any(a.holds_text(p.text) for a in allowed)]
        injections = yield from injections_in(spoken, prompt_injection, detect, threshold, settled)
    whole = spoken if injections is None else injections.passages
    if encoder is None:
        return Admitted(question, whole, (question, given), notes, selected, injections)
    asked, whole, unused = _without_doubtful_embeddings(question, whole, encoder, trust=trust_embeddings)
    return Admitted(asked, whole, (question, given), (*notes, *unused), selected, injections)


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

    def notes(self, k: int) -> list[str]:
        """The numbers of passages, of k, that are left out for a blocked source or as duplicates."""
        counts = {
            "not read, for a blocked source": len(self.blocked),
            "not read again, as a source repeats itself": len(self.copies),
        }
        return [f"{note}: {count} of {k} passages" for note, count in counts.items() if count]


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


def input_notes(query: Query, passages: Sequence[Passage], longest: int | None) -> list[str]:
    """Notes on empty and hidden texts, and on those of which a part is not read, as `longest` tokens by the encoder."""
    empty = {i: "is empty" for i, passage in enumerate(passages) if not passage.text.strip()}
    hiding = {i: f"hides {passage.hidden}" for i, passage in enumerate(passages) if passage.hidden}
    return [
        *([] if query.text.strip() else ["the question is empty"]),
        *_each(empty, "are empty"),
        *([f"the question hides {query.hidden}"] if query.hidden else []),
        *_each(hiding, "hide something"),
        *length_notes(passages),
        *_cut(passages, longest),
    ]


def length_notes(passages: Sequence[Passage]) -> list[str]:
    """A note on passages so long that their sentences were not judged one by one."""
    long = overlong(passages)
    judged = f"longer than {LONG:,} characters and judged as one text, in which one planted sentence weighs little"
    return (
        [f"{judged}: passage {first_of(long, MAX_NOTES)}; screen it in parts, as it should be indexed"] if long else []
    )


def overlong(passages: Sequence[Passage]) -> list[int]:
    """Positions of passages too long to be judged sentence by sentence."""
    return [i for i, passage in enumerate(passages) if max(len(passage.text), len(passage.title or "")) > LONG]


def _cut(passages: Sequence[Passage], longest: int | None) -> list[str]:
    """A note on passages with more words than the encoder reads tokens, if it states a limit."""
    cut = [i for i, passage in enumerate(passages) if longest and len(passage.reading.split(None, longest)) > longest]
    where = f"vectors made here leave out the rest of passage {first_of(cut, MAX_NOTES)}"
    return [f"the encoder reads {longest} tokens of a text, so {where}"] if cut else []


def _each(said: Mapping[int, str], of_many: str) -> list[str]:
    """A note on each passage by its position; beyond ten passages only their number."""
    notes = [f"passage {i} {what}" for i, what in said.items()]
    more = len(notes) - MAX_NOTES
    return [*notes[:MAX_NOTES], *([f"{more} more passages {of_many}"] if more > 0 else [])]


def _without_doubtful_embeddings(
    question: Query, passages: tuple[Passage, ...], encoder: Encoder, *, trust: bool
) -> tuple[Query, tuple[Passage, ...], list[str]]:
    """The texts without the embeddings that are not used, and a note with their number."""
    texts: tuple[Query | Passage, ...] = (question, *passages)
    brought = [text.embedding is not None for text in texts]
    doubtful = [not trust or text.hidden.any or bool(getattr(text, "cuts", ())) for text in texts]
    out = [b and d for b, d in zip(brought, doubtful)]
    if not (unused := sum(out)):
        return question, passages, []
    why = "the texts hide something" if trust else "embeddings from outside are not trusted"
    alone = trust and getattr(encoder, "per_set", False) and unused < sum(brought)
    instead = "they are compared by their words" if alone else "the texts were encoded here"
    note = f"{unused} given embedding{'s are' if unused > 1 else ' is'} not used, for {why}; {instead}"
    bare = tuple(replace(p, embedding=None) if gone else p for p, gone in zip(passages, out[1:]))
    return replace(question, embedding=None) if out[0] else question, bare, [note]


BLOCKED = Reason.of("sources.blocked")


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

    def restore(self, screening: Screening) -> Screening:
        """The defense's screening, mapped back to the caller's query and passages, with the notes of admission."""
        query, passages = self.given
        if self.injections is not None:
            screening = _with_injections(screening, self.injections, tuple(passages[i] for i in self.selected.read))
        blocked = dict.fromkeys(self.selected.blocked, Because(BLOCKED))
        screening = put_back(screening, passages, self.selected.read, blocked, self.selected.copies)
        evidence = screening.evidence
        if self.notes:
            evidence = replace(evidence, notes=(*evidence.notes, *self.notes))
        return replace(screening, query=query.text, passages=passages, evidence=evidence)

    def restore_answer(self, answer: Answer) -> Answer:
        """`restore` for an answer."""
        return replace(answer, screening=self.restore(answer.screening))


def _with_injections(screening: Screening, injections: Injections, passages: tuple[Passage, ...]) -> Screening:
    """Map the screening of the passages that were read to all passages; cut and flagged parts become spans."""
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


def _because(injections: Injections, i: int) -> Because:
    quote = quotable(injections.quotes[i], MAX_QUOTE_CHARS)
    return Because(Reason.of(PROMPT_INJECTION, quote=quote), injections.spans[i])


def _with_spans(verdict: Verdict, injections: Injections) -> Verdict:
    """The defense's verdict on a passage, extended by what was cut from it or flagged in it."""
    quote = quotable(injections.quotes[verdict.index], MAX_QUOTE_CHARS)
    found, wider = injections.spans[verdict.index], verdict.spans
    flagged = _all_flagged(found)
    code = "prompt_injection.flagged" if flagged else "prompt_injection.cut"
    reason = Reason.of(code, quote=quote, clauses=[verdict.reason])
    if flagged:  # a wider span around a flagged one would hide where it stands
        wider = tuple(span for span in wider if not any(_overlap(span, own) for own in found))
    return replace(verdict, reason=reason, spans=merge_spans([*wider, *found]))


def _all_flagged(spans: Sequence[Span]) -> bool:
    return all(span.flagged for span in spans)


def _overlap(span: Span, other: Span) -> bool:
    return span.field == other.field and span.start < other.end and other.start < span.end


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


class Because(NamedTuple):
    """Why a passage was left out, and the parts of it that caused this."""

    reason: Reason
    spans: tuple[Span, ...] = ()


def put_back(
    screening: Screening,
    passages: tuple[Passage, ...],
    read: Sequence[int],
    dropped: Mapping[int, Because],
    copies: Mapping[int, int] | None = None,
) -> Screening:
    """Turn the screening of the passages that were read into a screening of all.

    Positions in reasons, notes, claims, contests and arrays are renumbered. A passage that was left out gets the
    lowest score; in the arrays it gets 0, as probability of poison 1, as cluster -1. A copy gets the verdict of its
    original and ranks directly behind it.

    Args:
        screening: Of the passages that were read.
        passages: All of them.
        read: Positions of the passages that were read, ascending.
        dropped: Passages left out and dropped, by position.
        copies: Duplicates left out, each mapped to its original. Every position is in one of the three.
    """
    if len(read) == len(passages):
        return screening
    places = _Places(read, copies or {}, len(passages))
    lowest = min([0.0, *(v.score for v in screening.verdicts)])
    verdicts = {i: Verdict(i, False, lowest, None, why.reason, why.spans) for i, why in dropped.items()}
    for v in screening.verdicts:
        verdicts[read[v.index]] = replace(v, index=read[v.index], reason=places.reason(v.reason))
    for copy, first in places.copies.items():
        verdicts[copy] = replace(verdicts[first], index=copy, reason=Reason.of("copies.copy", passage=first))
    order = [copy for i in screening.kept_indices for copy in _with_copies(read[i], places.copies)]
    ranks = {i: rank for rank, i in enumerate(order)}
    return replace(
        screening,
        passages=passages,
        verdicts=tuple(replace(verdicts[i], rank=ranks.get(i)) for i in range(len(passages))),
        evidence=replace(
            screening.evidence,
            arrays=places.arrays(screening.evidence.arrays),
            notes=tuple(places.text(note) for note in screening.evidence.notes),
        ),
        contested=tuple(
            replace(contest, rivals=tuple(replace(r, passages=places.of(r.passages)) for r in contest.rivals))
            for contest in screening.contested
        ),
        claims=tuple(replace(claim, passages=places.of(claim.passages)) for claim in screening.claims),
    )


def _with_copies(first: int, copies: Mapping[int, int]) -> list[int]:
    return [first, *(copy for copy, of in copies.items() if of == first)]


ANSWERING = "answering"
"""Array with the positions of the passages that answered. If present, all flat arrays have an entry for each of
these passages only."""

_NAMED = re.compile(r"\bpassage (\d{1,4}(?:, \d{1,4})*)\b")


@dataclass(frozen=True, slots=True)
class _Places:
    """Maps positions among the passages that were read to positions among all passages.

    Attributes:
        read: Position of each passage that was read, ascending.
        copies: Position of each copy, mapped to that of its original.
        k: The number of all passages.
    """

    read: Sequence[int]
    copies: Mapping[int, int]
    k: int

    def of(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The positions of these passages and of their copies, ascending."""
        here = {self.read[i] for i in positions}
        return tuple(sorted(here | {copy for copy, first in self.copies.items() if first in here}))

    def text(self, text: str) -> str:
        """Renumber "passage 2, 3" in a sentence."""

        def renumber(match: re.Match[str]) -> str:
            numbers = [int(number) for number in match[1].split(", ")]
            return "passage " + ", ".join(str(self.read[n]) if n < len(self.read) else str(n) for n in numbers)

        return _NAMED.sub(renumber, text)

    def reason(self, reason: Reason) -> Reason:
        """Renumber the positions in a reason."""
        return reason.remap(lambda n: self.read[n] if n < len(self.read) else n, self.text)

    def arrays(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if ANSWERING not in arrays:
            return {name: self._array(name, array) for name, array in arrays.items()}
        spread = {name: self._array(name, array) if array.ndim > 1 else array for name, array in arrays.items()}
        return {**spread, ANSWERING: np.array(self.read, int)[arrays[ANSWERING]]}

    def _array(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """Extend an array with one entry per passage read to one entry per passage."""
        if not array.ndim or any(size != len(self.read) for size in array.shape):
            return array
        whole = np.zeros((self.k,) * array.ndim, array.dtype)
        if name == "clusters":
            whole -= 1
        elif name == "probability":
            whole += 1
        number = {place: i for i, place in enumerate(self.read)}
        source = number | {copy: number[first] for copy, first in self.copies.items() if first in number}
        at = sorted(source)
        whole[np.ix_(*[at] * array.ndim)] = array[np.ix_(*[[source[i] for i in at]] * array.ndim)]
        return whole
