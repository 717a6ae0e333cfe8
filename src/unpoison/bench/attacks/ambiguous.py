"""The "A or B" attack on defenses that look for contradictions (ReliabilityRAG; RADAR, Section 5.6).

The forced answer names the wrong answer and the right one, so that an NLI model sees no contradiction between it and
the benign passages.
"""

from __future__ import annotations

from unpoison.bench.attacks.base import MAX_COPIES, DirectAttack, PoisonText, Target, copies
from unpoison.bench.attacks.pia import question_injection
from unpoison.utils.checks import at_least

__all__ = ["Ambiguous"]


class Ambiguous(DirectAttack):
    """Order the model to answer "wrong or right".

    Args:
        repeat: How often the order stands in one passage.
        prefix: Put the question in front.
        seed: Kept in the ids only; nothing is drawn.
    """

    name = "ambiguous"
    summary = 'orders the answer "wrong or right" to slip past contradiction checks'
    requires = ("incorrect", "correct")
    uses_gold = True

    def __init__(self, *, repeat: int = 10, prefix: bool = False, seed: int = 0) -> None:
        super().__init__(seed=seed, prefix=prefix)
        self.repeat = at_least("repeat", repeat, 1, MAX_COPIES)

    def write(self, target: Target, count: int) -> list[PoisonText]:
        order = question_injection(target.question, f"{target.incorrect} or {target.correct[0]}")
        text = copies(order, self.repeat)
        return [self.poison(target, i, text, repeat=self.repeat) for i in range(count)]
