"""Passages that give orders to the model: found at the door, and put back into the screening as dropped.

The defense behind the door never sees them, so they can neither mislead it nor reach a prompt of its.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import shown
from unpoison.kernels.orders import LONGEST_QUOTE, THRESHOLD, order
from unpoison.types import Evidence, Passage, Screening, Verdict

__all__ = ["Orders", "OrdersPolicy", "orders_in", "with_orders"]

OrdersPolicy = Literal["drop", "keep"]

ANSWERING = "answering"
"""The positions of the passages that answered; where it is given, all flat arrays go by these passages alone."""

_NAMED = re.compile(r"\bpassage (\d{1,4}(?:, \d{1,4})*)\b")


class Orders(NamedTuple):
    """What the passages order.

    Attributes:
        probability: That a passage gives an order, by its worst stretch, in [0, 1], shape (k,).
        quotes: That stretch.
        read: The positions of the passages that give none, rising.
    """

    probability: NDArray[np.float64]
    quotes: tuple[str, ...]
    read: tuple[int, ...]


def orders_in(passages: Sequence[Passage]) -> Orders:
    """Judge each passage by itself. Linear time in the length of the texts."""
    found = [order(passage.reading) for passage in passages]
    probability = np.array([o.probability for o in found], float)
    return Orders(probability, tuple(o.quote for o in found), tuple(np.flatnonzero(probability <= THRESHOLD).tolist()))


def with_orders(found: Screening, orders: Orders, passages: tuple[Passage, ...]) -> Screening:
    """The screening of the passages that give no order as a screening of all.

    Positions in reasons, notes and arrays become those of all passages. Dropped orders get the lowest score, and in the
    arrays zero, the probability of poison 1 and the cluster -1.
    """
    read = orders.read
    if len(read) == len(passages):
        verdicts, evidence = found.verdicts, found.evidence
    else:
        lowest = min([0.0, *(v.score for v in found.verdicts)])
        moved = {
            read[v.index]: replace(v, index=read[v.index], reason=_renumbered(v.reason, read)) for v in found.verdicts
        }
        verdicts = tuple(moved.get(i) or _dropped(i, lowest, orders.quotes[i]) for i in range(len(passages)))
        evidence = replace(
            found.evidence,
            arrays=_spread_all(found.evidence, read, len(passages)),
            notes=tuple(_renumbered(note, read) for note in found.evidence.notes),
        )
        note = f"not read, for giving orders to the model: {len(passages) - len(read)} of {len(passages)} passages"
        evidence = replace(evidence, notes=(*evidence.notes, note))
    arrays = {**evidence.arrays, "orders": orders.probability}
    return replace(
        found, passages=passages, verdicts=verdicts, evidence=Evidence(arrays, evidence.notes, evidence.graph)
    )


def _dropped(i: int, score: float, quote: str) -> Verdict:
    return Verdict(i, False, score, None, f"gives an order to the model: {shown(quote, LONGEST_QUOTE)}")


def _renumbered(text: str, read: Sequence[int]) -> str:
    """A sentence whose "passage 2, 3" count only what was read."""

    def place(match: re.Match[str]) -> str:
        numbers = [int(number) for number in match[1].split(", ")]
        return "passage " + ", ".join(str(read[n]) if n < len(read) else str(n) for n in numbers)

    return _NAMED.sub(place, text)


def _spread_all(arrays: Mapping[str, NDArray[Any]], read: Sequence[int], k: int) -> dict[str, NDArray[Any]]:
    if ANSWERING not in arrays:
        return {name: _spread(name, array, read, k) for name, array in arrays.items()}
    spread = {name: _spread(name, array, read, k) if array.ndim > 1 else array for name, array in arrays.items()}
    return {**spread, ANSWERING: np.array(read, int)[arrays[ANSWERING]]}


def _spread(name: str, array: NDArray[Any], read: Sequence[int], k: int) -> NDArray[Any]:
    """An array by passage in the positions of all passages."""
    if not array.ndim or any(size != len(read) for size in array.shape):
        return array
    whole = np.zeros((k,) * array.ndim, array.dtype)
    if name == "speaker":  # its values are positions too
        whole, array = np.arange(k), np.array(read, int)[array]
    elif name == "clusters":
        whole -= 1
    elif name == "probability":
        whole += 1
    whole[np.ix_(*[list(read)] * array.ndim)] = array
    return whole
