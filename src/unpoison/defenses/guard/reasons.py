"""Guard's verdicts in words: which check spoke against a passage, what it saw, and what became of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.core.reasons import Clause, Reason, quotable
from unpoison.defenses.guard.checks import MAX_QUOTE_CHARS, CheckScores, check_reason
from unpoison.defenses.guard.consensus import Opinion
from unpoison.defenses.guard.redaction import Redaction
from unpoison.defenses.injections import MIN_WORDS
from unpoison.text.analysis import analysis
from unpoison.types import Passage

__all__ = ["REMARKABLE", "reasons"]

FOREIGN = re.compile("[\u0250-\U0010ffff]")
"""Letters that are not Latin, and marks: `gibberish` and `crafted` read Latin letters."""

REMARKABLE = 0.2
"""Probability from which it is said what looks written for the question."""


def reasons(
    look: CheckScores,
    cut: Redaction,
    passages: Sequence[Passage],
    opinion: Opinion | None = None,
    probability: NDArray[np.float64] | None = None,
) -> list[Reason]:
    """Each verdict's reason.

    Args:
        look: What the checks say.
        cut: What was cut.
        passages: As the checks saw them.
        opinion: What the comparison of answers said.
        probability: Of the checks and this comparison together, shape (k,).
    """
    whole = [_of_checks(look, cut, passage, i) for i, passage in enumerate(passages)]
    if opinion is None or probability is None:
        return whole
    for i in np.flatnonzero((opinion.conflict > 0) & (cut.probability <= look.judged.threshold)).tolist():
        rival = {"passage": int(opinion.rival[i]), "conflict": float(opinion.conflict[i])}
        code = "contradicted" if probability[i] > look.judged.threshold else "contradicted.kept"
        whole[i] = Reason.of(code, clauses=[whole[i].clause], **rival)
    return whole


def _of_checks(look: CheckScores, cut: Redaction, passage: Passage, i: int) -> Reason:
    """What the checks come to."""
    probability, over = float(look.judged.probability[i]), look.judged.probability[i] > look.judged.threshold
    told = bool(passage.hidden) and "hidden" in look.by_check
    hides = [Reason.of("hidden", what=str(passage.hidden)).clause] if told else []
    if i in cut.cut:
        clauses = [check_reason(look.worst[i], passage).clause] if over else hides
        return cut.reason(i, [*clauses, *look.flagged.get(i, ())])
    if over and probability < REMARKABLE:
        return Reason.of("guard.threshold", probability=probability)
    if over:
        return _drop_reason(look, passage, i, hides)
    if cut.probability[i] > look.judged.threshold:
        return Reason.of("hidden", what=str(passage.hidden))
    if i in look.flagged:
        return Reason.of("guard.flagged", clauses=look.flagged[i])
    if hides:
        return Reason.of("hidden.read", what=str(passage.hidden))
    if look.worst[i] == "gibberish" and probability >= REMARKABLE:
        return Reason.of("gibberish.kept", **check_reason("gibberish", passage).parameters)
    if "crafted" in look.by_check and look.crafted.probability[i] >= REMARKABLE:
        return Reason.of("crafted.kept", probability=probability, clauses=_signs(look, passage, i))
    if not look.by_check:
        return Reason.of("guard.unchecked")
    if not passage.reading.isascii() and analysis(passage.reading).part(_mostly_foreign):
        return Reason.of("guard.unjudged", probability=probability)
    if sum(any(map(str.isalpha, word)) for word in passage.reading.split()) < MIN_WORDS:
        return Reason.of("guard.too_short", probability=probability)
    return Reason.of("guard.unremarkable", probability=probability)


def _mostly_foreign(text: str) -> bool:
    """Whether the checks can read less than half of its letters."""
    return 2 * sum(map(str.isalpha, FOREIGN.findall(text))) > sum(map(str.isalpha, text))


def _drop_reason(look: CheckScores, passage: Passage, i: int, hides: list[Clause]) -> Reason:
    """Of a passage that goes, by the check that is surest."""
    if look.worst[i] != "crafted":
        return check_reason(look.worst[i], passage)
    return Reason.of(
        "crafted", probability=float(look.crafted.probability[i]), clauses=[*_signs(look, passage, i), *hides]
    )


def _signs(look: CheckScores, passage: Passage, i: int) -> list[Clause]:
    """What looks written for the question about a passage: its worst stretch, and whether its company convicts it."""
    crafted, text = look.crafted, passage.reading
    clauses = []
    if crafted.probability[i] - crafted.alone[i] >= REMARKABLE:
        clauses.append(Reason.of("crafted.company").clause)
    worst = crafted.suspicious(i, 0.0)[:1]
    quotes = [quotable(text[start:end], MAX_QUOTE_CHARS) for start, end, _ in worst]
    return [*clauses, *(Reason.of("crafted.quote", quote=quote).clause for quote in quotes)]
