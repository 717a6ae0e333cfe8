"""What Guard asks of a language model, and the votes that its answers stand.

**Comparison.** A false name in a true passage, or a single fluent lie, looks like any other passage. RADAR's reading
shows it: each passage is read alone, and the minimum cut over the answers separates those that contradict the most
consistent ones. Before the generator's answer from all kept passages is given, it has to stand a vote: if other
passages agree on another answer, theirs is given.

**Guarantee.** A check that compares passages can be turned against honest ones: planted texts that resemble an honest
passage make it suspicious, and it goes. Then m planted passages change more than m, and the proof of whatever answers
from the rest is void. So with `alone=True` nothing is compared: `hidden`, `prompt_injection` and `gibberish` look at
one passage anyway, and `crafted` looks at the passage and the question (`guard.crafted`). What a check cuts is cut by
the same text.

**Theorem.** A method whose answer stands whatever happens to any m of the passages that it is given (taken away, put
in, replaced) has the same guarantee behind this screening. **Proof.** The verdict on a passage is a function f of that
passage. So what is kept of two sets that differ in m passages is what f keeps of their common passages, in the same
order, and at most m others in each: two sets that differ in at most m passages. The method stands that. (Notes and
the order of what is kept never enter a verdict; input that is refused gives no answer.)

With `answer="guaranteed"`, `Vote` answers from what is kept. A generator that writes is then asked to word the winning
answer from its form (`text.forms`), in which nobody's wording is left, and not from any passage: the text is a
function of the question and of the form, and stays the same with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.ranking import best_first
from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.isolation import statements
from unpoison.defenses.radar import Radar
from unpoison.defenses.vote import Vote
from unpoison.models.loading import can_write
from unpoison.models.prompts import informative, synthesis_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate, judge
from unpoison.sources.sources import Sources

__all__ = ["Opinion", "ambiguous", "answer_by_vote", "compare_answers", "majority_passage"]

Matrix = NDArray[np.float64]

DOUBTFUL = 0.2
"""A passage with at least this probability, and still kept, is ambiguous."""

CLAIM = 0.5
"""A sentence with at least this share of the question's words tries to answer it."""

AGREED = 0.5
"""Answers that entail each other with at least this probability are the same answer."""

COPY = 0.8
"""Passages that share this much of their words are copies, and have one voice together."""

MIN_VOICES = 2
"""Minimum number of passages behind an answer that can outvote another."""

LEAD = 1
"""By how many voices more an answer must be given to be given instead of the generator's."""

MAJORITY = 2
"""By how many passages more an answer must be given to be held against one that contradicts it."""


