"""A FAISS index in memory as a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unpoison.errors import InputError
from unpoison.retrieval.store import VectorStore, textless
from unpoison.utils.extras import require

__all__ = ["FaissStore"]


class FaissStore(VectorStore):
    """An index with a row for each vector. Scores are inner products, or negated L2 distances.

    Args:
        index: Your index, by inner product or by L2 distance; None for an `IndexFlatIP` that is created when documents
            are put. Where it compresses, the vectors that come back are approximations.
        rows: The fields of the vectors 0, 1, 2, ... in this order, at least `id` and `text`.

    Raises:
        InputError: Not one row for each vector, a row without a text, or two with one id.
        MissingExtraError: faiss is not installed.
    """

    def __init__(self, index: Any = None, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        require("faiss", "searching with FAISS")
        self.index, self.name = index, f"the FAISS index {id(self):x}"
        self._rows = [dict(row) for row in rows]
        for row in self._rows:
            if not isinstance(row.get("text"), str):
                raise textless(self.name, row.get("id"))
        if len({row["id"] for row in self._rows}) < len(self._rows):
            raise InputError(f"two rows of {self.name} have the same id; ids must be unique")
        vectors = 0 if index is None else index.ntotal
        if vectors != len(self._rows):
            raise InputError(
                f"the index has {vectors:,} vectors and {len(self._rows):,} rows were passed; "
                "give the text of every vector, in the order of the vectors"
            )

    @property
    def _faiss(self) -> Any:
        """The library; not an attribute, because modules cannot be pickled."""
        return require("faiss", "searching with FAISS")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        yield from (self._row(number) for number in range(len(self._rows)))

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        count = min(count, len(self._rows))
        if not count:
            return []
        self._check_width(len(vector))
        scores, numbers = self.index.search(np.array([vector], np.float32), count)
        closer = -1.0 if self.index.metric_type == self._faiss.METRIC_L2 else 1.0
        return [
            {**self._row(number), "score": closer * score + 0.0}  # -0.0 becomes 0.0
            for number, score in zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
            if number >= 0  # -1 marks missing results
        ]

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        return {row["id"]: self.raw(self._row(i)) for i, row in enumerate(self._rows) if row["id"] in ids}

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        row = {name: value for name, value in fields.items() if name != "embedding"}
        return {"id": fields["id"], "row": row, "vector": list(fields["embedding"])}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        if any("vector" not in one or "row" not in one for one in raw.values()):
            raise InputError(f"{self.name} accepts texts with vectors; move documents to a store of the same kind")
        if not raw:
            return
        vectors = np.array([one["vector"] for one in raw.values()], np.float32)
        if self.index is None:
            self.index = self._faiss.IndexFlatIP(vectors.shape[1])
        self._check_width(vectors.shape[1])
        self.take(raw)
        self.index.add(vectors)
        self._rows += [dict(one["row"]) for one in raw.values()]

    def take(self, ids: Collection[str]) -> None:
        numbers = [number for number, row in enumerate(self._rows) if row["id"] in ids]
        if numbers and not isinstance(self.index, self._faiss.IndexFlat):
            raise InputError(f"an index of {type(self.index).__name__} cannot remove single vectors; rebuild it")
        if numbers:
            self.index.remove_ids(np.array(numbers, np.int64))  # a flat index renumbers the others
            self._rows = [row for row in self._rows if row["id"] not in ids]

    def _row(self, number: int) -> Mapping[str, Any]:
        try:
            return {**self._rows[number], "embedding": self.index.reconstruct(number).tolist()}
        except RuntimeError as error:
            raise InputError(
                f"the index cannot return its vectors ({type(self.index).__name__}); call its make_direct_map(), "
                "or use an index that keeps them"
            ) from error

    def _check_width(self, width: int) -> None:
        if width != self.index.d:
            raise InputError(f"the vectors have {width} dimensions and those of {self.name} {self.index.d}")
