"""What stands behind a plus sign: `poisonedrag+hide:kind=bold` hides what `poisonedrag` crafts.

A wrapper is an attack that crafts with the attack inside it and then changes how the poison appears to a reader, one
text at a time, so wrappers compose from left to right in any number.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from unpoison.bench.attacks.base import Attack, PoisonText, Target
from unpoison.errors import OptionError, clip
from unpoison.models.requests import Flow

__all__ = ["Wrapper"]


class Wrapper(Attack):
    """Change the poison of another attack, and record how in `meta["how"]`.

    What a wrapped attack needs, sees, asks and wants is what the inner one does, and the wrapper's own needs on top. A
    text that stays as it was says so (`reached`, `reason`).

    Args:
        inner: The attack that crafts.
        seed: For what the wrapper draws.
        chosen: The wrapper's options as they are told in `how`.

    Raises:
        OptionError: `inner` is no attack.
    """

    requires: tuple[str, ...] = ()

    def __init__(self, inner: Attack, *, seed: int = 0, **chosen: object) -> None:
        if not isinstance(inner, Attack):
            raise OptionError(f"inner must be an attack such as PoisonedRag(), got {clip(inner)}")
        super().__init__(seed=seed, limits=inner.limits)
        options = ",".join(f"{key}={value}" for key, value in chosen.items())
        self.how = f"{self.name}:{options}" if options else self.name
        self.inner = inner
        self.models = inner.models
        self.drawn_as = f"{inner.drawn_as or inner.name}+{self.name}"
        self.name = f"{inner.name}+{self.name}"
        self.requires = tuple(dict.fromkeys((*inner.requires, *self.requires)))
        self.uses_gold = self.uses_gold or inner.uses_gold
        self.uses_context = self.uses_context or inner.uses_context
        self.passage_format = inner.passage_format
        self.wording = inner.wording
        self.attack = getattr(inner, "attack", None)  # whose published texts `published` asks the target for

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        poisons = yield from self.inner.crafting(target, count)
        return [self._wrap_poison(target, i, poison) for i, poison in enumerate(poisons)]

    def target_answers(self, target: Target) -> tuple[str, ...]:
        return self.inner.target_answers(target)

    def user_question(self, question: str) -> str:
        return self.inner.user_question(question)

    @abstractmethod
    def change(self, text: str, target: Target, position: int) -> str:
        """The poisoned text number `position`, changed."""

    def change_poison(self, poison: PoisonText, target: Target, position: int) -> PoisonText:
        """The poison with its text changed, or with its title changed once that is where the poison stands."""
        if poison.title is None:
            return replace(poison, text=self.change(poison.text, target, position))
        return replace(poison, title=self.change(poison.title, target, position))

    def host(self, target: Target, position: int) -> str:
        """A clean passage of those retrieved for the question, another one for each position while they last."""
        order = self.rng(target, "hosts").permutation(len(target.context))
        return target.context[int(order[position % len(order)])]

    def _wrap_poison(self, target: Target, position: int, poison: PoisonText) -> PoisonText:
        wrapped = self.change_poison(poison, target, position)
        same = (wrapped.text, wrapped.title) == (poison.text, poison.title)
        reason = poison.meta["reason"] or (f"{self.how} found nothing to change" if same else "")
        how = [*poison.meta.get("how", ()), self.how]
        return replace(
            wrapped,
            id=f"{poison.id}+{self.how.partition(':')[0]}",
            attack=self.name,
            meta={**poison.meta, "reached": not reason, "reason": reason, "how": how},
        )