class Opinion(NamedTuple):
    """The result of the comparison of answers.

    Attributes:
        conflict: For each passage the mean contradiction with the trusted answers, shape (k,); 0 for the trusted.
        rival: The trusted passage that it contradicts most, -1 for none, shape (k,).
        agreement: How much the answers of two passages entail each other, shape (k, k); 0 where one has none.
        answers: What each passage answers, "" for nothing, shape (k,).
        read: How many passages were read, one model call each.
    """

    conflict: Matrix
    rival: NDArray[np.int64]
    agreement: Matrix
    answers: NDArray[np.str_]
    read: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What the comparison cost."""
        return (f"wording was ambiguous: {self.read} passages were read, one model call each",)


def ambiguous(coverage: Matrix, probability: Matrix) -> bool:
    """Whether the checks are inconclusive: a doubtful passage is kept, or several passages try to answer.

    Args:
        coverage: Of the kept passages, the share of the question's words in one sentence, shape (k,).
        probability: Of the same, shape (k,).
    """
    return bool((probability >= DOUBTFUL).any() or (coverage >= CLAIM).sum() > 1)


def compare_answers(radar: Radar, query: Query, passages: tuple[Passage, ...], kept: NDArray[np.intp]) -> Flow[Opinion]:
    """Read the kept passages and find those whose answers contradict the rest, by the minimum cut.

    A passage that does not answer, or that merely differs, is not held against its author: only contradiction counts,
    and only of an answer that clearly more passages give.
    """
    reading = yield from radar.read(query, tuple(passages[i] for i in kept))
    screening = yield from radar.select(reading)
    k = len(passages)
    conflict, rival, agreement = np.zeros(k), np.full(k, -1), np.zeros((k, k))
    agreement[np.ix_(kept, kept)] = screening.evidence["agreement"]
    voices = (screening.evidence["agreement"] >= AGREED).sum(axis=1)
    speaking = set(reading.speaking.tolist())
    for i in speaking & set(screening.dropped_indices):
        trusted = np.array([j for j in sorted(screening.kept_indices) if voices[j] >= voices[i] + MAJORITY], dtype=int)
        if len(trusted):
            against = screening.evidence["conflict"][i, trusted]
            conflict[kept[i]], rival[kept[i]] = against.mean(), kept[trusted[against.argmax()]]
    answers = [""] * k
    for i in speaking:
        answers[kept[i]] = reading.answers[i]
    return Opinion(conflict, rival, agreement, np.array(answers), len(kept))


def majority_passage(question: str, answer: str, screening: Screening) -> Flow[int | None]:
    """The kept passage whose answer has more voices behind it than the generator's own, or None.

    A passage's voice counts as much as it is innocent, and copies share one. The generator's answer has the voices of
    the best supported answer that says the same.

    Args:
        question: The question.
        answer: What the generator answers from all kept passages.
        screening: Guard's, with the `answers` of an `Opinion` in its evidence.
    """
    evidence = screening.evidence
    answering = [i for i in screening.kept_indices if evidence["answers"][i]]
    if len(answering) < MIN_VOICES:
        return None
    (final, *candidates), statement_of = statements(question, [answer, *evidence["answers"][answering].tolist()])
    pairs = [(final, candidate) for candidate in candidates] + [(candidate, final) for candidate in candidates]
    judged = yield from judge(pairs, "vote")
    entailed = np.concatenate([[1.0], judged[:, 0].reshape(2, len(candidates)).max(axis=0)])
    same = entailed[statement_of[1:]] >= AGREED

    agree = (evidence["agreement"][np.ix_(answering, answering)] >= AGREED) | np.eye(len(answering), dtype=bool)
    copies = (agree & (evidence["overlap"][np.ix_(answering, answering)] >= COPY)).sum(axis=1) + 1
    voices = agree @ (1 / copies)
    support = agree @ ((1 - evidence["probability"][answering]) / copies)
    best = int(best_first(support)[0])
    enough = voices[best] >= max(MIN_VOICES, voices[same].max(initial=0.0) + LEAD)
    return answering[best] if enough and support[best] > support[same].max(initial=0.0) else None


def answer_by_vote(
    query: Query, screening: Screening, generator: Generator | None, sources: Sources | None = None
) -> Flow[Answer]:
    """The vote of passages or sources over what was kept, in the generator's words where it has any."""
    read = tuple(screening.passages[i] for i in screening.kept_indices)
    vote = Vote(generator, sources=sources)
    poll = yield from vote.take_poll(query, read)
    answer = vote.answer_from_poll(_merge_screenings(screening, vote.screening_from_poll(query, read, poll)), poll)
    winner = poll.result.winner
    if winner is None or generator is None or not can_write(generator):
        return answer
    (reply,) = yield from generate([synthesis_prompt(query.reading, [winner])], "wording")
    if reply.finish == "refusal" or not informative(reply.text):
        return answer
    return replace(answer, text=reply.text, details={**answer.details, "winner": answer.text})


def _merge_screenings(screening: Screening, decided: Screening) -> Screening:
    """One screening of both steps: kept is what the vote keeps of what the checks kept."""
    read = screening.kept_indices
    rank = {read[i]: rank for rank, i in enumerate(decided.kept_indices)}
    reasons = {i: verdict.reason for i, verdict in zip(read, decided.verdicts, strict=True)}
    verdicts = tuple(
        replace(verdict, kept=i in rank, rank=rank.get(i), reason=reasons.get(i, verdict.reason))
        for i, verdict in enumerate(screening.verdicts)
    )
    notes = (*screening.evidence.notes, *decided.evidence.notes)
    return replace(screening, verdicts=verdicts, evidence=Evidence(screening.evidence.arrays, notes))
