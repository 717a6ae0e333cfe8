"""The wrong answer in place of the right one, inside a clean passage that gives the right one.

The entity swap of Longpre et al., 2021 ("Entity-Based Knowledge Conflicts in Question Answering", Section 3), used as
an attack: every other word is true, so nothing but what is claimed tells the passage from the original.
"""

from __future__ import annotations

from unpoison.bench.attacks.base import DirectAttack, PoisonText, Target, contains_answer
from unpoison.bench.attacks.claims import claim_failure, template_claim
from unpoison.bench.attacks.tan import substitute_answers

__all__ = ["Swap"]


class Swap(DirectAttack):
    """Replace the right answer in clean passages, the gold ones first, another passage for each text.

    Where fewer passages give a right answer than texts are asked for, templates stand in and say so.

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

    def __init__(self, *, prefix: bool = False, seed: int = 0) -> None:
        super().__init__(seed=seed, prefix=prefix)

    def write(self, target: Target, count: int) -> list[PoisonText]:
        texts = dict.fromkeys((*target.gold, *target.context))
        giving = [text for text in texts if any(contains_answer(text, right) for right in target.correct)]
        swapped = [substitute_answers(text, target) for text in giving]
        swapped = [
            text
            for text in swapped
            if not claim_failure(text, [target.incorrect]) and claim_failure(text, target.correct)
        ]
        swapped = swapped[:count]
        missing = (
            f"{len(swapped)} clean passages give the right answer and {count} were asked for; a template stands in"
        )
        return [self.poison(target, i, text, source="passage") for i, text in enumerate(swapped)] + [
            self.poison(target, i, template_claim(self, target, i), reason=missing, source="template")
            for i in range(len(swapped), count)
        ]
