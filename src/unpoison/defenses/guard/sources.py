"""What claims and sources add to Guard's verdicts: evidence that the writer of a passage cannot write.

A passage goes, however it is written, if what it says cannot be right beside what sources that count say, and its own
source does not count: also where these sources contradict each other, which is a dispute between them. It stays,
however it is written, if it says what they say. Where nobody reads, near-copies that differ are claims too, and five
texts from one source never seen before are suspicious by themselves. What hides something is never brought back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason, quotable
from unpoison.core.verdicts import Claim, Contest, unmistakable
from unpoison.defenses.claims import Findings, Statement
from unpoison.defenses.guard.contest import DOUBT, MAX_READ_PASSAGES, ReadAnswers
from unpoison.defenses.voices import Voice
from unpoison.text.analysis import analysis
from unpoison.text.near_duplicates import FoldedText, differ, near_copies, split_words
from unpoison.text.questions import read_question

__all__ = [
    "ByContent",
    "answers_from_statements",
    "one_voice",
    "open_contests",
    "verdicts_by_claims",
    "verdicts_by_copies",
    "verdicts_by_origin",
]

FLOOD = 5
"""Different texts of one source never seen before, among the passages of one question, that are suspicious."""

CERTAIN = 0.2
"""Maximum P(no answer) at which a statement counts as a conflict: a doubtful one may be a reader's error."""

ANSWERED = 0.4
"""P(no answer) from which a passage answers nothing: a reader's own threshold."""


class ByContent(NamedTuple):
    """Decisions from claims and sources: reasons by position."""

    dropped: Mapping[int, Reason]
    restored: Mapping[int, Reason] = {}


def verdicts_by_claims(
    findings: Findings, statements: Mapping[int, Statement], voices: Sequence[Voice], passages: Sequence[Passage]
) -> ByContent:
    """Which passages go for what only sources say that do not count, and which stay for making the leading claim.

    Nothing goes unless sources that count claim something, and nothing is restored where these dispute it.
    """
    dropped = {
        i: _contradiction_reason(findings.claims[n], findings.claims[other], voices)
        for n, other in findings.outvoted.items()
        for i in findings.claims[n].passages
        if statements[i].no_answer < CERTAIN
    }
    if not findings.counted or findings.status == "disputed":
        return ByContent(dropped)
    lead = findings.claims[0]
    behind = [i for i in lead.passages if voices[i].counts]
    restored: dict[int, Reason] = {}
    for i in lead.passages:
        others = len({voices[j].name for j in behind} - {voices[i].name})
        if (others or voices[i].level == "trusted") and not passages[i].hidden:
            restored[i] = _agrees(lead, others)
    return ByContent(dropped, restored)


def verdicts_by_copies(question: str, texts: Sequence[str], voices: Sequence[Voice]) -> ByContent:
    """Near-copies of what sources that count say go where another name or number stands in them.

    Unless the question names what stands there: then the copy is about the subject, and the others are not.
    """
    named = set(split_words(question))
    dropped: dict[int, Reason] = {}
    for frame in near_copies(texts, lambda text: analysis(text).part(FoldedText)):
        counting = {i: filling for i, filling in frame.fillings.items() if voices[i].counts}
        fillings = set(counting.values())
        for i, filling in frame.fillings.items():
            asked_for = not named.isdisjoint(set(split_words(filling)).difference(*map(split_words, fillings)))
            if voices[i].counts or not counting or asked_for or not all(differ(filling, own) for own in fillings):
                continue
            first = min(counting)
            lead = Claim(counting[first], 0.0, (), tuple(j for j in counting if counting[j] == counting[first]))
            dropped[i] = _contradiction_reason(Claim(filling, 0.0, (), (i,)), lead, voices)
    return ByContent(dropped)


def verdicts_by_origin(voices: Sequence[Voice], passages: Sequence[Passage]) -> ByContent:
    """What comes from one source that was never seen before, and brings `FLOOD` different texts or more."""
    texts = {(voice.name, passage.reading) for voice, passage in zip(voices, passages) if voice.level == "fresh"}
    many = {name: count for name, count in Counter(name for name, _ in texts).items() if count >= FLOOD}
    return ByContent(
        {
            i: Reason.of("sources.one_origin", count=many[voice.name])
            for i, voice in enumerate(voices)
            if voice.name in many
        }
    )


def open_contests(contested: Sequence[Contest], decided: ByContent) -> tuple[Contest, ...]:
    """The contests in which two sides are left: where all but one went for what they say, nobody need be told."""
    return tuple(
        contest
        for contest in contested
        if sum(any(i not in decided.dropped for i in rival.passages) for rival in contest.rivals) > 1
    )


def _contradiction_reason(claim: Claim, lead: Claim, voices: Sequence[Voice]) -> Reason:
    own = {voices[i].name for i in claim.passages}
    known = {voices[i].name for i in lead.passages if voices[i].counts}
    parameters = {"answer": _quote(claim), "other": _quote(lead), "own": len(own), "known": len(known)}
    return Reason.of("sources.contradicted", **parameters)


def _agrees(lead: Claim, others: int) -> Reason:
    if not others:
        return Reason.of("sources.trusted", answer=_quote(lead))
    return Reason.of("sources.agrees", answer=_quote(lead), others=others)


def _quote(claim: Claim) -> str:
    return quotable(unmistakable(claim.text))


def one_voice(overlap: NDArray[np.float64], voices: Sequence[Voice]) -> NDArray[np.float64]:
    """The shared words of passages, shape (k, k), where passages of one source count as copies of each other."""
    names = np.array([voice.name for voice in voices])
    same: NDArray[np.bool_] = names[:, None] == names[None, :]
    return np.where(same, 1.0, overlap)


def answers_from_statements(question: str, statements: Mapping[int, Statement], kept: Sequence[int]) -> ReadAnswers:
    """What the kept passages answer, for the contest of answers, from what was read already."""
    if len(kept) < 2 or read_question(question).kind == "polar":
        return ReadAnswers()
    answers = {i: statements[i].answer for i in kept if i in statements and statements[i].no_answer < ANSWERED}
    doubtful = frozenset(i for i in answers if not statements[i].no_answer <= DOUBT)
    note = f"the reader compared the answers of the first {MAX_READ_PASSAGES} of {len(kept)} kept passages"
    return ReadAnswers(answers, doubtful, (note,) * (len(kept) > MAX_READ_PASSAGES))
