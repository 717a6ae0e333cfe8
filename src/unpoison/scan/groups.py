"""Documents that belong together: copies of one claim, batches that came at once, near-copies that differ in a name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.collection import Collection
from unpoison.scan.documents import Document
from unpoison.scan.neighbours import Positions
from unpoison.text.near_duplicates import near_copies

__all__ = ["Batch", "Groups", "RivalCopy", "rivals", "sudden_batches"]

COPY = 0.45
"""TF-IDF cosine from which two suspicious documents state one claim."""

MAX_GROUP = 1_000
"""Documents of one group; what would make it larger begins another."""


class Groups:
    """Sets that grow by joining; a group is named after its first member."""

    def __init__(self, count: int) -> None:
        self._parent = np.arange(count)
        self._size = np.ones(count, np.int64)

    def join(self, left: int, right: int) -> None:
        """Put two documents, and theirs, into one group, unless it grew too large."""
        first, second = sorted((self.find(left), self.find(right)))
        if first != second and self._size[first] + self._size[second] <= MAX_GROUP:
            self._parent[second] = first
            self._size[first] += self._size[second]

    def find(self, number: int) -> int:
        """The first member of a document's group."""
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = int(self._parent[number])
        return number

    def names(self) -> dict[int, str]:
        """The name of the group of each document that has company: "g1", "g2", ... in the order of first members."""
        names, named = dict[int, str](), dict[int, str]()
        for number in range(len(self._parent)):
            root = self.find(number)
            if self._size[root] > 1:
                named[number] = names.setdefault(root, f"g{len(names) + 1}")
        return named

    def join_copies(
        self, suspicious: Iterable[int], owner: NDArray[np.int32], near: Positions, cosine: NDArray[np.float32]
    ) -> None:
        """Join the documents of suspicious units that are near-copies of each other."""
        chosen = sorted(suspicious)
        inside = set(chosen)
        for unit in chosen:
            for neighbour, alike in zip(near[unit].tolist(), cosine[unit].tolist()):
                if neighbour in inside and alike >= COPY and owner[neighbour] != owner[unit]:
                    self.join(int(owner[unit]), int(owner[neighbour]))


MIN_BATCH = 3
"""Documents of a batch."""

MAX_BATCH_SHARE = 0.1
"""A larger share of the collection is how it was made, and no sudden batch."""

MIN_INSIDE = 0.34
"""Share of a document's near neighbours that are of its own batch: from this share the batch agrees with itself."""

MIN_RATIO = 5.0
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
    batches, most = list[Batch](), MAX_BATCH_SHARE * len(documents)
    units = defaultdict[int, list[int]](list)
    wanted = {name: members for name, members in groups.items() if MIN_BATCH <= len(members) <= most}
    concerned = {number for members in wanted.values() for number in members}
    for unit, number in enumerate(owner.tolist()):
        if number in concerned:
            units[number].append(unit)
    for name, members in wanted.items():
        share = _share_inside(members, units, owner, near)
        if share >= MIN_INSIDE and share >= MIN_RATIO * len(members) / max(len(documents), 1):
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


def _share_inside(
    members: Sequence[int], units: dict[int, list[int]], owner: NDArray[np.int32], near: Positions
) -> float:
    """The mean over the members of the share of their nearest three neighbours, not of their own, that are members."""
    inside, shares = set(members), list[float]()
    for number in members:
        neighbours = [int(owner[i]) for unit in units[number] for i in near[unit] if i >= 0 and owner[i] != number][:3]
        if neighbours:
            shares.append(sum(neighbour in inside for neighbour in neighbours) / len(neighbours))
    return float(np.mean(shares)) if shares else 0.0


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
