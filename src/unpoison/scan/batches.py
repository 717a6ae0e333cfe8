"""Documents that came together, from one hand or in one hour, and agree with each other more than with the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.documents import Document
from unpoison.scan.neighbours import Positions

__all__ = ["Batch", "sudden_batches"]

MIN_DOCUMENTS = 3
"""Documents of a batch."""

MAX_SHARE = 0.1
"""A larger share of the collection is how it was made, and no sudden batch."""

INSIDE = 0.34
"""Share of a document's near neighbours that are of its own batch: from this share the batch agrees with itself."""

EXPECTED = 5.0
"""So many times more neighbours inside than chance would have."""


class Batch(NamedTuple):
    """A batch that agrees only with itself.

    Attributes:
        name: What its documents have in common, in words.
        members: Numbers of documents, rising.
        inside: The mean share of their neighbours that are members.
    """

    name: str
    members: tuple[int, ...]
    inside: float


def sudden_batches(documents: Sequence[Document], owner: NDArray[np.int32], near: Positions) -> list[Batch]:
    """Batches by author, by source (its host, for addresses) and by the hour in which documents came.

    Args:
        documents: n documents.
        owner: The document of every unit, shape (units,).
        near: The units near every unit, -1 for none, shape (units, k).

    Complexity: O(n) for each of the three.
    """
    groups = dict[str, list[int]]()
    for number, document in enumerate(documents):
        for name in _origins(document):
            groups.setdefault(name, []).append(number)
    batches, most = list[Batch](), MAX_SHARE * len(documents)
    units = defaultdict[int, list[int]](list)
    wanted = {name: members for name, members in groups.items() if MIN_DOCUMENTS <= len(members) <= most}
    concerned = {number for members in wanted.values() for number in members}
    for unit, number in enumerate(owner.tolist()):
        if number in concerned:
            units[number].append(unit)
    for name, members in wanted.items():
        share = _inside(members, units, owner, near)
        if share >= INSIDE and share >= EXPECTED * len(members) / max(len(documents), 1):
            batches.append(Batch(name, tuple(members), share))
    return batches


def _origins(document: Document) -> list[str]:
    passage, names = document.passage, list[str]()
    if document.author:
        names.append(f"the author {document.author[:80]!r}")
    if passage.source and passage.source != document.id:
        host = passage.source.partition("://")[2].partition("/")[0] or passage.source
        names.append(f"the source {host[:80]!r}")
    if document.added_at is not None:
        names.append(f"the hour {document.added_at:%Y-%m-%d %H}:00 UTC")
    return names


def _inside(members: Sequence[int], units: dict[int, list[int]], owner: NDArray[np.int32], near: Positions) -> float:
    """The mean over the members of the share of their nearest three neighbours, not of their own, that are members."""
    inside, shares = set(members), list[float]()
    for number in members:
        neighbours = [int(owner[i]) for unit in units[number] for i in near[unit] if i >= 0 and owner[i] != number][:3]
        if neighbours:
            shares.append(sum(neighbour in inside for neighbour in neighbours) / len(neighbours))
    return float(np.mean(shares)) if shares else 0.0
