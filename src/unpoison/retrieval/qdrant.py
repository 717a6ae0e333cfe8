"""A Qdrant collection as a store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from unpoison.errors import InputError, StoreError, clip
from unpoison.retrieval.store import TEXT_FIELDS, VectorStore, refuse, textless, unreachable
from unpoison.utils.checks import direct
from unpoison.utils.extras import require

__all__ = ["QdrantStore"]

PAGE = 256
"""Points per request."""


class QdrantStore(VectorStore):
    """The points of a collection with payload and vectors. `id` comes from the payload, else from the point.

    Args:
        address: A URL, or a folder for Qdrant's local mode.
        collection: The name of the collection.
        new: Create the collection with the first documents if it is missing.
        client: A client to use instead of `address`.

    Raises:
        InputError: There is no such collection, and `new` is not set.
        MissingExtraError: qdrant-client is not installed.
        StoreError: The server cannot be reached.
    """

    def __init__(self, address: str, collection: str, *, new: bool = False, client: Any = None) -> None:
        self.library = require("qdrant_client", "using Qdrant")
        self.collection, self.name = collection, f"the Qdrant collection {collection!r}"
        self._ours = client is None
        with self.translate_errors():
            self.client = client or self._connect(address)
            missing = not new and not self.client.collection_exists(collection)
        if missing:
            raise InputError(f"{self.name} does not exist; name an existing one, or create it")

    def _connect(self, address: str) -> Any:
        if "://" in address:
            with direct(address):
                return self.library.QdrantClient(url=address, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60)
        try:
            return self.library.QdrantClient(path=address)
        except RuntimeError as error:  # another client uses the folder, perhaps of the same command
            line = clip(" ".join(str(error).split()), 200)
            raise StoreError(
                f"the folder {address!r} is in use ({line}); end what uses it, name collections of two folders, or run "
                "a Qdrant server"
            ) from None

    def rows(self) -> Iterator[Mapping[str, Any]]:
        yield from map(self._row, self._points())

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        with self.translate_errors():
            if not count or not self.client.collection_exists(self.collection):
                return []
            vectors = self.client.get_collection(self.collection).config.params.vectors
            using = next(iter(vectors)) if isinstance(vectors, Mapping) else None
            response = self.client.query_points(
                self.collection, query=list(vector), using=using, limit=count, with_payload=True, with_vectors=True
            )
        return [{**self._row(point), "score": point.score} for point in response.points]

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        payload = {name: value for name, value in fields.items() if name != "embedding" and value}
        point = str(uuid5(NAMESPACE_URL, f"id:{fields['id']}"))  # Qdrant takes UUIDs and numbers only
        return {"id": fields["id"], "point": point, "payload": payload, "vector": list(fields["embedding"])}

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        wanted = set(ids)
        return {
            name: {"id": name, "point": point.id, "payload": point.payload, "vector": point.vector}
            for point in self._points()
            if (name := _name(point)) in wanted
        }

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        models = self.library.models
        rows = list(raw.values())
        if any("point" not in row for row in rows):
            raise InputError(f"{self.name} accepts points of Qdrant; move documents to a store of the same kind")
        with self.translate_errors():
            if not self.client.collection_exists(self.collection):
                self.client.create_collection(self.collection, vectors_config=_like(models, rows[0]["vector"]))
            points = [models.PointStruct(id=r["point"], vector=r["vector"] or {}, payload=r["payload"]) for r in rows]
            self.client.upsert(self.collection, points, wait=True)

    def take(self, ids: Collection[str]) -> None:
        points = [row["point"] for row in self.fetch(ids).values()]
        if points:
            with self.translate_errors():
                self.client.delete(self.collection, self.library.models.PointIdsList(points=points), wait=True)

    def close(self) -> None:
        if self._ours:
            self.client.close()

    def _row(self, point: Any) -> Mapping[str, Any]:
        payload, vector = _payload(point), _vector(point)
        inner = payload.get("metadata")
        fields = {**inner, **payload} if isinstance(inner, Mapping) else payload
        usable = isinstance(vector, list) and bool(vector) and isinstance(vector[0], float)
        text = next((payload[name] for name in TEXT_FIELDS if isinstance(payload.get(name), str)), None)
        if text is None:
            raise textless(self.name, point.id)
        return {**fields, "id": _name(point), "text": text, "embedding": vector if usable else None}

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """Translate errors of the client.

        Args:
            documents: Number of documents read before.
        """
        errors = self.library.http.exceptions
        try:
            yield
        except (errors.ApiException, ValueError, OSError) as error:  # the local mode raises ValueError
            status = getattr(error, "status_code", None)
            if isinstance(error, ValueError) or (status is not None and 400 <= status < 500):
                raise refuse(self.name, error, "its name, and the vectors' name and size") from error
            raise unreachable(self.name, error, documents) from error

    def _points(self) -> Iterator[Any]:
        offset, count = None, 0
        with self.translate_errors():
            if not self.client.collection_exists(self.collection):
                return
        while True:
            with self.translate_errors(count):
                points, offset = self.client.scroll(
                    self.collection, limit=PAGE, offset=offset, with_payload=True, with_vectors=True
                )
            yield from points
            count += len(points)
            if offset is None:
                return


def _payload(point: Any) -> Mapping[str, Any]:
    return point.payload if isinstance(point.payload, Mapping) else {}


def _name(point: Any) -> str:
    """The id in a point's payload, else the point's id."""
    named = _payload(point).get("id")
    return str(point.id if named is None else named)


def _vector(point: Any) -> Any:
    """The vector of a point; of several, the first dense one."""
    if not isinstance(point.vector, Mapping):
        return point.vector
    return next((vector for vector in point.vector.values() if isinstance(vector, list)), None)


def _like(models: Any, vector: Any) -> Any:
    """A vector configuration with the sizes of a point's vectors, by cosine."""
    if isinstance(vector, Mapping):
        return {
            name: models.VectorParams(size=len(value), distance=models.Distance.COSINE)
            for name, value in vector.items()
            if isinstance(value, list)
        }
    return models.VectorParams(size=len(vector), distance=models.Distance.COSINE)
