"""Guard that judges each passage by its own text alone, and answers by a vote: what a guarantee can stand on.

A check that compares passages can be turned against honest ones: planted texts that resemble an honest passage make it
suspicious, and it goes. Then m planted passages change more than m, and the proof of whatever answers from the rest is
void. So with `alone=True` nothing is compared: `hidden`, `prompt_injection` and `gibberish` look at one passage anyway,
and `crafted` looks at the passage and the question (`guard.crafted`). What a check cuts is cut by the same text.

**Theorem.** A method whose answer stands whatever happens to any m of the passages that it is given (taken away, put
in, replaced) has the same guarantee behind this screening. **Proof.** The verdict on a passage is a function f of that
passage. So what is kept of two sets that differ in m passages is what f keeps of their common passages, in the same
order, and at most m others in each: two sets that differ in at most m passages. The method stands that. (Notes and
the order of what is kept never enter a verdict; input that is refused gives no answer.)

With `answer="guaranteed"`, `Vote` answers from what is kept. A generator that writes is then asked to word the winning
answer from its form (`text.answer_forms`), in which nobody's wording is left, and not from any passage: the text is a
function of the question and of the form, and stays the same with it.
"""

from __future__ import annotations

from dataclasses import replace

from unpoison.defenses.vote import Vote
from unpoison.models.loading import can_write
from unpoison.models.prompts import informative, synthesis_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.sources.sources import Sources
from unpoison.types import Answer, Evidence, Query, Screening

__all__ = ["answer_by_vote"]


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
