"""A FAISS index and the file with its texts as a store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError
from unpoison.retrieval.faiss import FaissFile
from unpoison.retrieval.store import VectorStore
from unpoison.scan.stores import Line, RowsStore

__all__ = ["FaissStore"]

INNER_PRODUCT = 0
"""FAISS's number of this metric."""


class FaissStore(VectorStore):
    """An index file, and a JSON Lines file whose row i is the text of vector i.

    Args:
        index: The index's file; one that is changed is written anew as a flat one of the same metric.
        rows: The file with the texts.
        new: Make both, when documents are put, if they are not there.
    """

    def __init__(self, index: str, rows: str, *, new: bool = False) -> None:
        self._index, self._rows = FaissFile(Path(index)), RowsStore(Path(rows))
        self.name = self._index.name
        if self._drafts() and (draft := self._draft(self._index.read()[0])).exists():
            draft.replace(self._rows.path)
        if not new:
            for path in (self._index.path, self._rows.path):
                if not path.exists():
                    raise InputError(f"there is no {path}; name the index and the file with its texts")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        lines, vectors, _ = self._read()
        for line, vector in zip(lines, vectors):
            yield {**line.fields, "embedding": vector}

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        lines, vectors, metric = self._read()
        if not count or not len(vectors):
            return []
        query = np.array(vector, np.float32)
        if query.size != vectors.shape[1]:
            raise InputError(f"the query has {query.size} dimensions and {self.name} {vectors.shape[1]}")
        scores = vectors @ query if metric == INNER_PRODUCT else -((vectors - query) ** 2).sum(axis=1)
        order = np.argsort(-scores, kind="stable")[:count].tolist()
        return [
            {**lines[i].fields, "id": lines[i].name, "embedding": vectors[i].tolist(), "score": float(scores[i])}
            for i in order
        ]

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        row = {name: value for name, value in fields.items() if name != "embedding"}
        return {"id": fields["id"], "row": row, "vector": list(fields["embedding"])}

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        wanted, (lines, vectors, _) = set(ids), self._read()
        return {
            line.name: {"id": line.name, "row": line.fields, "vector": vector.tolist()}
            for line, vector in zip(lines, vectors)
            if line.name is not None and line.name in wanted
        }

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        if any("vector" not in row or "row" not in row for row in raw.values()):
            raise InputError(f"{self.name} takes texts with vectors; move documents to a store of their kind")
        lines, vectors, metric = self._read()
        more = np.array([row["vector"] for row in raw.values()], np.float32)
        kept = [i for i, line in enumerate(lines) if line.name not in raw]
        rows = {name: row["row"] for name, row in raw.items()}
        self._write(np.concatenate([vectors[kept], more]) if kept else more, metric, self._rows.lines_with(rows))

    def take(self, ids: Collection[str]) -> None:
        gone, (lines, vectors, metric) = set(ids), self._read()
        kept = [i for i, line in enumerate(lines) if line.name not in gone]
        self._write(vectors[kept], metric, self._rows.lines_without(ids))

    def _write(self, vectors: NDArray[np.float32], metric: int, lines: list[bytes]) -> None:
        """Write both files. If the process ends between the two, the next one puts the rows in place."""
        for old in self._drafts():
            old.unlink()
        draft = self._draft(vectors)
        self._rows.write(draft, lines)
        self._index.write(vectors, metric)
        draft.replace(self._rows.path)

    def _draft(self, vectors: NDArray[np.float32]) -> Path:
        """Where the rows of these vectors wait until the vectors are in place."""
        digest = blake2b(np.ascontiguousarray(vectors).tobytes(), digest_size=16).hexdigest()
        return self._rows.path.with_name(f".{self._rows.path.name}.{digest}.next")

    def _drafts(self) -> list[Path]:
        return list(self._rows.path.parent.glob(f".{escape(self._rows.path.name)}.*.next"))

    def _read(self) -> tuple[list[Line], NDArray[np.float32], int]:
        """The usable lines of the texts, their vectors, and the index's metric."""
        vectors, metric = self._index.read()
        lines = [line for line in self._rows.lines() if line.name is not None]
        if len(vectors) != len(lines):
            raise InputError(
                f"{self.name} holds {len(vectors):,} vectors and {self._rows.name} {len(lines):,} usable rows; "
                "give the text of every vector, in the order of the vectors"
            )
        return lines, vectors, metric
