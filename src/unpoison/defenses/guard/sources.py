"""Verdicts from claims and sources: evidence that the author of a passage cannot forge.

A passage is dropped, whatever its style, if it contradicts sources that count and its own source does not; this holds
even if the counting sources disagree among themselves. A passage is kept, whatever its style, if it agrees with them.
Without a reader, near-copies that differ are treated as claims, and five texts of one new source are suspicious by
themselves. A passage with hidden text is never restored.

A passage that agrees with known sources is read again: "The warranty is 36 months. Since May it is 60 months." agrees
with a page that says 36 months, and misleads a model that reads on. The value is removed and the passage read again; a
second answer that contradicts the claim replaces the first, so that the passage is judged by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.core.verdicts import Claim, Contest, disagreement, unmistakable
from unpoison.defenses.guard.claims import Findings
from unpoison.defenses.guard.statements import CERTAIN, DOUBT, Statement, find_by_words, read_statements, taken_back
from unpoison.defenses.voices import Voice
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow
from unpoison.sources.sources import Sources
from unpoison.text.answers import LIKELY, relation, relation_by_value
from unpoison.text.languages import LANGUAGES
from unpoison.text.near_duplicates import Frame, differ, split_words
from unpoison.text.questions import wanted
from unpoison.text.values import agree, question_coverage, values, without_values

__all__ = [
    "UNREAD", "ByContent", "doubts", "missing_evidence", "one_voice", "open_contests", "read_again",
    "verdicts_by_claims", "verdicts_by_copies", "verdicts_by_origin",
]  # fmt: skip

FLOOD = 5
"""Minimum number of different texts of one new source, for one question, that is suspicious."""


class ByContent(NamedTuple):
    """Decisions from claims and sources: reasons by position."""

    dropped: Mapping[int, Reason]
    restored: Mapping[int, Reason] = {}
    disputed: Mapping[int, Reason] = {}


def verdicts_by_claims(
    findings: Findings, statements: Mapping[int, Statement], voices: Sequence[Voice], passages: Sequence[Passage]
) -> ByContent:
    """Drop passages with outvoted claims; restore passages with the leading claim.

    Nothing is dropped unless counting sources make a claim, and nothing is restored if these dispute it.
    """
    dropped = {
        i: _contradiction_reason(findings.claims[n], findings.claims[other], voices)
        for n, other in findings.outvoted.items()
        for i in findings.claims[n].passages
        if statements[i].no_answer < CERTAIN
    }
    if findings.status == "disputed":
        sides = [findings.sides[n] for n in (0, *findings.rivals)]
        first, second, *_ = map(_quote, sides)
        said = ((i, _quote(one), first if one is not sides[0] else second) for one in sides for i in one.passages)
        return ByContent(dropped, {}, {i: Reason.of("sources.disputed", answer=a, other=b) for i, a, b in said})
    lead = findings.claims[0]
    behind = [i for i in lead.passages if voices[i].counts]
    restored: dict[int, Reason] = {}
    for i in lead.passages:
        others = len({voices[j].name for j in behind} - {voices[i].name})
        if (others or voices[i].level == "trusted") and not passages[i].hidden:
            code, more = ("sources.agrees", {"others": others}) if others else ("sources.trusted", {})
            restored[i] = Reason.of(code, answer=_quote(lead), **more)
    return ByContent(dropped, restored)


def doubts(findings: Findings, passages: Sequence[Passage]) -> tuple[str, ...]:
    """A note on each claim that would dispute the first one, had it been read with certainty."""
    pairs = ([findings.sides[0], findings.sides[n]] for n in findings.doubtful)
    return tuple(f"an answer was read with doubt and does not count. {disagreement(pair, passages)}" for pair in pairs)


def verdicts_by_copies(question: str, frames: Sequence[Frame], voices: Sequence[Voice]) -> dict[int, Reason]:
    """Drop near-copies of counting sources' passages that have another name or number.

    If the question contains that name or number, the copy is on its subject and is kept.
    """
    named = set(split_words(question))
    dropped: dict[int, Reason] = {}
    for frame in frames:
        counting = {i: filling for i, filling in frame.fillings.items() if voices[i].counts}
        fillings = set(counting.values())
        for i, filling in frame.fillings.items():
            asked_for = not named.isdisjoint(set(split_words(filling)).difference(*map(split_words, fillings)))
            if voices[i].counts or not counting or asked_for or not all(differ(filling, own) for own in fillings):
                continue
            first = min(counting)
            lead = Claim(counting[first], 0.0, (), tuple(j for j in counting if counting[j] == counting[first]))
            dropped[i] = _contradiction_reason(Claim(filling, 0.0, (), (i,)), lead, voices)
    return dropped


def verdicts_by_origin(voices: Sequence[Voice], passages: Sequence[Passage]) -> dict[int, Reason]:
    """Drop the passages of a new source that has `FLOOD` different texts or more."""
    texts = {(voice.name, passage.reading) for voice, passage in zip(voices, passages) if voice.level == "fresh"}
    many = {name: count for name, count in Counter(name for name, _ in texts).items() if count >= FLOOD}
    names = [voice.name for voice in voices]
    return {i: Reason.of("sources.one_origin", count=many[name]) for i, name in enumerate(names) if name in many}


def open_contests(contested: Sequence[Contest], decided: ByContent) -> tuple[Contest, ...]:
    """The contests with at least two sides that were not dropped."""
    sides = ([rival for rival in one.rivals if not decided.dropped.keys() >= set(rival.passages)] for one in contested)
    return tuple(one for one, left in zip(contested, sides, strict=True) if len(left) > 1)


def _contradiction_reason(claim: Claim, lead: Claim, voices: Sequence[Voice]) -> Reason:
    own = {voices[i].name for i in claim.passages}
    known = {voices[i].name for i in lead.passages if voices[i].counts}
    return Reason.of("sources.contradicted", answer=_quote(claim), other=_quote(lead), own=len(own), known=len(known))


def _quote(claim: Claim) -> str:
    return quotable(unmistakable(claim.text))


def one_voice(overlap: NDArray[np.float64], voices: Sequence[Voice]) -> NDArray[np.float64]:
    """The word overlap of passages, shape (k, k), with passages of one source counted as copies of each other."""
    names = np.array([voice.name for voice in voices])
    same: NDArray[np.bool_] = names[:, None] == names[None, :]
    return np.where(same, 1.0, overlap)


def read_again(
    query: Query,
    passages: Sequence[Passage],
    statements: Mapping[int, Statement],
    findings: Findings,
    voices: Sequence[Voice],
    generator: Generator | None,
) -> Flow[dict[int, Statement]]:
    """The contradicting second answers of passages of other sources that agree with counting ones, by position.

    A reader reads the rest of each passage; for any other generator, rules find the value (no further model call).
    """
    question = query.reading
    agreed = _agreeing(question, statements, findings, voices)
    if not agreed:
        return {}
    rests = [_without_claim(passages[i].reading, statements[i], i, claim) for i, claim in agreed.items()]
    if callable(getattr(generator, "read", None)):
        read = yield from read_statements(query, list(map(Passage, rests)), generator)
    else:
        read = find_by_words(question, rests, range(len(rests)), wanted(question))
    known = [passage.reading for passage, voice in zip(passages, voices, strict=True) if voice.counts]
    second = {i: read[n] for n, i in enumerate(agreed) if n in read}
    certain = {
        i: statement
        for i, statement in second.items()
        if _is_certain(question, statements[i], statement)
        and not any(statement.sentence in text for text in known)
        and _contradicts(question, agreed[i].text, statement.answer)
    }
    retracted = {i: taken_back(passages[i].reading, claim.text) for i, claim in agreed.items() if i not in certain}
    return certain | {i: said for i, said in retracted.items() if said and not any(said.sentence in k for k in known)}


def _agreeing(
    question: str, statements: Mapping[int, Statement], findings: Findings, voices: Sequence[Voice]
) -> dict[int, Claim]:
    """For each passage of another source that agrees with a claim of counting sources, that claim."""
    kind = wanted(question).kind
    return {
        i: claim
        for claim in findings.claims
        if any(voices[i].counts for i in claim.passages)
        for i, statement in statements.items()
        if not voices[i].counts
        and (i in claim.passages or agree(statement.answer, claim.text, kind, question) in ("equal", "compatible"))
    }


def _without_claim(text: str, statement: Statement, i: int, claim: Claim) -> str:
    """A text without the values of a claim or, if the claim has none, without the sentence that states it."""
    if values(claim.text):
        return without_values(text, claim.text)
    return text.replace(statement.sentence, "") if i in claim.passages else text


def _is_certain(question: str, first: Statement, second: Statement) -> bool:
    """Whether a second answer is sure, or likely in a sentence as close to the question as that of the first."""
    if not second.given or second.no_answer >= CERTAIN:
        return False
    if second.no_answer < DOUBT:
        return True
    return question_coverage(question, second.sentence) >= question_coverage(question, first.sentence)


def _contradicts(question: str, claim: str, second: str) -> bool:
    """Whether a second answer contradicts a claim; a value only by another value of its kind."""
    kinds = {value.kind for value in values(claim)}
    if kinds and kinds.isdisjoint(value.kind for value in values(second)):
        return False
    return relation_by_value(question, claim, second, relation(question, claim, second)).rival >= LIKELY


UNREAD = (
    "nobody read what the passages claim: sources decide only on near-copies that differ and on many texts of one new "
    "source; give a generator, such as reader"
)

UNSUPPORTED = (
    "the reader knows no questions in this language ({language}): claims were not read; only styles, near-copies and "
    "the number of texts of one source were judged"
)


def missing_evidence(
    question: str, passages: Sequence[Passage], generator: Generator | None, sources: Sources | None, *, read: bool
) -> tuple[str, ...]:
    """Notes on what was not judged; `read` says whether claims were read."""
    language_of = getattr(generator, "unread_language", None)
    language = None if language_of is None else language_of(question)
    if language is not None and language not in LANGUAGES:
        return (UNSUPPORTED.format(language=language),)
    if sources is not None:
        return (*sources.notes, UNREAD) if sources.informed and not read else sources.notes
    if read and len({passage.origin for passage in passages} - {""}) > 1:
        return ("every passage had a voice of its own; pass sources=Sources() to give each source one",)
    return ()
