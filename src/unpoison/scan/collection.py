"""Documents read for a scan: units, the questions made of them, their neighbours and groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import clip
from unpoison.scan.documents import Document, Probe, Unit, documents_of, probe, units_of
from unpoison.scan.neighbours import (
    NEAREST,
    Positions,
    Terms,
    by_words,
    likeness,
    rarest,
    table,
    unit_length,
    weigh_stems,
)

__all__ = ["Groups", "ScanCollection", "collect_documents"]

KEYWORDS = 8
"""Words of a question that is put to the defense."""


@dataclass(frozen=True)
class ScanCollection:
    """n documents, read.

    Attributes:
        documents: The documents.
        units: Their units, in order.
        probes: How each unit begins, by which its neighbours are looked up.
        terms: How often each unit holds each stem.
        notes: On what was found while reading.
    """

    documents: tuple[Document, ...]
    units: tuple[Unit, ...]
    probes: tuple[Probe, ...]
    terms: Terms
    notes: tuple[str, ...] = ()

    @cached_property
    def owner(self) -> NDArray[np.int32]:
        """The document of every unit."""
        return np.array([unit.document for unit in self.units], np.int32)

    @cached_property
    def weights(self) -> tuple[Any, NDArray[np.float32]]:
        """BM25's weights, and how rare every stem is."""
        return weigh_stems(self.terms.counts)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """What each unit says."""
        return tuple(unit.text for unit in self.units)

    def question(self, unit: int) -> str:
        """The question made from a unit: its rarest words, or its probe where it has no words.

        A sentence of its own would make every unit look as if it repeated the question and answered it head-on.
        """
        words = rarest(self.units[unit].text, KEYWORDS, self.terms.codes, self.weights[1])
        return " ".join(words) or self.probes[unit].question

    def has_question(self, unit: int) -> bool:
        """Whether there is anything to ask."""
        return bool(self.terms.counts.indptr[unit + 1] > self.terms.counts.indptr[unit] or self.probes[unit].question)

    @cached_property
    def near(self) -> Positions:
        """The units near each unit, of other documents, best first, -1 for none, shape (units, NEAREST)."""
        near = np.full((len(self.units), NEAREST), -1, np.int32)
        questions = [each.question for each in self.probes]
        for i, units in enumerate(
            by_words(questions, *self.weights, self.terms.codes, own=self.owner, owner=self.owner)
        ):
            near[i, : len(units)] = units
        return near

    @cached_property
    def cosine(self) -> NDArray[np.float32]:
        """TF-IDF cosine of each unit to each neighbour."""
        return likeness(self.near, unit_length(self.terms.counts, self.weights[1]))


def collect_documents(values: Iterable[object]) -> ScanCollection:
    """Read documents: O(n) time and memory for n words in all.

    Raises:
        InputError: A value that is no document.
    """
    documents = tuple(documents_of(values))
    units = tuple(unit for number, document in enumerate(documents) for unit in units_of(document, number))
    return ScanCollection(
        documents,
        units,
        tuple(map(probe, units)),
        table(unit.text for unit in units),
        _notes(documents),
    )


def _notes(documents: Sequence[Document]) -> tuple[str, ...]:
    bare = sum(document.passage.id is not None and "it has no id" in " ".join(document.notes) for document in documents)
    empty = sum(not document.passage.text.strip() for document in documents)
    notes = list[str]()
    if len(documents) == 1:
        notes.append("there is one document, and nothing to compare it with: only what it says by itself was judged")
    if bare:
        notes.append(f"{bare:,} of {len(documents):,} documents have no id and are named by a hash of their text")
    if empty:
        notes.append(f"{empty:,} documents are empty")
    renamed = [document.id for document in documents if "another document has its id" in " ".join(document.notes)]
    if renamed:
        named = f"{clip(renamed[0])}{f' and {len(renamed) - 1:,} more' if len(renamed) > 1 else ''}"
        notes.append(f"ids stand twice; quarantine them by the names that they have here: {named}")
    return tuple(notes)


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
