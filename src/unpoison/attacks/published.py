"""The poison texts that come with a data set, as they were published."""

from __future__ import annotations

from unpoison.attacks.base import DirectAttack, PoisonText, Target
from unpoison.attacks.claims import stating
from unpoison.errors import InputError, shown

__all__ = ["Published"]


UNTARGETED = ("tan", "garag")
"""Attacks whose published texts mislead without stating the wrong answer; none misses a goal by not stating it."""


class Published(DirectAttack):
    """Plant the first `count` published texts of the target.

    Args:
        attack: Only the texts of this attack, where a data set brings several; whoever makes the targets reads it.
        prefix: Put the question in front; published files hold the texts without it.
        seed: Kept in the ids only; nothing is drawn.

    Raises:
        InputError: From `craft`, when the target has fewer texts than asked for.
    """

    name = "published"
    summary = "the poison texts that come with the data set"
    wording = "published"
    requires = ("texts",)

    def __init__(self, attack: str | None = None, *, prefix: bool = False, seed: int = 0) -> None:
        super().__init__(prefix=prefix, seed=seed)
        self.attack = attack

    def write(self, target: Target, count: int) -> list[PoisonText]:
        if count > len(target.texts):
            raise InputError(
                f"target {shown(target.id)} has {len(target.texts)} published texts and {count} were asked for; "
                "ask for fewer, or use an attack that writes its own"
            )
        wanted = () if self.attack in UNTARGETED else self.wanted(target)
        return [
            self.poison(target, i, text, reason=stating(text, wanted) if wanted else "", source="published")
            for i, text in enumerate(target.texts[:count])
        ]
