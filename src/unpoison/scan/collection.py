"""The collection of a scan: documents, units, generated questions, neighbours and groups."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import clip
from unpoison.scan import neighbours
from unpoison.scan.documents import RENAMED, UNNAMED, Document, Probe, Unit, documents_of, probe, units_of
from unpoison.scan.neighbours import Positions
from unpoison.utils.files import Spilled
from unpoison.utils.plain_text import first_of

__all__ = ["Groups", "ScanCollection", "collect_documents"]

KEYWORDS = 8
"""Words of a generated question."""


@dataclass(frozen=True)
class ScanCollection:
    """The documents of a scan; large parts are stored in files.

    Attributes:
        documents: The documents.
        ids: Their names.
        units: Their units, in order.
        owner: The document of each unit.
        probes: The beginning of each unit as a question, used to look up its neighbours.
        terms: Stem counts of the units.
        notes: Warnings from reading.
    """

    documents: Sequence[Document]
    ids: Sequence[str]
    units: Sequence[Unit]
    owner: NDArray[np.int32]
    probes: Sequence[Probe]
    terms: neighbours.Terms
    notes: tuple[str, ...] = ()

    def question(self, unit: int) -> str:
        """The question generated from a unit: its rarest words, or its probe if it has no words.

        With one of its own sentences, every unit would seem to repeat and answer the question.
        """
        words = neighbours.rarest(self.units[unit].text, KEYWORDS, self.terms)
        return " ".join(words) or self.probes[unit].question

    def has_question(self, unit: int) -> bool:
        """Whether a question can be generated."""
        return bool(self.terms.rows[unit].size or self.probes[unit].question)

    @cached_property
    def near(self) -> Positions:
        """The nearest units of other documents, best first, -1 for none, shape (units, NEAREST)."""
        questions = (each.question for each in self.probes)
        return neighbours.by_words(questions, self.terms, own=self.owner, owner=self.owner)

    @cached_property
    def cosine(self) -> NDArray[np.float32]:
        """TF-IDF cosine of each unit to each neighbour."""
        return neighbours.likeness(self.near, self.terms)


def collect_documents(values: Iterable[object]) -> ScanCollection:
    """Read documents: O(n) time for n words in all, O(n) memory for n documents.

    Raises:
        InputError: A value that is not a document.
    """
    documents, units, ids, owner = Spilled[Document](), Spilled[Unit](), list[str](), array("i")
    bare, empty, renamed = 0, 0, list[str]()
    for number, document in enumerate(documents_of(values)):
        documents.append(document)
        ids.append(document.id)
        bare += UNNAMED in document.notes
        empty += not document.passage.text.strip()
        renamed += [document.id] if RENAMED in " ".join(document.notes) else []
        for unit in units_of(document, number):
            units.append(unit)
            owner.append(number)
    terms = neighbours.table(unit.text for unit in units)
    notes = _notes(len(documents), bare, empty, renamed)
    return ScanCollection(documents, ids, units, np.array(owner, np.int32), Spilled(map(probe, units)), terms, notes)


def _notes(documents: int, bare: int, empty: int, renamed: Sequence[str]) -> tuple[str, ...]:
    notes = list[str]()
    if documents == 1:
        notes.append("there is only one document: it was checked without a comparison")
    if bare:
        notes.append(f"{bare:,} of {documents:,} documents have no id and are named by a hash of their text")
    if empty:
        notes.append(f"{empty:,} {'document is' if empty == 1 else 'documents are'} empty")
    if renamed:
        named = first_of(list(map(clip, renamed)), 1)
        notes.append(f"some ids are duplicates; quarantine them by their names here: {named}")
    return tuple(notes)


COPY = 0.45
"""Minimum TF-IDF cosine of two suspicious documents that are grouped as near-copies."""


class Groups:
    """Groups of related documents, as connected components; "g1", "g2", ... in the order of their first documents."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pairs = list[tuple[int, int]]()

    def join(self, left: int, right: int) -> None:
        """Relate two documents."""
        self._pairs.append((left, right))

    def names(self) -> dict[int, str]:
        """The group of each document in a group of two or more."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        left, right = np.array(self._pairs, np.int32).reshape(-1, 2).T
        related = coo_array((np.ones(len(left)), (left, right)), shape=(self._count, self._count))
        _, component = connected_components(related, directed=False)
        names = dict[int, str]()
        grouped = np.flatnonzero(np.bincount(component)[component] > 1).tolist() if self._count else []
        return {i: names.setdefault(int(component[i]), f"g{len(names) + 1}") for i in grouped}

    def join_copies(
        self, suspicious: Iterable[int], owner: NDArray[np.int32], near: Positions, cosine: NDArray[np.float32]
    ) -> None:
        """Group the documents of suspicious units that are near-copies of each other."""
        chosen = sorted(suspicious)
        inside = set(chosen)
        for unit in chosen:
            for neighbour, alike in zip(near[unit].tolist(), cosine[unit].tolist()):
                if neighbour in inside and alike >= COPY and owner[neighbour] != owner[unit]:
                    self.join(int(owner[unit]), int(owner[neighbour]))
