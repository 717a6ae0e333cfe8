"""How much poison: each paper means something else by it, so every definition is turned into the same three facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unpoison.errors import OptionError

__all__ = ["PoisonRate", "Policy", "grada_rate", "poisonedrag_rate", "radar_rate", "ragdefender_rate", "trustrag_rate"]

Policy = Literal["retrieve", "replace_at", "replace_last", "prepend", "middle", "pool"]


@dataclass(frozen=True, slots=True)
class PoisonRate:
    """How many poisons are planted for a question, and how they reach the defense.

    Attributes:
        injected: Poisons per question.
        k: Passages that reach the defense; with `pool`, passages that are kept after it.
        policy: How the poison gets there, a function of `unpoison.evaluation.injection`.
        positions: 0-based places, for `replace_at`.
    """

    injected: int
    k: int
    policy: Policy
    positions: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.injected < 0 or self.k < 1:
            raise OptionError(f"injected must be 0 or more and k at least 1, got {self.injected} and {self.k}")

    def to_dict(self) -> dict[str, Any]:
        return {"injected": self.injected, "k": self.k, "policy": self.policy, "positions": list(self.positions)}


def poisonedrag_rate(texts: int = 5, k: int = 5) -> PoisonRate:
    """PoisonedRAG: N texts per question, retrieved into the top k."""
    return PoisonRate(texts, k, "retrieve")


def grada_rate(texts: int = 1, candidates: int = 10) -> PoisonRate:
    """GRADA: N texts per question among M candidates, at most half of M.

    Raises:
        OptionError: More poison than half of the candidates.
    """
    if 2 * texts > candidates:
        raise OptionError(f"GRADA plants at most half of the candidates, got {texts} of {candidates}; raise candidates")
    return PoisonRate(texts, candidates, "retrieve")


def ragdefender_rate(ratio: float, base: int = 5, k: int | None = None) -> PoisonRate:
    """RAGDefender: poisons by gold and benign passages; 1x of base 5 is five poisons, half of the pool.

    Args:
        ratio: 1, 2, 4 or 6 in the paper.
        base: Gold and benign passages per question: 5 for NQ, 2 for HotpotQA and MS MARCO.
        k: Passages kept after filtering; `base` by default.

    Raises:
        OptionError: A ratio that gives no whole number of poisons.
    """
    injected = ratio * base
    if injected != int(injected):
        raise OptionError(
            f"ratio {ratio:g} of {base} passages is {injected:g} poisons; choose a ratio that gives a whole number"
        )
    return PoisonRate(int(injected), k or base, "pool")


def trustrag_rate(share: float, k: int = 5) -> PoisonRate:
    """TrustRAG: poisons by k, planted before retrieval: 0.2, 0.4, ..., 1.0 of k = 5 are 1 to 5 poisons.

    Raises:
        OptionError: A share outside [0, 1], or one that gives no whole number of poisons.
    """
    injected = round(share * k, 9)
    if not 0 <= share <= 1 or injected != int(injected):
        raise OptionError(
            f"share must lie in [0, 1] and give a whole number of {k} poisons, got {share:g}; try {1 / k:g}"
        )
    return PoisonRate(int(injected), k, "retrieve")


def radar_rate(positions: Sequence[int], k: int) -> PoisonRate:
    """RADAR: the 1-based positions that its tables name, such as 1, 25 or 50 of k = 50.

    Raises:
        OptionError: A position outside 1 to k, which the released code ignores silently.
    """
    for position in positions:
        if not 1 <= position <= k:
            raise OptionError(f"position {position} lies outside 1 to {k}; the tables count from 1")
    return PoisonRate(len(positions), k, "replace_at", tuple(position - 1 for position in positions))
