"""A FAISS index: searched as a retriever, and read from a file and written to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import Collection, VectorRetriever, check_encoder, unit_rows, vectors_of
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.extras import require

__all__ = ["FaissFile", "FaissRetriever"]


class FaissRetriever(VectorRetriever):
    """The passages that a FAISS index finds, with the vectors that it holds.

    They are the nearest by the index's metric; L2 distances come back negated, as scores. `retrieve` raises an
    InputError if the index cannot give its vectors back, or holds vectors that no passage was given for.

    Args:
        encoder: Made, and makes, the vectors; or its string, such as "minilm".
        passages: Without `index`, what a new `IndexFlatIP` is made of, encoded where they bring no embedding, all
            scaled to length 1. With `index`, the texts of its vectors 0, 1, 2, ... in this order; nothing is encoded.
        index: Your index, of vectors of this encoder, by inner product or by L2 distance. Where it compresses, the
            vectors that come back are approximations.
        sources: With it the score is multiplied by the trust in a passage's source (`retrieval.base`).

    Raises:
        InputError: An unusable passage, an id that occurs twice, or not one passage for each vector.
        OptionError: The encoder's vectors hold for the texts of one call only.
        MissingExtraError: faiss is not installed.
        ModelError: The encoder failed.
    """

    def __init__(
        self,
        encoder: Encoder | str,
        passages: Iterable[Any] = (),
        *,
        index: Any = None,
        sources: SourcesOption = None,
    ) -> None:
        self.sources = Sources.of(sources)
        self._faiss = require("faiss", "searching with FAISS")
        self.encoder = check_encoder(encoder)
        self.index = index
        self._scaled = index is None
        self._collection = Collection()
        self._lock = Lock()
        if index is None:
            self.add(passages)
            return
        self._collection.extend(self._collection.prepare(passages))
        if len(self) != index.ntotal:
            raise InputError(
                f"the index holds {index.ntotal:,} vectors and {len(self):,} passages were given; "
                "give the text of every vector, in the order of the vectors"
            )

    def add(self, passages: Iterable[Any]) -> None:
        """Add passages, all or none. One without an id is named by its place, counted from 0.

        Raises:
            InputError: An unusable passage, an id that is taken, or an embedding of other dimensions.
            ModelError: The encoder failed.
        """
        with self._lock:
            new = self._collection.prepare(passages)
            if not new:
                return
            if self.index is not None and not self.index.is_trained:
                raise InputError(
                    f"the index ({type(self.index).__name__}) is not trained; call its train() before add()"
                )
            vectors = vectors_of(new, self.encoder, None if self.index is None else self.index.d)
            if self.index is None:
                self.index = self._faiss.IndexFlatIP(vectors.shape[1])
            self.index.add(unit_rows(vectors) if self._scaled else vectors)
            self._collection.extend(replace(passage, embedding=None) for passage in new)

    def remove(self, ids: Iterable[str]) -> int:
        """Take passages out; how many there were. Ids that no passage has are passed over. Copies the index.

        Raises:
            InputError: The index is no flat one: others number their vectors in a way of their own, or cannot remove.
        """
        with self._lock:
            rest, positions = self._collection.without(ids)
            if positions:
                if not isinstance(self.index, self._faiss.IndexFlat):
                    raise InputError(
                        f"the index ({type(self.index).__name__}) cannot take vectors out one by one; make it anew "
                        "without these passages"
                    )
                self.index.remove_ids(np.array(positions, np.int64))
                self._collection = rest
            return len(positions)

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        with self._lock:
            count = min(count, len(self))
            if not count:
                return ()
            if vector.size != self.index.d:
                raise InputError(
                    f"the query's embedding has {vector.size} dimensions and the index {self.index.d}; "
                    f"encode the query with the encoder {clip(self.encoder.name)}"
                )
            query_vector = unit_rows(vector[None]) if self._scaled else vector[None]
            try:
                values, positions, vectors = self.index.search_and_reconstruct(query_vector, count)
            except RuntimeError as error:
                raise InputError(
                    f"the index cannot give its vectors back ({type(self.index).__name__}); call its "
                    "make_direct_map(), or use an index that keeps them"
                ) from error
        closer = -1.0 if self.index.metric_type == self._faiss.METRIC_L2 else 1.0
        scores = closer * values[0].astype(np.float64) + 0.0  # -0.0 becomes 0.0
        return tuple(
            replace(self._passage(position), score=score, embedding=embedding)
            for position, score, embedding in zip(positions[0].tolist(), scores.tolist(), vectors[0], strict=True)
            if position >= 0  # -1 stands for nothing more found
        )

    def _passage(self, number: int) -> Passage:
        if number >= len(self):
            raise InputError(
                f"the index found its vector {number}, and there are {len(self):,} passages; add to the index through "
                "add(), and number its vectors 0, 1, 2, ..."
            )
        return self._collection[number]

    def __len__(self) -> int:
        return len(self._collection)

    def __repr__(self) -> str:
        return f"FaissRetriever({len(self):,} passages, encoder={self.encoder.name!r})"


class FaissFile:
    """An index in a file. One that is written is a flat one: others cannot lose vectors.

    Args:
        path: Where it is, or will be.

    Raises:
        MissingExtraError: faiss is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._faiss = require("faiss", "reading a FAISS index")
        self.path, self.name = path, f"the FAISS index {path}"

    def read(self) -> tuple[NDArray[np.float32], int]:
        """The vectors, shape (n, d), and the metric; (0, 0) and the inner product where there is no file.

        Raises:
            InputError: No index, or one that cannot give its vectors back.
        """
        if not self.path.exists():
            return np.zeros((0, 0), np.float32), int(self._faiss.METRIC_INNER_PRODUCT)
        try:
            index = self._faiss.read_index(str(self.path))
            return np.asarray(index.reconstruct_n(0, index.ntotal), np.float32), int(index.metric_type)
        except RuntimeError as error:
            line = clip(" ".join(str(error).split()), 160)
            raise InputError(f"{self.name} cannot be read, or cannot give its vectors back ({line})") from None

    def write(self, vectors: NDArray[np.float32], metric: int) -> None:
        """Write the file anew, in one step."""
        index = self._faiss.IndexFlat(vectors.shape[1], metric)
        index.add(np.ascontiguousarray(vectors))
        draft = self.path.with_name(f".{self.path.name}.{uuid4().hex}.part")
        self._faiss.write_index(index, str(draft))
        draft.replace(self.path)
