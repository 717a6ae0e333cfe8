"""The answer from claims: the leading one, or both sides of a dispute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, disagreement
from unpoison.defenses.guard.claims import Findings
from unpoison.models.prompts import answer_prompt, informative
from unpoison.models.requests import Flow, generate
from unpoison.sources import Sources
from unpoison.text.questions import wanted
from unpoison.text.values import agree, answers_kind

__all__ = ["answer_from_claims"]

PROOF = (
    "grouped, weighted plurality: the answers of one form that sources that count give weigh more than all else that "
    "these sources say, whatever {m} of them say instead (algorithms.votes)"
)

DATES = ("date", "published", "modified", "added_at")
"""Metadata with the date of a page, first match wins; texts such as 2026-11-01, compared as they are."""


def answer_from_claims(
    query: Query,
    screening: Screening,
    findings: Findings,
    plain: Flow[Answer],
    on_dispute: Literal["show", "majority", "abstain"],
    sources: Sources | None,
) -> Flow[Answer]:
    """Answer from the passages behind the leading claim, and report whether the sources agree.

    Args:
        query: The question.
        screening: The kept passages.
        findings: Their claims.
        plain: The flow of the answer from all kept passages, used if no single passage answers.
        on_dispute: The answer if sources contradict each other.
        sources: The policy and history of sources.
    """
    if findings.status == "none":
        answer = yield from plain
        return replace(answer, status="none")
    plain.close()
    sides = [findings.sides[n] for n in (0, *findings.rivals)]
    if set.intersection(*(set(side.origins) for side in sides)):  # one source contradicts itself
        sides = _newest_first(sides, screening.passages)
    lead = sides[0]
    details = {"claim": lead.text}
    guarantee = findings.guarantee if sources is not None and sources.informed else None
    base = Answer(
        lead.text,
        screening,
        details=details,
        guarantee=guarantee,
        guarantee_unit="sources" if guarantee is not None else "passages",
        proof=PROOF.format(m=guarantee) if guarantee else "",
        status=findings.status,
    )
    if findings.status == "disputed" and on_dispute != "majority":
        text = disagreement(sides, screening.passages)
        if on_dispute == "show":
            return replace(base, text=text)
        return replace(base, text="I don't know.", abstained=True, details={**details, "dispute": text})
    shown = dict(zip(screening.kept_indices, screening.texts, strict=True))
    texts = [shown[i] for i in lead.passages if i in shown]
    if not texts:
        return base
    (reply,) = yield from generate([answer_prompt(query.reading, texts)], "answer", screening)
    kind = wanted(query.reading).kind
    usable = reply.finish != "refusal" and informative(reply.text)
    usable = usable and (bool(answers_kind(reply.text, kind)) or not answers_kind(lead.text, kind))
    usable = usable and agree(reply.text, lead.text, kind, query.reading) is not False
    return replace(base, text=reply.text) if usable else base


def _newest_first(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Claim]:
    """The sides of a dispute by their newest passage; in their order if a side has no date."""
    dates = [max((_date(passages[i]) for i in claim.passages), default="") for claim in claims]
    return [claims[n] for n in sorted(range(len(claims)), key=dates.__getitem__)[::-1]] if all(dates) else list(claims)


def _date(passage: Passage) -> str:
    written = (passage.metadata.get(name) for name in DATES)
    return next((date.replace("/", "-") for date in written if isinstance(date, str) and date[:4].isdigit()), "")
