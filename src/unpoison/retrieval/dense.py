"""Exact search by cosine similarity over a matrix in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.ranking import best_first
from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import VectorRetriever, check_encoder, unit_rows, vectors_of
from unpoison.retrieval.collection import Collection
from unpoison.retrieval.index_file import read_index, write_index
from unpoison.sources.sources import Sources, SourcesOption

__all__ = ["DenseRetriever", "nearest"]

Matrix = NDArray[np.float32]

BLOCK_CELLS = 2**22
"""Numbers that are compared in double precision at once: 32 MB."""


class DenseRetriever(VectorRetriever):
    """The passages whose vectors have the highest cosine similarity to the query's, ties to the one added first.

    An encoder whose similarity is "dot" (Contriever, DPR) is ranked by the dot product, its vectors as it makes them.

    In memory and exact. Up to some 100,000 passages this is as fast as a vector database. Searching takes O(n d) time
    and, besides the vectors themselves (4 n d bytes), O(n) memory. The embeddings that come back have
    length 1, or with "dot" the encoder's.

    Args:
        encoder: Made, and makes, the vectors; or its string, such as "minilm".
        passages: Strings, dicts, framework documents or `Passage`, to begin with. What brings its embedding is not
            encoded.
        sources: With it the score is multiplied by the trust in a passage's source (`retrieval.trusted`).

    Raises:
        InputError: An unusable passage, an id that occurs twice, or embeddings of different dimensions.
        OptionError: The encoder's vectors hold for the texts of one call only, so they cannot be kept.
        ModelError: The encoder failed.
    """

    def __init__(self, encoder: Encoder | str, passages: Iterable[Any] = (), *, sources: SourcesOption = None) -> None:
        self.sources = Sources.of(sources)
        self.encoder = check_encoder(encoder, dot=True)
        self._dot = getattr(self.encoder, "similarity", "cosine") == "dot"
        self._state: tuple[Collection, Matrix] = Collection(), np.zeros((0, 0), np.float32)
        self._lock = Lock()
        self.add(passages)

    def add(self, passages: Iterable[Any]) -> None:
        """Add passages, all or none, many at once rather than one by one: each call copies the matrix.

        A passage without an id is named by its place, counted from 0.

        Raises:
            InputError: An unusable passage, an id that is taken, or an embedding of other dimensions.
            ModelError: The encoder failed.
        """
        with self._lock:
            collection, matrix = self._state
            new = collection.prepare(passages)
            if not new:
                return
            vectors = vectors_of(new, self.encoder, matrix.shape[1] if len(self) else None)
            rows = vectors if self._dot else unit_rows(vectors)
            matrix = np.concatenate([matrix, rows]) if len(self) else rows
            matrix.setflags(write=False)
            collection.extend(replace(passage, embedding=None) for passage in new)
            self._state = collection, matrix  # last: whoever searches meanwhile sees the passages of the rows

    def remove(self, ids: Iterable[str]) -> int:
        """Take passages out; how many there were. Ids that no passage has are passed over. Copies the matrix."""
        with self._lock:
            collection, matrix = self._state
            rest, positions = collection.without(ids)
            rows = np.delete(matrix, positions, axis=0)
            rows.setflags(write=False)
            self._state = rest, rows
            return len(positions)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to one file, an uncompressed `.npz` with the vectors and the passages as JSON Lines.

        An older file of that name is replaced in one step, so a killed process leaves the old one or the new one.
        What a framework's document held besides text, id, title and source is not saved.

        Raises:
            OSError: The file cannot be written.
        """
        with self._lock:
            matrix, passages = self._state[1], list(self._state[0])
        write_index(path, self.encoder.name, matrix, passages)

    @classmethod
    def load(cls, path: str | PathLike[str], encoder: Encoder | str, *, sources: SourcesOption = None) -> Self:
        """Read what `save` wrote.

        Args:
            path: The file. It is treated as hostile: nothing in it is executed.
            encoder: The one that it was made with.
            sources: As for a new one.

        Raises:
            InputError: The file is damaged, no such index, or was made with another encoder.
            OSError: The file cannot be read.
        """
        retriever = cls(encoder, sources=sources)
        name, matrix, passages = read_index(path, unit=not retriever._dot)
        if name != retriever.encoder.name:
            raise InputError(
                f"{clip(str(path), 200)} was made with the encoder {clip(name)} and cannot be searched with "
                f"{clip(retriever.encoder.name)}; give that encoder, or index the passages anew"
            )
        collection = Collection()
        collection.extend(collection.prepare(passages))
        retriever._state = collection, matrix
        return retriever

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        collection, matrix = self._state
        if not len(matrix) or not count:
            return ()
        if vector.size != matrix.shape[1]:
            raise InputError(
                f"the query's embedding has {vector.size} dimensions and the index {matrix.shape[1]}; "
                f"encode the query with the encoder {clip(self.encoder.name)}"
            )
        positions, scores = (largest if self._dot else nearest)(matrix, vector, count)
        return tuple(
            replace(collection[i], score=score, embedding=matrix[i])
            for i, score in zip(positions.tolist(), scores.tolist())
        )

    def __len__(self) -> int:
        return len(self._state[1])

    def __repr__(self) -> str:
        return f"DenseRetriever({len(self):,} passages, encoder={self.encoder.name!r})"


def nearest(matrix: Matrix, vector: Vector, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows with the highest cosine similarity to a vector, best first; ties go to the lower row.

    One pass in single precision finds all rows that can be among the best whatever the rounding; only these are
    compared in double precision. So the result is that of comparing all of them so.

    Args:
        matrix: Shape (n, d), rows of length 1 or 0.
        vector: Shape (d,), any length; not checked.
        count: How many, at least 1.

    Returns:
        Row numbers and similarities, each shape (min(count, n),).
    """
    target = unit_rows(vector[None])[0]
    rough = matrix @ target
    near = np.arange(rough.size)
    if count < rough.size:
        bound = np.partition(rough, rough.size - count)[rough.size - count]
        near = np.flatnonzero(rough >= bound - 2 * _rounding(vector.size))
    exact = np.empty(near.size)
    step = max(1, BLOCK_CELLS // vector.size)
    for start in range(0, near.size, step):
        rows = matrix[near[start : start + step]].astype(np.float64)
        exact[start : start + step] = np.einsum("ij,j->i", rows, target.astype(np.float64))
    best = best_first(exact)[:count]
    return near[best], np.clip(exact[best], -1.0, 1.0)


def largest(matrix: Matrix, vector: Vector, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows with the largest dot product with a vector, best first; ties go to the lower row.

    Args:
        matrix: Shape (n, d).
        vector: Shape (d,).
        count: How many, at least 1.

    Returns:
        Row numbers and products, each shape (min(count, n),). O(n d) time, in double precision, block by block.
    """
    products = np.empty(len(matrix))
    step = max(1, BLOCK_CELLS // vector.size)
    for start in range(0, len(matrix), step):
        products[start : start + step] = matrix[start : start + step].astype(np.float64) @ vector.astype(np.float64)
    best = best_first(products)[:count]
    return best, products[best]


def _rounding(dimensions: int) -> float:
    """How far a product of two unit vectors in single precision can be off (Higham, 2002, Section 3.1)."""
    return (dimensions + 4) * float(np.finfo(np.float32).eps)
