"""One text again and again: many hands that say the same, or one hand under many names."""

from __future__ import annotations

from unpoison.bench.attacks.base import DirectAttack, PoisonText, Target
from unpoison.bench.attacks.claims import template_claim

__all__ = ["Copies"]


class Copies(DirectAttack):
    """Plant the first published text of the question, else a template, as often as texts are asked for.

    With `--owned each` every copy stands under a name of its own: what counts passages, or names, is outvoted.

    Args:
        prefix: Put the question in front.
        seed: For the template.
    """

    name = "copies"
    summary = "one text many times over; with --owned each under many domains"
    wording = "data"

    def __init__(self, *, prefix: bool = False, seed: int = 0) -> None:
        super().__init__(seed=seed, prefix=prefix)

    def write(self, target: Target, count: int) -> list[PoisonText]:
        source = "published" if target.texts else "template"
        text = target.texts[0] if target.texts else template_claim(self, target, 0)
        return [self.poison(target, i, text, source=source) for i in range(count)]
