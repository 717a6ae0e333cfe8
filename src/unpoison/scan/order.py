"""In which order units are asked, so that what is known of a text is used again before it is forgotten.

What checks know of a text alone is kept for a few thousand texts (`text.analysis`). In the documents' own order the ten
texts of a question are strangers to those of the last one, and of a large collection each is read anew ten times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["REMEMBERED", "order_by_company"]

REMEMBERED = 2_000
"""Texts that are taken to be known still, the last ones that were read."""

MAX_HOLDERS = 200
"""Units that have one neighbour in common: of more, the first are looked at."""


def order_by_company(near: NDArray[np.int32], asking: Sequence[int], remembered: int = REMEMBERED) -> list[int]:
    """The units, each time the one most of whose neighbours were read of late; of equals the one found last.

    Args:
        near: The neighbours of n units, -1 for none, shape (n, k).
        asking: The units to order.
        remembered: How many texts are known at a time.

    Returns:
        The same units; the same order for the same input.

    Complexity: O(n k^2) time, O(n k) memory.
    """
    wanted = np.zeros(len(near), bool)
    wanted[list(asking)] = True
    holder, held = _pairs(near, wanted)
    bounds = np.searchsorted(held, np.arange(len(near) + 1))
    level = dict.fromkeys(asking, 0)  # how many of its texts are known, of each unit that is left
    levels: list[dict[int, None]] = [{} for _ in range(near.shape[1] + 2)]
    levels[0] = dict.fromkeys(reversed(asking))  # a dictionary gives back the last one first
    known, order = dict[int, None](), list[int]()

    def shift(text: int, step: int) -> None:
        first = bounds[text]
        for unit in holder[first : min(first + MAX_HOLDERS, bounds[text + 1])].tolist():
            at = level.get(unit)
            if at is not None:
                del levels[at][unit]
                level[unit] = at + step
                levels[at + step][unit] = None

    while level:
        unit, _ = next(some for some in reversed(levels) if some).popitem()
        del level[unit]
        order.append(unit)
        for text in (unit, *(i for i in near[unit].tolist() if i >= 0)):
            if text in known:
                del known[text]
            else:
                shift(text, 1)
            known[text] = None
            if len(known) > remembered:
                oldest = next(iter(known))
                del known[oldest]
                shift(oldest, -1)
    return order


def _pairs(near: NDArray[np.int32], wanted: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Each wanted unit with each of its texts, itself among them, by the text and then by the unit."""
    units = np.flatnonzero(wanted).astype(np.int32)
    holder = np.repeat(units, near.shape[1] + 1)
    held = np.column_stack([units, near[units]]).ravel().astype(np.int32)
    holder, held = holder[held >= 0], held[held >= 0]
    order = np.lexsort((holder, held))
    return holder[order], held[order]
