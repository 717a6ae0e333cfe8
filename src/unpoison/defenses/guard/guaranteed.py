"""`Guard(answer="guaranteed")`: independent checks, then a vote with a guarantee.

A check that compares passages can be turned against honest ones: planted texts that resemble an honest passage make it
suspicious, and it is dropped. Then m planted passages change more than m, and any guarantee of what answers from the
rest is void. So nothing is compared here: `hidden`, `prompt_injection` and `gibberish` look at one passage only, and
`crafted` looks at the passage and the question (`guard.crafted`). Redaction depends on the same text only.

**Theorem.** A method whose answer withstands any change of m of its passages (removed, added, replaced) has the same
guarantee behind this screening. **Proof.** The verdict on a passage is a function f of that passage. If two sets differ
in m passages, f keeps the same of their common passages, in the same order, and at most m others in each: the kept sets
differ in at most m passages. The method withstands that. (Notes and the order of the kept passages never enter a
verdict; rejected input gives no answer.)

`Vote` answers from the kept passages. A generator that writes then words the winning answer from its form
(`text.answer_forms`), which contains nobody's wording, and from no passage: the text is a function of the question and
of the form, and stays the same with it.
"""

from __future__ import annotations

from dataclasses import replace

from unpoison.core.answers import Answer
from unpoison.core.passages import Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.vote import Vote
from unpoison.models.loading import can_write
from unpoison.models.prompts import informative, synthesis_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.sources.sources import Sources

__all__ = ["answer_by_vote"]


def answer_by_vote(
    query: Query, screening: Screening, generator: Generator | None, sources: Sources | None = None
) -> Flow[Answer]:
    """The vote of the kept passages or their sources, worded by the generator if it writes."""
    read = tuple(screening.passages[i] for i in screening.kept_indices)
    vote = Vote(generator, sources=sources)
    poll = yield from vote.take_poll(query, read)
    answer = vote.answer_from_poll(_merge_screenings(screening, vote.screening_from_poll(query, read, poll)), poll)
    if poll.winner is None or generator is None or not can_write(generator):
        return answer
    (reply,) = yield from generate([synthesis_prompt(query.reading, [poll.winner])], "wording")
    if reply.finish == "refusal" or not informative(reply.text):
        return answer
    return replace(answer, text=reply.text, details={**answer.details, "winner": answer.text})


def _merge_screenings(screening: Screening, decided: Screening) -> Screening:
    """One screening of both steps: of the passages that the checks kept, those that the vote keeps."""
    read = screening.kept_indices
    rank = {read[i]: rank for rank, i in enumerate(decided.kept_indices)}
    reasons = {i: verdict.reason for i, verdict in zip(read, decided.verdicts, strict=True)}
    verdicts = tuple(
        replace(verdict, kept=i in rank, rank=rank.get(i), reason=reasons.get(i, verdict.reason))
        for i, verdict in enumerate(screening.verdicts)
    )
    notes = (*screening.evidence.notes, *decided.evidence.notes)
    return replace(screening, verdicts=verdicts, evidence=Evidence(screening.evidence.arrays, notes))
