"""How much poison: each paper means something else by it, so every definition is turned into the fields of a scenario.

==================  ==================================================================================================
`poisonedrag:5`     texts per question, retrieved into the top 5
`grada:1`           texts per question among 10 candidates, at most half of them
`trustrag:0.4`      share of k = 5, planted before retrieval
`ragdefender:2x5`   poison by gold and benign passages, x these per question: 5 for NQ, 2 for HotpotQA and MS MARCO
`radar:1+3/10`      places from 1 that poison takes, by k (50 unless said)
==================  ==================================================================================================
"""

from __future__ import annotations

from typing import Any

from unpoison.errors import OptionError, clip
from unpoison.utils.checks import at_least, within

__all__ = ["poison_rate"]

PASSAGES = 5
"""k of PoisonedRAG and TrustRAG, and RAGDefender's clean passages on Natural Questions."""

CANDIDATES = 10
"""GRADA retrieves so many."""

RADAR_PASSAGES = 50
"""Passages of a question in RADAR's tables, where the amount names no other number."""


def poison_rate(text: str) -> dict[str, Any]:
    """A paper's own measure of poison as the fields poisons, k, policy and positions of a scenario.

    Raises:
        OptionError: Another form, or a number out of its range.
    """
    paper, _, amount = text.partition(":")
    try:
        match paper:
            case "poisonedrag":
                return _poison_settings(int(amount), PASSAGES, "retrieve")
            case "grada":
                within("texts of GRADA", int(amount), 0, CANDIDATES / 2)
                return _poison_settings(int(amount), CANDIDATES, "retrieve")
            case "trustrag":
                return _poison_settings(_whole(within("share", float(amount), 0, 1), PASSAGES), PASSAGES, "retrieve")
            case "ragdefender":
                ratio, _, clean = amount.partition("x")
                k = int(clean or PASSAGES)
                return _poison_settings(_whole(float(ratio), k), k, "pool")
            case "radar":
                numbers, _, passages = amount.partition("/")
                k, positions = int(passages or RADAR_PASSAGES), tuple(map(int, numbers.split("+")))
                for position in positions:
                    within("position", position, 1, k)
                return {**_poison_settings(len(positions), k, "replace-at"), "positions": positions}
    except OptionError:
        raise
    except (ValueError, OverflowError):
        pass
    raise OptionError(
        f"no poison rate {clip(text)}; write poisonedrag:5, grada:1, trustrag:0.4, ragdefender:2x5 or radar:1+3/10"
    )


def _poison_settings(poisons: int, k: int, policy: str) -> dict[str, Any]:
    return {"poisons": at_least("poisons", poisons, 0), "k": at_least("k", k, 1), "policy": policy}


def _whole(ratio: float, passages: int) -> int:
    """The poisons that a ratio of so many passages comes to.

    Raises:
        OptionError: No whole number.
    """
    poisons = round(ratio * passages, 9)
    if poisons != int(poisons):
        raise OptionError(
            f"{ratio:g} of {passages} passages is {poisons:g} poisons; choose a number that gives whole poisons, such "
            f"as {1 / passages:g}"
        )
    return int(poisons)
