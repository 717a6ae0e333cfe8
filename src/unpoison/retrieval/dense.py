"""Exact search over a matrix in memory, which can be saved to one file.

The file is an uncompressed zip, readable by `numpy.load`, with vectors as npy and passages as JSON Lines:

    index.json       {"format": 1, "encoder": name}
    vectors.npy      float32, shape (n, d), rows of length 1 or 0, or as a dot-product encoder makes them
    passages.jsonl   one object for each row: id, text, and title and source where there are any

One file, because two could not be replaced in one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Self
from uuid import uuid4
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.ranking import best_first
from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import Collection, VectorRetriever, check_encoder, unit_rows, vectors_of
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.copies import CopyableLock

__all__ = ["DenseRetriever", "nearest", "read_index", "write_index"]

Matrix = NDArray[np.float32]

BLOCK_CELLS = 2**22
"""Numbers per block in double precision: 32 MB."""

FORMAT = 1
"""Version of the file format."""


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

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to one file, an uncompressed `.npz` with the vectors and the passages as JSON Lines.

        An existing file is replaced atomically. Of framework documents only text, id, title and source are saved.

        Raises:
            OSError: The file cannot be written.
        """
        with self._lock:
            matrix, passages = self._state[1], list(self._state[0])
        write_index(path, self.encoder.name, matrix, passages)

    @classmethod
    def load(cls, path: str | PathLike[str], encoder: Encoder | str, *, sources: SourcesOption = None) -> Self:
        """Load a saved index.

        Args:
            path: The file. It is not trusted: nothing in it is executed.
            encoder: The encoder of the index.
            sources: As for a new retriever.

        Raises:
            InputError: The file is damaged, not an index, or was made with another encoder.
            OSError: The file cannot be read.
        """
        retriever = cls(encoder, sources=sources)
        name, matrix, collection = read_index(path, unit=not retriever._dot)
        if name != retriever.encoder.name:
            raise InputError(
                f"{clip(str(path), 200)} was made with the encoder {clip(name)} and cannot be searched with "
                f"{clip(retriever.encoder.name)}; pass that encoder, or rebuild the index"
            )
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


NAMES = ("index.json", "vectors.npy", "passages.jsonl")


def write_index(path: str | PathLike[str], encoder: str, matrix: Matrix, passages: Iterable[Passage]) -> None:
    """Write an index atomically: sync a draft, then replace the file. Equal indexes have equal bytes.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with ZipFile(file, "w", ZIP_STORED) as archive:
                header, vectors, texts = (ZipInfo(name) for name in NAMES)  # always dated 1980
                archive.writestr(header, json.dumps({"format": FORMAT, "encoder": encoder}))
                with archive.open(vectors, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(matrix), allow_pickle=False)
                with archive.open(texts, "w", force_zip64=True) as member:
                    member.writelines(map(_line, passages))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def read_index(path: str | PathLike[str], *, unit: bool = True) -> tuple[str, Matrix, Collection]:
    """The encoder's name, the vectors and the passages.

    The file is hostile: members must be stored as they are, so that none is larger than the file, and the vectors'
    header must agree with their size before memory is taken for them.

    Args:
        path: The file.
        unit: Whether every vector must have length 1 or 0; otherwise it must be finite.

    Raises:
        InputError: The file is damaged, or not an index.
        OSError: The file cannot be read.
    """
    with Path(path).open("rb") as file:
        try:
            with ZipFile(file) as archive:
                if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
                    raise ValueError("it is compressed")
                header, vectors, texts = map(archive.read, NAMES)
            about = json.loads(header)
            if about["format"] != FORMAT:
                raise ValueError(f"its format is {clip(about['format'])}, and this version supports {FORMAT}")
            matrix, collection = _matrix(vectors, unit), Collection()
            collection.extend(collection.prepare(map(json.loads, texts.splitlines())))
            if len(collection) != len(matrix):
                raise ValueError(f"it has {len(matrix):,} vectors and {len(collection):,} passages")
            return str(about["encoder"]), matrix, collection
        except (InputError, BadZipFile, ValueError, KeyError, TypeError, EOFError, RuntimeError, OSError) as error:
            raise InputError(
                f"{clip(str(path), 200)} is not a saved index: {clip(' '.join(str(error).split()), 200)}; index the "
                "passages anew"
            ) from None


def _matrix(content: bytes, unit: bool) -> Matrix:
    stream = BytesIO(content)
    version = np.lib.format.read_magic(stream)
    shape, by_column, kind = np.lib.format.read_array_header_1_0(stream)
    usable = version == (1, 0) and len(shape) == 2 and not by_column and kind == np.dtype("<f4")
    if not usable or shape[0] * shape[1] * 4 != len(content) - stream.tell() or (shape[0] and not shape[1]):
        raise ValueError(f"vectors.npy has {kind}, shape {shape}, in {len(content):,} bytes")
    matrix = np.frombuffer(content, kind, offset=stream.tell()).reshape(shape)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(matrix, axis=1)
    if not np.isfinite(lengths).all() or (unit and not ((np.abs(lengths - 1) < 1e-3) | (lengths == 0)).all()):
        raise ValueError(f"its vectors are not {'of length 1' if unit else 'finite'}")
    return matrix.astype(np.float32, copy=False)


def _line(passage: Passage) -> bytes:
    fields = {name: getattr(passage, name) for name in ("id", "text", "title", "source")}
    fields["metadata"] = dict(passage.metadata) or None
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode("ascii") + b"\n"
