"""A Qdrant collection as a store: every point with its payload and vectors."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from unpoison.errors import InputError, StoreError, clip
from unpoison.scan.documents import Document
from unpoison.scan.stores import Store
from unpoison.utils.extras import require

__all__ = ["QdrantStore"]

PAGE = 256
"""Points of one request."""

TEXTS = ("text", "content", "page_content", "document")
"""Payload fields that hold the text, the first that is there; frameworks keep the rest in `metadata`."""


class QdrantStore(Store):
    """A collection; documents are known by the payload's `id`, or by the point's own.

    Args:
        address: A URL, or a folder for Qdrant's local mode.
        collection: Its name.
        new: Make the collection, when documents are put, if it is not there.
        client: Use this one instead of `address`.
    """

    def __init__(self, address: str, collection: str, *, new: bool = False, client: Any = None) -> None:
        self._library = require("qdrant_client", "reading a Qdrant collection")
        self.collection, self.name, self._new = collection, f"the Qdrant collection {collection!r}", new
        self._ours = client is None
        with self._translate_errors(0):
            self._client = client or self._connect(address)
            if not new and not self._client.collection_exists(collection):
                raise InputError(f"there is no {self.name}; name one that is there, or make it")

    def _connect(self, address: str) -> Any:
        if "://" in address:
            return self._library.QdrantClient(url=address, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60)
        return self._library.QdrantClient(path=address)

    def documents(self) -> Iterator[Document]:
        for point in self._points():
            payload = point.payload or {}
            metadata = payload.get("metadata")
            inner: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
            text = next((payload[name] for name in TEXTS if isinstance(payload.get(name), str)), None)
            if text is None:
                raise InputError(f"point {clip(point.id)} of {self.name} has no text; it needs a payload field 'text'")
            vector = point.vector
            if isinstance(vector, Mapping):
                vector = next((value for value in vector.values() if isinstance(value, list)), None)
            usable = isinstance(vector, list) and bool(vector) and isinstance(vector[0], float)
            fields = {**inner, **payload, "id": self._id(point), "text": text, "embedding": vector if usable else None}
            yield Document.of({name: value for name, value in fields.items() if value is not None and name != "score"})

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        wanted = set(ids)
        return {
            self._id(point): {
                "id": self._id(point),
                "point": point.id,
                "payload": point.payload,
                "vector": point.vector,
            }
            for point in self._points()
            if self._id(point) in wanted
        }

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        models = self._library.models
        rows = list(raw.values())
        if any("point" not in row for row in rows):
            raise InputError(f"{self.name} takes points of Qdrant; move documents to a store of their kind")
        with self._translate_errors(0):
            if not self._client.collection_exists(self.collection):
                self._client.create_collection(self.collection, vectors_config=_like(models, rows[0]["vector"]))
            points = [models.PointStruct(id=r["point"], vector=r["vector"] or {}, payload=r["payload"]) for r in rows]
            self._client.upsert(self.collection, points, wait=True)

    def take(self, ids: Collection[str]) -> None:
        points = [row["point"] for row in self.fetch(ids).values()]
        with self._translate_errors(0):
            if points:
                self._client.delete(self.collection, self._library.models.PointIdsList(points=points), wait=True)

    def close(self) -> None:
        if self._ours:
            self._client.close()

    def _points(self) -> Iterator[Any]:
        offset, count = None, 0
        with self._translate_errors(0):
            if not self._client.collection_exists(self.collection):
                return
        while True:
            with self._translate_errors(count):
                points, offset = self._client.scroll(
                    self.collection, limit=PAGE, offset=offset, with_payload=True, with_vectors=True
                )
            yield from points
            count += len(points)
            if offset is None:
                return

    def _id(self, point: Any) -> str:
        named = (point.payload or {}).get("id")
        return str(point.id if named is None else named)

    @contextmanager
    def _translate_errors(self, count: int) -> Iterator[None]:
        errors = self._library.http.exceptions
        try:
            yield
        except (errors.ApiException, OSError) as error:
            line = clip(" ".join(str(error).split()), 200)
            when = f"went away after {count:,} documents" if count else "cannot be reached"
            raise StoreError(
                f"{self.name} {when} ({line}); nothing was changed in it: run the same command again"
            ) from error


def _like(models: Any, vector: Any) -> Any:
    """Vectors of the sizes of a point's, by cosine."""
    if isinstance(vector, Mapping):
        return {
            name: models.VectorParams(size=len(value), distance=models.Distance.COSINE)
            for name, value in vector.items()
            if isinstance(value, list)
        }
    return models.VectorParams(size=len(vector), distance=models.Distance.COSINE)
