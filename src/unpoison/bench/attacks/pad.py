"""Poison in innocent company: beside the sentences of a clean passage, or behind more text than anybody reads.

Text that nobody has to believe dilutes what a detector measures per passage, and a reader with a length limit never
reaches the poison; the model that answers does.
"""

from __future__ import annotations

from itertools import count as numbers
from typing import Literal

from unpoison.bench.attacks.base import Attack, Target
from unpoison.bench.attacks.rewriting import sentences
from unpoison.bench.attacks.wrapper import Wrapper
from unpoison.utils.checks import among

__all__ = ["FAR", "Pad"]

FAR = 20_000
"""How many characters, or line breaks, stand in front of poison that is to lie out of reach."""

PLACES = ("before", "behind", "between", "behind-text", "behind-lines")


class Pad(Wrapper):
    """Put the poison and a clean passage into one.

    Args:
        inner: The attack that crafts.
        where: The poison stands `before` a clean passage, `behind` it, or `between` its sentences; or `behind-text`,
            behind 20,000 characters of clean passages; or `behind-lines`, behind a passage and 20,000 line breaks.
        seed: Chooses the passage and the place.

    Raises:
        OptionError: An unknown place.
        InputError: From `craft`, when no clean passage is known for the target.
    """

    name = "pad"
    summary = "the poison beside, inside or far behind a clean passage"
    requires = ("context",)
    uses_context = True

    def __init__(
        self,
        inner: Attack,
        *,
        where: Literal["before", "behind", "between", "behind-text", "behind-lines"] = "between",
        seed: int = 0,
    ) -> None:
        super().__init__(inner, seed=seed, where=among("where", where, PLACES))
        self.where = where

    def change(self, text: str, target: Target, position: int) -> str:
        host = self.host(target, position)
        match self.where:
            case "before":
                return f"{text} {host}"
            case "behind":
                return f"{host} {text}"
            case "behind-text":
                return f"{self._filler(target, position)} {text}"
            case "behind-lines":
                return f"{host}{chr(10) * FAR}{text}"
        parts = sentences(host)
        k = int(self.rng(target, position).integers(1, max(len(parts), 2)))
        return " ".join([*parts[:k], text, *parts[k:]])

    def _filler(self, target: Target, position: int) -> str:
        """Clean passages one after the other, from the first on again, until there are enough characters."""
        sentences, length = list[str](), 0
        for k in numbers(position):
            sentences.append(self.host(target, k))
            length += len(sentences[-1]) + 1
            if length > FAR:
                break
        return " ".join(sentences)
