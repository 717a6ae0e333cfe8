"""What a defense admits: the caller's question and passages become what it reads, and its result is the caller's again.

Passages of blocked sources, copies and prompt injections are left out on the way in (`admit`). `put_back` turns the
screening of the others into a screening of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.reasons import PROMPT_INJECTION, Reason, quotable
from unpoison.defenses.injections import BUILT_IN, MAX_QUOTE_CHARS, Detector, InjectionPolicy, Injections, injections_in
from unpoison.defenses.voices import Hearing, select_passages
from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.sources import Sources
from unpoison.types import (
    Answer,
    Evidence,
    Passage,
    Query,
    Screening,
    Span,
    Verdict,
    as_passages,
    as_query,
    merge_spans,
)

__all__ = ["LONG", "Admitted", "Because", "admit", "overlong", "put_back"]

LONG = 20_000
"""Characters of a passage beyond which one planted sentence hardly weighs: the service judges longer ones
in windows of so many, and who calls a defense is told."""

MAX_NOTES = 10
"""Passages whose hiding is told one by one."""

BLOCKED = Reason.of("sources.blocked")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A question and its passages as a defense reads them, and the way back.

    Attributes:
        query, passages: What the defense gets: the same order; passages of blocked sources and what a source repeats,
            passages that hold prompt injections, where these are to be dropped or cut, and embeddings that cannot be
            trusted are out.
        given: The caller's query and passages.
        notes: What was hidden, and which embeddings are not used.
        heard: Whose sources are heard.
        injections: What the passages that are heard inject, where that is looked at.
    """

    query: Query
    passages: tuple[Passage, ...]
    given: tuple[Query, tuple[Passage, ...]]
    notes: tuple[str, ...]
    heard: Hearing
    injections: Injections | None = None

    @property
    def refused(self) -> bool:
        """Whether there were passages and all of them hold injections, or are of blocked sources."""
        return bool(self.given[1]) and not self.passages

    def screening(self, screening: Screening) -> Screening:
        """The caller's own question and passages in the defense's screening, and the notes."""
        query, passages = self.given
        if self.injections is not None:
            screening = _with_injections(screening, self.injections, tuple(passages[i] for i in self.heard.read))
        blocked = dict.fromkeys(self.heard.blocked, Because(BLOCKED))
        screening = put_back(screening, passages, self.heard.read, blocked, self.heard.copies)
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
    prompt_injection: InjectionPolicy = "keep",
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
        prompt_injection: What becomes of the passages that hold one; `keep` does not look.
        detector: Finds them.
        sources: Who is blocked, and who repeats himself.
    """
    question, given = as_query(query), as_passages(passages)
    heard = select_passages(sources, given)
    spoken = tuple(given[i] for i in heard.read)
    if verbatim:
        whole = tuple(replace(p, verbatim=True) for p in spoken)
        notes = (*_too_long(given), *_unheard(heard, len(given)))
        return Admitted(replace(question, verbatim=True), whole, (question, given), notes, heard)
    notes = (
        *_hidden(question, given),
        *_too_long(given),
        *_cut(given, getattr(encoder, "longest", None)),
        *_unheard(heard, len(given)),
    )
    injections = None
    if prompt_injection != "keep":
        injections = yield from injections_in(spoken, prompt_injection, detector)
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
    return Admitted(*read, (question, given), notes, heard, injections)


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
    marked = len(injections.spans) - unread
    notes = [f"not read, for prompt injection: {unread} of {k} passages"] if unread else []
    if marked and injections.policy == "flag":
        notes.append(f"flagged for prompt injection and read: {marked} of {k} passages")
    elif marked:
        notes.append(f"read without the prompt injections in them: {marked} of {k} passages")
    return [*notes, *injections.notes]


def _because(injections: Injections, i: int) -> Because:
    quote = quotable(injections.quotes[i], MAX_QUOTE_CHARS)
    return Because(Reason.of(PROMPT_INJECTION, quote=quote), injections.spans[i])


def _with_spans(verdict: Verdict, injections: Injections) -> Verdict:
    """What the defense says of a passage of which something was cut or flagged, and that it was."""
    quote = quotable(injections.quotes[verdict.index], MAX_QUOTE_CHARS)
    code = "prompt_injection.flagged" if injections.policy == "flag" else "prompt_injection.cut"
    reason = Reason.of(code, quote=quote, clauses=[verdict.reason.clause])
    found, wider = injections.spans[verdict.index], verdict.spans
    if injections.policy == "flag":  # a wider span around a flagged one would hide where it stands
        wider = tuple(span for span in wider if not any(_overlap(span, own) for own in found))
    return replace(verdict, reason=reason, spans=merge_spans([*wider, *found]))


def _overlap(span: Span, other: Span) -> bool:
    return span.field == other.field and span.start < other.end and other.start < span.end


def _unheard(heard: Hearing, k: int) -> tuple[str, ...]:
    """How many passages are of blocked sources, and how many are repetitions, in sentences."""
    notes = [f"not read, for a blocked source: {len(heard.blocked)} of {k} passages"] if heard.blocked else []
    if heard.copies:
        notes.append(f"not read again, as a source repeats itself: {len(heard.copies)} of {k} passages")
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


def _hidden(query: Query, passages: tuple[Passage, ...]) -> tuple[str, ...]:
    """What is hidden where, in sentences; the passages beyond the tenth are counted."""
    notes = [f"the question hides {query.hidden}"] if query.hidden else []
    hiding = [i for i, passage in enumerate(passages) if passage.hidden]
    notes += [f"passage {i} hides {passages[i].hidden}" for i in hiding[:MAX_NOTES]]
    if len(hiding) > MAX_NOTES:
        notes.append(f"{len(hiding) - MAX_NOTES} more passages hide something")
    return tuple(notes)


ANSWERING = "answering"
"""The positions of the passages that answered; where it is given, all flat arrays go by these passages alone."""

_NAMED = re.compile(r"\bpassage (\d{1,4}(?:, \d{1,4})*)\b")


class Because(NamedTuple):
    """Why a passage was left out, and which parts of it are the reason."""

    reason: Reason
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class _Places:
    """The way from the positions of what was read to those of all.

    Attributes:
        read: Where each passage that was read stands, rising.
        copies: Where copies stand, and of which passage they are one.
        k: How many there are in all.
    """

    read: Sequence[int]
    copies: Mapping[int, int]
    k: int

    def of(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The same passages and their copies, rising."""
        here = {self.read[i] for i in positions}
        return tuple(sorted(here | {copy for copy, first in self.copies.items() if first in here}))

    def text(self, text: str) -> str:
        """A sentence whose "passage 2, 3" count only what was read."""

        def renumber(match: re.Match[str]) -> str:
            numbers = [int(number) for number in match[1].split(", ")]
            return "passage " + ", ".join(str(self.read[n]) if n < len(self.read) else str(n) for n in numbers)

        return _NAMED.sub(renumber, text)

    def reason(self, reason: Reason) -> Reason:
        """A reason whose positions count only what was read."""
        return reason.remap(lambda n: self.read[n] if n < len(self.read) else n, self.text)

    def arrays(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if ANSWERING not in arrays:
            return {name: self._array(name, array) for name, array in arrays.items()}
        spread = {name: self._array(name, array) if array.ndim > 1 else array for name, array in arrays.items()}
        return {**spread, ANSWERING: np.array(self.read, int)[arrays[ANSWERING]]}

    def _array(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """An array by passage in the positions of all passages."""
        if not array.ndim or any(size != len(self.read) for size in array.shape):
            return array
        whole = np.zeros((self.k,) * array.ndim, array.dtype)
        if name == "speaker":  # its values are positions too
            whole, array = np.arange(self.k), np.array(self.read, int)[array]
        elif name == "clusters":
            whole -= 1
        elif name == "probability":
            whole += 1
        number = {place: i for i, place in enumerate(self.read)}
        source = number | {copy: number[first] for copy, first in self.copies.items() if first in number}
        at = sorted(source)
        whole[np.ix_(*[at] * array.ndim)] = array[np.ix_(*[[source[i] for i in at]] * array.ndim)]
        return whole


def put_back(
    screening: Screening,
    passages: tuple[Passage, ...],
    read: Sequence[int],
    dropped: Mapping[int, Because],
    copies: Mapping[int, int] | None = None,
) -> Screening:
    """The screening of the passages that were read as a screening of all.

    Positions in reasons, notes, claims, contests and arrays become those of all passages. What was left out gets the
    lowest score, and in the arrays zero, the probability of poison 1 and the cluster -1. A copy shares the fate of its
    first, and stands behind it.

    Args:
        screening: Of the passages that were read.
        passages: All of them.
        read: The positions of what was read, rising.
        dropped: What was left out and goes, by position.
        copies: What was left out for being a copy, and of which position; every position is in one of the three.
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
