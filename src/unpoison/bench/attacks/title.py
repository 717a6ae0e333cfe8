"""Poison in the title of a clean passage: the text itself is true, and every word of it is somebody else's."""

from __future__ import annotations

from dataclasses import replace

from unpoison.bench.attacks.base import Attack, PoisonText, Target
from unpoison.bench.attacks.wrapper import Wrapper

__all__ = ["Title"]


class Title(Wrapper):
    """Move the poison into the title of a clean passage; what wraps this one changes the title.

    A defense that compares texts sees a clean passage; a prompt that shows title and text shows the poison first.

    Args:
        inner: The attack that crafts.
        seed: Chooses the passage.

    Raises:
        InputError: From `craft`, when no clean passage is known for the target.
    """

    name = "title"
    summary = "the poison in the title of a clean passage"
    requires = ("context",)
    uses_context = True

    def __init__(self, inner: Attack, *, seed: int = 0) -> None:
        super().__init__(inner, seed=seed)

    def change(self, text: str, target: Target, position: int) -> str:
        """The clean passage that takes the text's place."""
        return self.host(target, position)

    def change_poison(self, poison: PoisonText, target: Target, position: int) -> PoisonText:
        title = poison.text if poison.title is None else poison.title
        return replace(poison, text=self.change(poison.text, target, position), title=" ".join(title.split()))
