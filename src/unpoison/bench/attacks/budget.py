"""What an attack costs, counted while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpoison.models.prompts import Prompt
from unpoison.models.requests import Flow, encode, generate
from unpoison.types import Reply

__all__ = ["Budget", "Meter"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What one poison text cost.

    Attributes:
        llm_calls: Prompts sent to a language model, verification and victim included.
        encoder_passes: Texts encoded.
        gradient_steps: Backward passes through an encoder.
        defense_calls: Screenings that the attack asked of the defense.
    """

    llm_calls: int = 0
    encoder_passes: int = 0
    gradient_steps: int = 0
    defense_calls: int = 0

    def to_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


class Meter:
    """Counts what a flow asks for, so that every text can say what it cost."""

    def __init__(self) -> None:
        self.llm_calls = self.encoder_passes = self.gradient_steps = self.defense_calls = 0

    def generate(self, prompts: Sequence[Prompt], purpose: str) -> Flow[list[Reply]]:
        """`replies = yield from meter.generate(prompts, purpose)`."""
        self.llm_calls += len(prompts)
        return (yield from generate(prompts, purpose))

    def encode(self, texts: Sequence[str], purpose: str = "attack") -> Flow[NDArray[np.float32]]:
        """`vectors = yield from meter.encode(texts)`."""
        self.encoder_passes += len(texts)
        return (yield from encode(texts, purpose))

    def budget(self) -> Budget:
        """The counts so far."""
        return Budget(self.llm_calls, self.encoder_passes, self.gradient_steps, self.defense_calls)
