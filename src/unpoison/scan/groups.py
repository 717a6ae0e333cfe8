"""Documents that belong together: copies of one claim, or several answers behind the same question."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.neighbours import Positions

__all__ = ["Groups"]

COPY = 0.45
"""TF-IDF cosine from which two suspicious documents state one claim."""

MAX_DOCUMENTS = 1_000
"""Documents of one group; what would make it larger begins another."""


class Groups:
    """Sets that grow by joining; a group is named after its first member."""

    def __init__(self, count: int) -> None:
        self._parent = np.arange(count)
        self._size = np.ones(count, np.int64)

    def join(self, left: int, right: int) -> None:
        """Put two documents, and theirs, into one group, unless it grew too large."""
        first, second = sorted((self.find(left), self.find(right)))
        if first != second and self._size[first] + self._size[second] <= MAX_DOCUMENTS:
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
