"""Guard that judges each passage by its own evidence alone, and answers by a vote: what a guarantee can stand on.

Evidence that compares passages can be turned against honest ones: planted texts that resemble an honest passage make
it suspicious, and it goes. Then m planted passages change more than m, and the proof of whatever answers from the rest
is void. So with `alone=True` nothing is compared: a passage is dropped if it holds a prompt injection, which the door
judges by its own text (`defenses.injections`), hides something from readers (`Passage.hidden`), or has a window that
is too suspicious by itself (`defenses.guard_windows`: a function of the question and the passage), and kept otherwise.

**Theorem.** A method whose answer stands whatever happens to any m of the passages that it is given (taken away, put
in, replaced) has the same guarantee behind this screening. **Proof.** The verdict on a passage is a function f of that
passage. So what is kept of two sets that differ in m passages is what f keeps of their common passages, in the same
order, and at most m others in each: two sets that differ in at most m passages. The method stands that. (Notes and
the order of what is kept never enter a verdict; input that is refused gives no answer.)

With `answer="guaranteed"`, `Vote` answers from what is kept. A generator that writes is then asked to word the winning
answer from its form (`kernels.forms`), in which nobody's wording is left, and not from any passage: the text is a
function of the question and of the form, and stays the same with it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unpoison.defenses.guard.model import GuardModel
from unpoison.defenses.guard.reasons import claim, verdict_of
from unpoison.defenses.guard.windows import WindowModel
from unpoison.defenses.vote import Vote
from unpoison.models.loading import can_write
from unpoison.models.protocols import Generator
from unpoison.prompts import informative, synthesis_prompt
from unpoison.reasons import Reason
from unpoison.requests import Flow, generate
from unpoison.sources.sources import Sources
from unpoison.types import Answer, Evidence, Passage, Query, Screening

__all__ = ["answered_alone", "screened_alone"]


def screened_alone(
    name: str,
    query: Query,
    passages: tuple[Passage, ...],
    threshold: float,
    scale: GuardModel,
    windows: WindowModel,
) -> Screening:
    """Drop the passages that hide something or claim something as poison does, each judged alone; keep the others.

    Args:
        name: Of the defense.
        query: The question, as admitted.
        passages: Those admitted.
        threshold: The probability above which a passage is dropped, in [0, 1].
        scale: The model on whose scale the probabilities are.
        windows: Judges the windows.
    """
    texts = [passage.reading for passage in passages]
    looked = windows.judge(query.reading, texts)
    worst = windows.quoted(scale, looked, texts, threshold)
    by_windows = 1 / (1 + np.exp(-windows.on_scale_of(scale, looked.passages)))
    probability = np.where([bool(passage.hidden) for passage in passages], 1.0, by_windows)
    kept = np.flatnonzero(probability <= threshold).tolist()
    reasons = [
        Reason.of("guard.hides", what=str(passage.hidden))
        if passage.hidden
        else verdict_of(value, [claim(worst[i])] if i in worst else [], kept=value <= threshold)
        for i, (passage, value) in enumerate(zip(passages, probability.tolist()))
    ]
    evidence = Evidence(
        {"probability": probability, "threshold": np.array(threshold)}, ("each passage was judged by itself",)
    )
    return Screening.decided(
        name, query, passages, kept=kept, scores=1 - probability, reasons=reasons, evidence=evidence
    )


def answered_alone(
    query: Query, screening: Screening, generator: Generator | None, sources: Sources | None = None
) -> Flow[Answer]:
    """The vote of passages or sources over what `screened_alone` kept, in the generator's words where it has any."""
    read = tuple(screening.passages[i] for i in screening.kept_indices)
    vote = Vote(generator, sources=sources)
    poll = yield from vote.polled(query, read)
    answer = vote.concluded(_joined(screening, vote.decided(query, read, poll)), poll)
    winner = poll.result.winner
    if winner is None or generator is None or not can_write(generator):
        return answer
    (reply,) = yield from generate([synthesis_prompt(query.reading, [winner])], "wording")
    if reply.finish == "refusal" or not informative(reply.text):
        return answer
    return replace(answer, text=reply.text, details={**answer.details, "winner": answer.text})


def _joined(screening: Screening, decided: Screening) -> Screening:
    """One screening of both steps: kept is what the vote keeps of what hides nothing."""
    read = screening.kept_indices
    rank = {read[i]: rank for rank, i in enumerate(decided.kept_indices)}
    reasons = {i: verdict.reason for i, verdict in zip(read, decided.verdicts, strict=True)}
    verdicts = tuple(
        replace(verdict, kept=i in rank, rank=rank.get(i), reason=reasons.get(i, verdict.reason))
        for i, verdict in enumerate(screening.verdicts)
    )
    notes = (*screening.evidence.notes, *decided.evidence.notes)
    return replace(screening, verdicts=verdicts, evidence=Evidence(screening.evidence.arrays, notes))
