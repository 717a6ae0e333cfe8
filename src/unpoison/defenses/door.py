"""The door of a defense: what the caller passes becomes what it reads, and the result is the caller's again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unpoison.core.reasons import Reason
from unpoison.defenses.detector import BUILT_IN, Detector
from unpoison.defenses.injections import InjectionPolicy, Injections, injections_in, with_injections
from unpoison.defenses.left_out import Because, put_back
from unpoison.defenses.voices import Hearing, select_passages
from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.sources import Sources
from unpoison.types import Answer, Passage, Query, Screening, as_passages, as_query

__all__ = ["LONG", "Admitted", "admit", "overlong"]

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
            screening = with_injections(screening, self.injections, tuple(passages[i] for i in self.heard.read))
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
