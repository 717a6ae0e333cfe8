"""One question under one scenario: screened, answered where there is a generator, timed, and written down."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from unpoison.bench.evaluation.records import Record
from unpoison.bench.evaluation.staging import Staged
from unpoison.defenses.base import Defense
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import UnpoisonError
from unpoison.runtime.driver import run
from unpoison.types import Answer, Call, Screening, as_passages, as_query

__all__ = ["measure_question"]


def measure_question(staged: Staged, defense: Defense, plain: Vanilla | None, final: int | None = None) -> Record:
    """What a defense makes of one question.

    Args:
        staged: What it is shown.
        defense: Screens, and answers in its own way where it has one.
        plain: Answers from the kept passages for all others; an architecture other than plain for every defense. None
            measures the screening only.
        final: How many of the kept passages it reads.
    """
    context = staged.context
    blank = Record(
        example=staged.example,
        correct=staged.correct,
        wanted=staged.wanted,
        injected=context.injected,
        reached=staged.reached,
        poison=tuple(sorted(context.poison)),
        gold=tuple(sorted(context.gold)),
        foreign=tuple(sorted(context.foreign)),
        final=final,
    )
    if staged.error is not None:
        return replace(blank, stage="attack", error=staged.error)
    try:
        done = _run_defense(staged, defense, plain, final)
    except UnpoisonError as error:
        return replace(blank, stage="defense", error=str(error))
    except Exception as error:  # a defense may be somebody else's code; one bad question must not end a long run
        return replace(blank, stage="defense", error=f"{type(error).__name__}: {error}")
    answer, prompts = done.answer, [call for call in done.calls if call.kind == "generate"]
    return replace(
        blank,
        verdicts=done.screening.verdicts,
        notes=done.screening.evidence.notes,
        answer=None if answer is None else answer.text,
        abstained=None if answer is None else answer.abstained,
        status=None if answer is None else answer.status,
        guarantee=None if answer is None else answer.guarantee,
        screening_seconds=round(done.screening_seconds, 6),
        seconds=round(done.seconds, 6),
        calls=sum(call.items for call in prompts),
        prompt_tokens=_sum([call.prompt_tokens for call in prompts]),
        completion_tokens=_sum([call.completion_tokens for call in prompts]),
    )


@dataclass(frozen=True, slots=True)
class _Done:
    screening: Screening
    answer: Answer | None
    calls: tuple[Call, ...]
    screening_seconds: float
    seconds: float


def _run_defense(staged: Staged, defense: Defense, plain: Vanilla | None, final: int | None) -> _Done:
    query, passages = as_query(staged.context.query), as_passages(staged.context.passages)
    began = time.perf_counter()
    if plain is not None and type(plain) is Vanilla and defense.answers_itself:
        own = defense.answer(query, passages)
        whole = time.perf_counter() - began
        return _Done(own.screening, own, own.calls, whole, whole)
    screening, calls = run(defense.screen_flow(query, passages), defense.models, defense.limits)
    screened = time.perf_counter() - began
    if plain is None:
        return _Done(screening, None, calls, screened, screened)
    if passages and not screening.kept:
        answer = Answer("I don't know.", screening, abstained=True)
    else:
        answer = plain.answer(query, screening.read[:final])
    return _Done(screening, answer, (*calls, *answer.calls), screened, time.perf_counter() - began)


def _sum(counts: Sequence[int | None]) -> int | None:
    reported = [count for count in counts if count is not None]
    return sum(reported) if reported else None
