"""Documents read for a scan: their units, the questions made of them, who stands near whom, and who belongs together.

Together belong copies of one claim, and batches that came at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.documents import Document, Probe, Unit, documents_of, probe, units_of
from unpoison.scan.neighbours import (
    NEAREST,
    Positions,
    Terms,
    by_vectors,
    by_words,
    likeness,
    rarest,
    table,
    unit_length,
    weigh_stems,
)

__all__ = ["Batch", "Collection", "Groups", "collect_documents", "origins", "sudden_batches"]

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
        for name in _batches_of(document):
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


def origins(document: Document) -> tuple[str, ...]:
    """A document's author and its source (its host, for addresses), in words; as far as it says so."""
    passage, names = document.passage, list[str]()
    if document.author:
        names.append(f"the author {document.author[:80]!r}")
    if passage.source and passage.source != document.id:
        host = passage.source.partition("://")[2].partition("/")[0] or passage.source
        names.append(f"the source {host[:80]!r}")
    return tuple(names)


def _batches_of(document: Document) -> tuple[str, ...]:
    hour = () if document.added_at is None else (f"the hour {document.added_at:%Y-%m-%d %H}:00 UTC",)
    return (*origins(document), *hour)


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
