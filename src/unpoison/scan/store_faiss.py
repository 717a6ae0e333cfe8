"""A FAISS index in a file, beside the texts of its vectors, as a store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError, clip
from unpoison.scan.documents import Document
from unpoison.scan.store_files import RowsStore
from unpoison.scan.stores import Store
from unpoison.utils.extras import require

__all__ = ["FaissStore"]


class FaissStore(Store):
    """An index file, and a JSON Lines file whose row i is the text of vector i.

    An index that is changed is written anew as a flat one of the same metric: others cannot lose vectors.

    Args:
        index: The index's file.
        rows: The file with the texts.
        new: Make both, when documents are put, if they are not there.
    """

    def __init__(self, index: str, rows: str, *, new: bool = False) -> None:
        self._faiss = require("faiss", "reading a FAISS index")
        self.path, self._rows, self.name = Path(index), RowsStore(Path(rows)), f"the FAISS index {index}"
        if not new:
            for path in (self.path, self._rows.path):
                if not path.exists():
                    raise InputError(f"there is no {path}; name the index and the file with its texts")

    def documents(self) -> Iterator[Document]:
        vectors, _ = self._vectors()
        rows = list(self._rows.documents())
        self._agree(len(vectors), len(rows))
        for document, vector in zip(rows, vectors):
            yield replace(document, passage=replace(document.passage, embedding=vector))

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        wanted, (vectors, _) = set(ids), self._vectors()
        rows = list(self._rows._rows())
        self._agree(len(vectors), len(rows))
        return {
            name: {"id": name, "row": fields, "vector": vector.tolist()}
            for (name, fields, *_), vector in zip(rows, vectors)
            if name in wanted
        }

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        if any("vector" not in row or "row" not in row for row in raw.values()):
            raise InputError(f"{self.name} takes texts with vectors; move documents to a store of their kind")
        vectors, metric = self._vectors()
        names = [name for name, *_ in self._rows._rows()]
        more = np.array([row["vector"] for row in raw.values()], np.float32)
        kept = [i for i, name in enumerate(names) if name not in raw]
        self._write(np.concatenate([vectors[kept], more]) if kept else more, metric)
        self._rows.put({name: row["row"] for name, row in raw.items()})

    def take(self, ids: Collection[str]) -> None:
        vectors, metric = self._vectors()
        names = [name for name, *_ in self._rows._rows()]
        self._agree(len(vectors), len(names))
        self._write(vectors[[i for i, name in enumerate(names) if name not in set(ids)]], metric)
        self._rows.take(ids)

    def _vectors(self) -> tuple[NDArray[np.float32], int]:
        if not self.path.exists():
            return np.zeros((0, 0), np.float32), int(self._faiss.METRIC_INNER_PRODUCT)
        try:
            index = self._faiss.read_index(str(self.path))
            return np.asarray(index.reconstruct_n(0, index.ntotal), np.float32), int(index.metric_type)
        except RuntimeError as error:
            line = clip(" ".join(str(error).split()), 160)
            raise InputError(f"{self.name} cannot be read, or cannot give its vectors back ({line})") from None

    def _write(self, vectors: NDArray[np.float32], metric: int) -> None:
        index = self._faiss.IndexFlat(vectors.shape[1], metric)
        index.add(np.ascontiguousarray(vectors))
        draft = self.path.with_name(f".{self.path.name}.{uuid4().hex}.part")
        self._faiss.write_index(index, str(draft))
        draft.replace(self.path)

    def _agree(self, vectors: int, rows: int) -> None:
        if vectors != rows:
            raise InputError(
                f"{self.name} holds {vectors:,} vectors and {self._rows.name} {rows:,} usable rows; "
                "give the text of every vector, in the order of the vectors"
            )
