"""Entity swap, after Longpre et al., "Entity-Based Knowledge Conflicts in Question Answering", 2021, Section 3."""

from __future__ import annotations

import re

from unpoison.bench.attacks.base import DirectAttack, PoisonText, Target, contains_answer
from unpoison.bench.attacks.claims import claim_failure, template_claim

__all__ = ["Swap", "substitute_answers"]


class Swap(DirectAttack):
    """Replace the right answer in clean passages, the gold ones first, another passage for each text.

    Every other word is true, so nothing but what is claimed tells the passage from the original. Where fewer passages
    give a right answer than texts are asked for, templates stand in and say so.

    Args:
        prefix: Put the question in front.
        seed: For the templates.
    """

    name = "swap"
    summary = "the right answer of a clean passage replaced by the wrong one"
    wording = "data"
    requires = ("incorrect", "correct")
    uses_gold = True
    uses_context = True

    def write(self, target: Target, count: int) -> list[PoisonText]:
        swapped = []
        for text in dict.fromkeys((*target.gold, *target.context)):
            new = substitute_answers(text, target)
            gives_answer = any(contains_answer(text, right) for right in target.correct)
            if gives_answer and not claim_failure(new, [target.incorrect]) and claim_failure(new, target.correct):
                swapped.append(new)
        poisons = [self.poison(target, i, text, source="passage") for i, text in enumerate(swapped[:count])]
        found = len(poisons)
        reason = f"{found} clean passages give the right answer and {count} were asked for; a template stands in"
        return poisons + [
            self.poison(target, i, template_claim(self, target, i), reason=reason, source="template")
            for i in range(found, count)
        ]


def substitute_answers(text: str, target: Target) -> str:
    """The text with every right answer replaced by the wrong one, longest alias first, case aside."""
    for answer in sorted(target.correct, key=len, reverse=True):
        if answer.strip():
            text = re.sub(rf"(?<!\w){re.escape(answer)}(?!\w)", lambda _: target.incorrect, text, flags=re.IGNORECASE)
    return text
