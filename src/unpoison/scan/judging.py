"""From evidence to suspicion: what each kind of sign says by itself, and the most of it.

The weights of the first kind are fitted by `benchmarks train_scan`; the base takes planted documents to be rare, so
that on a clean collection fewer than one in two hundred are flagged at 0.5.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.signs import COLUMNS
from unpoison.scan.units import Unit
from unpoison.text.canonical import Hidden

__all__ = ["CLAIM", "WEIGHED", "HidingShares", "claims", "concealment", "weigh"]

Matrix = NDArray[np.float64]

CLAIM = {
    "own": 0.63, "others": 0.0, "mates": 0.90, "echo": 6.0, "style": 0.63, "common": -2.0, "base": -1.66,
}  # fmt: skip
"""Weights of what the defense said by the unit's own question and by those of others, of its copies times how alike
they are, of a question in front that is answered, of how much the whole of it is built as invented claims are, and of
what the upper quarter of the collection gets by the questions of others beyond `INNOCENT`: where all is written by one
template, suspicion means less."""

WEIGHED = ("own", "others", "mates", "echo", "style", "common")
"""The evidence that has a weight, in this order."""

INNOCENT = -4.0
"""Log-odds that the questions of others give to the upper quarter of a usual collection, or less."""

MIN_UNITS = 30
"""Innocent units that are taken to have been seen before: a few planted ones do not say what is usual."""

MAX_HIDING_SHARE = 0.04
"""Where this share of the documents hides something of a kind, that kind says nothing."""

MIN_DOCUMENTS = 100
"""Of fewer documents than this the share counts as if there were so many."""

STRENGTH = {"invisible": 6.0, "look_alikes": 6.0, "styled": 10.0, "marks": 12.0, "tags": 8.0, "entities": 20.0}
"""How many of a kind there must be to be taken seriously."""

MESSAGE = 0.85
"""A message where no reader looks."""

UNSEEN = 0.97
"""Text that the page's own markup keeps from the eye."""


def claims(rows: Matrix, reference: NDArray[np.bool_]) -> Matrix:
    """Log-odds that each unit was written to plant a claim, shape (n,).

    Args:
        rows: Of `signs`, for n units.
        reference: The units that say what is usual in the collection, shape (n,).
    """
    return np.asarray(weigh(rows, reference) @ np.array([CLAIM[name] for name in WEIGHED]) + CLAIM["base"])


def weigh(rows: Matrix, reference: NDArray[np.bool_]) -> Matrix:
    """What the weights of `CLAIM` are multiplied with, in the order of `WEIGHED`, shape (n, 6); see `claims`."""
    signs = dict(zip(COLUMNS, rows.T))
    usual = np.sort(np.concatenate([signs["others"][reference], np.full(MIN_UNITS, INNOCENT)]))
    upper = float(usual[3 * (len(usual) - 1) // 4])
    columns = {
        **signs,
        "mates": signs["mates"] * np.clip(signs["third"], 0, 0.5) * 2,
        "common": np.full(len(rows), max(0.0, upper - INNOCENT)),
    }
    return np.column_stack([columns[name] for name in WEIGHED])


@dataclass(frozen=True, slots=True)
class HidingShares:
    """How much each kind of hiding says in this collection.

    Attributes:
        shares: The share of the documents that hide something of a kind.
    """

    shares: dict[str, float]

    @classmethod
    def among(cls, units: Sequence[Unit], unseen: Collection[int], reference: NDArray[np.bool_]) -> HidingShares:
        """Count the kinds.

        Args:
            units: All units.
            unseen: Numbers of the documents that hold text which their markup hides.
            reference: The documents that say what is usual, shape (documents,).
        """
        kinds = (*STRENGTH, "messages")
        hiding = {kind: {unit.document for unit in units if getattr(unit.hidden, kind)} for kind in kinds}
        hiding["unseen"] = set(unseen)
        size = max(int(reference.sum()), MIN_DOCUMENTS)
        return cls({kind: max(sum(reference[i] for i in those) - 1, 0) / size for kind, those in hiding.items()})

    def weight(self, kind: str) -> float:
        """1 where no other document hides anything of this kind, 0 where the share `MAX_HIDING_SHARE` of them do."""
        return max(0.0, 1 - self.shares[kind] / MAX_HIDING_SHARE)


def concealment(hidden: Hidden, unseen: int, shares: HidingShares) -> float:
    """The probability that what a unit hides was hidden on purpose, in [0, 1]."""
    probabilities = [UNSEEN * shares.weight("unseen")] if unseen else []
    if hidden.messages:
        probabilities.append(MESSAGE * shares.weight("messages"))
    for kind, strength in STRENGTH.items():
        count = getattr(hidden, kind)
        if count:
            probabilities.append((1 - float(np.exp(-count / strength))) * shares.weight(kind))
    return max(probabilities, default=0.0)
