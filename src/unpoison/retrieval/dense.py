"""Exact search over a matrix of vectors in memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import best_first
from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import Collection, VectorRetriever, check_encoder, unit_rows, vectors_of
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.copies import CopyableLock

__all__ = ["DenseRetriever", "nearest"]

Matrix = NDArray[np.float32]

BLOCK_CELLS = 2**22
"""Numbers per block in double precision: 32 MB."""


class DenseRetriever(VectorRetriever):
    """Retrieves by cosine similarity of vectors; ties go to the passage added first.

    An encoder whose similarity is "dot" (Contriever, DPR) is ranked by the dot product, its vectors as it makes them.

    In memory and exact. Up to some 100,000 passages this is as fast as a vector database. Searching takes O(n d) time
    and, besides the vectors themselves (4 n d bytes), O(n) memory. The embeddings that come back have
    length 1, or with "dot" the encoder's.

    Args:
        encoder: The encoder of passages and queries, or its string, such as "minilm".
        passages: Strings, dicts, framework documents or `Passage`. What brings its embedding is not
            encoded.
        sources: Multiplies the score by the trust in the passage's source (`retrieval.base`).

    Raises:
        InputError: An unusable passage, a duplicate id, or embeddings of different dimensions.
        OptionError: The encoder's vectors are valid within one call only.
        ModelError: The encoder failed.
    """

    def __init__(self, encoder: Encoder | str, passages: Iterable[Any] = (), *, sources: SourcesOption = None) -> None:
        self.sources = Sources.of(sources)
        self.encoder = check_encoder(encoder, dot=True)
        self._dot = getattr(self.encoder, "similarity", "cosine") == "dot"
        self._state: tuple[Collection, Matrix] = Collection(), np.zeros((0, 0), np.float32)
        self._lock = CopyableLock()
        self.add(passages)

    def add(self, passages: Iterable[Any]) -> None:
        """Add passages, all or none. Each call copies the matrix, so add many at once.

        A passage without an id gets its position, from 0.

        Raises:
            InputError: An unusable passage, a duplicate id, or an embedding of another dimension.
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
            self._state = collection, matrix  # last, so that concurrent searches see consistent rows

    def remove(self, ids: Iterable[str]) -> int:
        """Remove passages; return their number. Unknown ids are ignored. Copies the matrix."""
        with self._lock:
            collection, matrix = self._state
            rest, positions = collection.without(ids)
            rows = np.delete(matrix, positions, axis=0)
            rows.setflags(write=False)
            self._state = rest, rows
            return len(positions)

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        collection, matrix = self._state
        if not len(matrix) or not count:
            return ()
        if vector.size != matrix.shape[1]:
            raise InputError(
                f"the query's embedding has {vector.size} dimensions and the index {matrix.shape[1]}; "
                f"encode the query with the encoder {clip(self.encoder.name)}"
            )
        if self._dot:
            positions, scores = nearest(matrix, vector, count, float(np.linalg.norm(matrix, axis=1).max()))
        else:
            positions, scores = nearest(matrix, unit_rows(vector[None])[0], count)
            scores = scores.clip(-1.0, 1.0)
        return tuple(
            replace(collection[i], score=score, embedding=matrix[i])
            for i, score in zip(positions.tolist(), scores.tolist())
        )

    def __len__(self) -> int:
        return len(self._state[1])

    def __repr__(self) -> str:
        return f"DenseRetriever({len(self):,} passages, encoder={self.encoder.name!r})"


def nearest(
    matrix: Matrix, vector: Vector, count: int, longest: float = 1.0
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows with the largest dot product with a vector, best first; ties go to the lower row.

    One pass in single precision finds all rows that can be among the best whatever the rounding; only these are
    compared in double precision. So the result is that of comparing all of them so.

    Args:
        matrix: Shape (n, d).
        vector: Shape (d,).
        count: Number of rows, at least 1.
        longest: An upper bound of the rows' lengths.

    Returns:
        Row numbers and products, each shape (min(count, n),). O(n d) time.
    """
    rough = matrix @ vector
    near = np.arange(rough.size)
    if count < rough.size:
        rounding = (vector.size + 4) * float(np.finfo(np.float32).eps)  # Higham, 2002, Section 3.1
        doubt = 2 * rounding * longest * float(np.linalg.norm(vector))
        near = np.flatnonzero(rough >= np.partition(rough, rough.size - count)[rough.size - count] - doubt)
    exact = np.empty(near.size)
    step = max(1, BLOCK_CELLS // vector.size)
    for start in range(0, near.size, step):
        exact[start : start + step] = matrix[near[start : start + step]].astype(np.float64) @ vector.astype(np.float64)
    best = best_first(exact, count)
    return near[best], exact[best]
