"""How much hidden text raises the suspicion of a document: less so if many documents of the collection have some.

Text that markup hides is no evidence by itself: honest pages hide banners, menus and hints. It is judged as a text of
its own, and what orders or claims there is more suspicious than in the open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.documents import Unit
from unpoison.scan.parts import COVERT, FOLDED, MIN_WORDS

__all__ = ["STATED", "HidingShares", "concealment", "states_something"]

MAX_HIDING_SHARE = 0.04
"""The share of documents with a kind of hidden text from which that kind is no evidence."""

MIN_DOCUMENTS = 100
"""Minimum denominator of the share."""

HIDING_STRENGTH = {"invisible": 6.0, "look_alikes": 6.0, "styled": 10.0, "marks": 12.0, "tags": 8.0, "entities": 20.0}
"""Scale of the number of hidden characters, by kind."""

UNSEEN = 0.4
"""Suspicion of hidden text that neither orders nor claims, and of a message in a comment or an attribute."""

UNSEEN_ODDS = 3.0
"""Log-odds by which an order is likelier in hidden text, and a claim in text that nobody can unfold."""

STATED = 0.7
"""Probability of a claim in text that nobody can see."""


@dataclass(frozen=True, slots=True)
class HidingShares:
    """How common each kind of hidden text is in the collection.

    Attributes:
        shares: The share of documents with a kind of hidden text.
    """

    shares: dict[str, float]

    @classmethod
    def among(cls, units: Sequence[Unit], reference: NDArray[np.bool_]) -> HidingShares:
        """Count the documents by kind.

        Args:
            units: All units.
            reference: The documents that define what is usual, shape (documents,).
        """
        kinds = (*HIDING_STRENGTH, "messages")
        hiding = {kind: {unit.document for unit in units if getattr(unit.hidden, kind)} for kind in kinds}
        hiding |= {kind: {unit.document for unit in units if unit.concealed == kind} for kind in (FOLDED, COVERT)}
        size = max(int(reference.sum()), MIN_DOCUMENTS)
        return cls({kind: max(sum(reference[i] for i in those) - 1, 0) / size for kind, those in hiding.items()})

    def weight(self, kind: str) -> float:
        """From 1 if no other document has this kind, to 0 if the share reaches `MAX_HIDING_SHARE`."""
        return max(0.0, 1 - self.shares[kind] / MAX_HIDING_SHARE)


def concealment(unit: Unit, order: float, claim: float, shares: HidingShares) -> float:
    """The probability that something was hidden on purpose, in [0, 1].

    Args:
        unit: The unit.
        order: The probability that its text is an order to a model.
        claim: The probability that it is a planted claim.
        shares: How common each kind is in the collection.
    """
    if unit.concealed:
        weight = shares.weight(unit.concealed)
        covert = UNSEEN_ODDS * weight if unit.concealed == COVERT else 0.0
        return max(UNSEEN * weight, _raised(order, UNSEEN_ODDS), _raised(claim, covert))
    probabilities = [UNSEEN * shares.weight("messages")] if unit.hidden.messages else []
    for kind, strength in HIDING_STRENGTH.items():
        count = getattr(unit.hidden, kind)
        if count:
            probabilities.append((1 - float(np.exp(-count / strength))) * shares.weight(kind))
    return max(probabilities, default=0.0)


def _raised(probability: float, odds: float) -> float:
    bounded = min(max(probability, 1e-6), 1 - 1e-6)
    return 1 / (1 + float(np.exp(-odds)) * (1 - bounded) / bounded)


_DETAIL = re.compile(r"\d[\d.,:]*|(?<=[\w,;:)] )[^\W\d_a-z]\w+")
"""A number, or a capitalised word that begins no sentence."""


def states_something(text: str, beside: str) -> bool:
    """Whether a line of a text that nobody can see has a name or a number that the visible text beside it lacks."""
    lines = [line for line in text.split("\n") if len(line.split()) > MIN_WORDS]
    for line in lines:  # the markup of a passage is gone, and its hidden text stands between the rest
        beside = beside.replace(line, "")
    return any(word.strip(".,:") not in beside for line in lines for word in _DETAIL.findall(line))
