"""Units that are word for word another one, but for a name or number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.collection import Collection
from unpoison.text.near_duplicates import near_copies

__all__ = ["RivalCopy", "rivals"]

ALIKE = 0.6
"""TF-IDF cosine from which two units are compared word by word."""

MAX_RIVAL_SHARE = 0.02
"""Where this share of the units has such a rival, the collection is made by templates, and it says nothing."""


class RivalCopy(NamedTuple):
    """What a unit says, and what a near-copy says in its place.

    Attributes:
        ours, theirs: The words.
        document: The other document's number.
    """

    ours: str
    theirs: str
    document: int


def rivals(collection: Collection, wanted: NDArray[np.bool_]) -> dict[int, RivalCopy]:
    """The rival of each wanted unit that has one. O(n) time: each is compared with its nearest units alone."""
    rivals_of = dict[int, RivalCopy]()
    near, cosine, owner = collection.near, collection.cosine, collection.owner
    candidates = np.flatnonzero(wanted & (cosine.max(axis=1, initial=0.0) >= ALIKE)).tolist()
    for unit in candidates:
        neighbours = [
            neighbour for neighbour, alike in zip(near[unit].tolist(), cosine[unit].tolist()) if alike >= ALIKE
        ][:4]
        frames = near_copies([collection.units[i].body for i in (unit, *neighbours)])
        frame = next((frame for frame in frames if 0 in frame.fillings), None)
        if frame is None:
            continue
        at = next((i for i in sorted(frame.fillings) if i and frame.fillings[i] != frame.fillings[0]), None)
        if at is not None:
            rivals_of[unit] = RivalCopy(frame.fillings[0], frame.fillings[at], int(owner[neighbours[at - 1]]))
    return rivals_of if len(rivals_of) <= max(10, MAX_RIVAL_SHARE * len(collection.units)) else {}
