"""The answer that claims come to: the leading one, both sides of a dispute, or what the kept passages say together."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from unpoison.core.claims import disagreement
from unpoison.defenses.claims import Findings
from unpoison.defenses.preference import sort_by_preference
from unpoison.models.prompts import answer_prompt, informative
from unpoison.models.requests import Flow, generate
from unpoison.sources import Sources
from unpoison.types import Answer, Query, Screening

__all__ = ["answer_from_claims"]

PROOF = (
    "grouped, weighted plurality: the answers of one form that sources that count give weigh more than all else that "
    "these sources say, whatever {m} of them say instead (kernels.owned_sources)"
)


def answer_from_claims(
    query: Query,
    screening: Screening,
    findings: Findings,
    plain: Flow[Answer],
    on_dispute: Literal["show", "majority", "abstain"],
    sources: Sources | None,
) -> Flow[Answer]:
    """Answer from the passages behind the leading claim, and say whether the sources agree.

    Args:
        query: The question.
        screening: Which passages are kept.
        findings: What they claim.
        plain: The flow of the answer from all kept passages, for what no passage says by itself.
        on_dispute: What to say where sources contradict each other.
        sources: Who is known.
    """
    if findings.status == "none":
        answer = yield from plain
        return replace(answer, status="none")
    plain.close()
    sides = [findings.sides[n] for n in (0, *findings.rivals)]
    sides = sort_by_preference(sides, screening.passages, sources.policy.prefer if sources is not None else "")
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
    said = reply.finish != "refusal" and informative(reply.text)
    return replace(base, text=reply.text) if said else base
