"""Documents read for a scan: their units, the questions made of them, and who stands near whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.documents import Document, documents_of
from unpoison.scan.neighbours import (
    NEAREST,
    Positions,
    Terms,
    by_vectors,
    by_words,
    rarest,
    table,
    unit_length,
    weigh_stems,
)
from unpoison.scan.signs import likeness
from unpoison.scan.units import Probe, Unit, probe, units_of

__all__ = ["Collection", "collect_documents"]

KEYWORDS = 8
"""Words of a question that is put to the defense."""

BY_VECTOR = 5
"""Neighbours that the vectors name, where there are any; the rest are found by words."""


@dataclass(frozen=True)
class Collection:
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

    @cached_property
    def vectors(self) -> NDArray[np.float32] | None:
        """The documents' own vectors at length 1, None unless all have one of the same dimensions."""
        given = [document.passage.embedding for document in self.documents]
        sizes = {0 if vector is None else vector.size for vector in given}
        if len(sizes) != 1 or 0 in sizes:
            return None
        matrix = np.array(given, np.float32)
        length = np.linalg.norm(matrix, axis=1, keepdims=True)
        return np.asarray(matrix / np.where(length > 0, length, 1), np.float32)

    def question(self, unit: int) -> str:
        """The question made from a unit: its rarest words, or its probe where it has no words.

        A sentence of its own would make every unit look as if it repeated the question and answered it head-on.
        """
        words = rarest(self.units[unit].text, KEYWORDS, self.terms.codes, self.weights[1])
        return " ".join(words) or self.probes[unit].question

    @cached_property
    def near(self) -> Positions:
        """The units near each unit, of other documents, best first, -1 for none, shape (units, NEAREST)."""
        near = np.full((len(self.units), NEAREST), -1, np.int32)
        questions = [each.question for each in self.probes]
        for i, units in enumerate(
            by_words(questions, *self.weights, self.terms.codes, own=self.owner, owner=self.owner)
        ):
            near[i, : len(units)] = units
        return near if self.vectors is None else self._with_vectors(near, by_vectors(self.vectors))

    @cached_property
    def cosine(self) -> NDArray[np.float32]:
        """TF-IDF cosine of each unit to each neighbour."""
        return likeness(self.near, unit_length(self.terms.counts, self.weights[1]))

    def _with_vectors(self, by_word: Positions, by_vector: Positions) -> Positions:
        """The vectors' neighbours first, each by the first of its units."""
        first = np.searchsorted(self.owner, np.arange(len(self.documents))).astype(np.int32)
        named = np.where(by_vector >= 0, first[np.maximum(by_vector, 0)], -1)[self.owner][:, :BY_VECTOR]
        merged = np.full(by_word.shape, -1, np.int32)
        for i, (ours, theirs) in enumerate(zip(named.tolist(), by_word.tolist())):
            both = list(dict.fromkeys(unit for unit in (*ours, *theirs) if unit >= 0))[:NEAREST]
            merged[i, : len(both)] = both
        return merged


def collect_documents(values: Iterable[object]) -> Collection:
    """Read documents: O(n) time and memory for n words in all.

    Raises:
        InputError: A value that is no document.
    """
    documents = tuple(documents_of(values))
    units = tuple(unit for number, document in enumerate(documents) for unit in units_of(document, number))
    return Collection(
        documents,
        units,
        tuple(map(probe, units)),
        table(unit.text for unit in units),
        _notes(documents),
    )


def _notes(documents: Sequence[Document]) -> tuple[str, ...]:
    bare = sum(document.passage.id is not None and "it has no id" in " ".join(document.notes) for document in documents)
    empty = sum(not document.passage.text.strip() for document in documents)
    sizes = {0 if (v := d.passage.embedding) is None else v.size for d in documents}
    notes = list[str]()
    if len(documents) == 1:
        notes.append("there is one document, and nothing to compare it with: only what it says by itself was judged")
    if bare:
        notes.append(f"{bare:,} of {len(documents):,} documents have no id and are named by a hash of their text")
    if empty:
        notes.append(f"{empty:,} documents are empty")
    if len(sizes) > 1:
        notes.append("not all documents have a vector of the same size, so vectors are not used")
    return tuple(notes)
