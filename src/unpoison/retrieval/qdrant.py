"""A Qdrant collection: searched as a retriever, and read whole and changed as a store."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, OptionError, StoreError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import BATCH, VectorRetriever, check_encoder, vectors_of
from unpoison.retrieval.store import TEXT_FIELDS, VectorStore, refuse, unreachable
from unpoison.sources.fields import metadata_of, source_in
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.extras import require

__all__ = ["QdrantRetriever", "QdrantStore"]

PAGE = 256
"""Points of one request."""


class QdrantStore(VectorStore):
    """Every point of a collection with its payload and vectors. `id` is the payload's, or the point's own without one.

    Args:
        address: A URL, or a folder for Qdrant's local mode.
        collection: Its name.
        new: Make the collection, when documents are put, if it is not there.
        client: Use this one instead of `address`.

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
            raise InputError(f"{self.name} is not there; name one that is, or make it")

    def _connect(self, address: str) -> Any:
        if "://" in address:
            return self.library.QdrantClient(url=address, api_key=os.environ.get("QDRANT_API_KEY"), timeout=60)
        try:
            return self.library.QdrantClient(path=address)
        except RuntimeError as error:  # another client has the folder, perhaps of the same command
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
            response = self.client.query_points(
                self.collection, query=list(vector), limit=count, with_payload=True, with_vectors=True
            )
        return [{**self._row(point), "score": point.score} for point in response.points]

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        payload = {name: value for name, value in fields.items() if name != "embedding" and value}
        point = _point_id(Passage("", id=fields["id"]))
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
            raise InputError(f"{self.name} takes points of Qdrant; move documents to a store of their kind")
        with self.translate_errors():
            if not self.client.collection_exists(self.collection):
                self.client.create_collection(self.collection, vectors_config=_like(models, rows[0]["vector"]))
        self.upsert([models.PointStruct(id=r["point"], vector=r["vector"] or {}, payload=r["payload"]) for r in rows])

    def take(self, ids: Collection[str]) -> None:
        self.delete([row["point"] for row in self.fetch(ids).values()])

    def upsert(self, points: Sequence[Any]) -> None:
        """Write points, and wait until they are there."""
        with self.translate_errors():
            self.client.upsert(self.collection, points, wait=True)

    def delete(self, point_ids: Sequence[Any]) -> None:
        """Delete points by Qdrant's own ids, and wait until they are gone."""
        if point_ids:
            with self.translate_errors():
                points = self.library.models.PointIdsList(points=list(point_ids))
                self.client.delete(self.collection, points, wait=True)

    def close(self) -> None:
        if self._ours:
            self.client.close()

    def _row(self, point: Any) -> Mapping[str, Any]:
        payload, vector = _payload(point), _vector(point)
        inner = payload.get("metadata")
        fields = {**inner, **payload} if isinstance(inner, Mapping) else payload
        usable = isinstance(vector, list) and bool(vector) and isinstance(vector[0], float)
        text = self.text_of(point, TEXT_FIELDS)
        return {**fields, "id": _name(point), "text": text, "embedding": vector if usable else None}

    def text_of(self, point: Any, fields: Sequence[str]) -> str:
        """The text of a point: the first of the payload's fields that holds one.

        Raises:
            InputError: None of them does.
        """
        payload = _payload(point)
        text = next((payload[name] for name in fields if isinstance(payload.get(name), str)), None)
        if text is None:
            raise InputError(
                f"point {clip(point.id)} of {self.name} has no text in the payload field {clip(fields[0])}, got "
                f"{clip(payload.get(fields[0]))}; fill it, or name the field that holds it (text=... of a retriever)"
            )
        return str(text)

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """What the client raises, as our own errors.

        Args:
            documents: How many were read before.
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


class QdrantRetriever(VectorRetriever):
    """The points that a Qdrant collection finds, by its own distance, with the vectors that it holds.

    Searching raises an InputError if there is no such collection, if its dimensions are others, or if a point has no
    text; a StoreError if the server cannot be reached.

    Args:
        client: Your `QdrantClient`, or `AsyncQdrantClient` for `aretrieve` alone.
        collection: The collection's name; it must exist.
        encoder: Made, and makes, the vectors; or its string, such as "minilm".
        text: The payload field that holds a passage's text. Its `id`, `title` and `source` are read from the fields
            of these names; without an `id`, the point's own stands for it.
        vector: The name of the vectors to search, in a collection with named ones.
        sources: With it the score is multiplied by the trust in a passage's source (`retrieval.base`).

    Raises:
        OptionError: The encoder's vectors hold for the texts of one call only.
        MissingExtraError: qdrant-client is not installed.
    """

    def __init__(
        self,
        client: Any,
        collection: str,
        encoder: Encoder | str,
        *,
        text: str = "text",
        vector: str | None = None,
        sources: SourcesOption = None,
    ) -> None:
        self.sources = Sources.of(sources)
        self._store = QdrantStore("", collection, new=True, client=client)
        self.encoder = check_encoder(encoder)
        self.collection = collection
        self._asynchronous = inspect.iscoroutinefunction(client.query_points)
        self._text = text
        self._vector = vector

    def add(self, passages: Iterable[Any]) -> None:
        """Write passages into the collection, encoded where they bring no embedding.

        A passage whose id is there replaces the one that was there; one without an id is known by its text. A point's
        own id is a UUID made from the passage's, for Qdrant takes no other names.

        Raises:
            InputError: An unusable passage, or an embedding of other dimensions than the collection's.
            ModelError: The encoder failed.
            OptionError: The client is asynchronous.
            StoreError: The server cannot be reached.
        """
        self._must_be_synchronous("add")
        new = [Passage.of(value, position) for position, value in enumerate(passages)]
        for start in range(0, len(new), BATCH):
            some = new[start : start + BATCH]
            points = [self._point(p, vector) for p, vector in zip(some, vectors_of(some, self.encoder), strict=True)]
            self._store.upsert(points)

    def remove(self, ids: Iterable[str]) -> None:
        """Take out the passages that `add` wrote under these ids; unknown ids are passed over.

        Raises:
            InputError: There is no such collection.
            OptionError: The client is asynchronous.
            StoreError: The server cannot be reached.
        """
        self._must_be_synchronous("remove")
        self._store.delete([_point_id(Passage("", id=name)) for name in ids])

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        self._must_be_synchronous("retrieve")
        if not count:
            return ()
        with self._store.translate_errors():
            response = self._store.client.query_points(self.collection, **self._question(vector, count))
        return tuple(map(self._passage, response.points))

    async def _anearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        if not self._asynchronous:
            return await super()._anearest(vector, count)
        if not count:
            return ()
        with self._store.translate_errors():
            response = await self._store.client.query_points(self.collection, **self._question(vector, count))
        return tuple(map(self._passage, response.points))

    def _question(self, vector: Vector, count: int) -> dict[str, Any]:
        return {
            "query": vector.tolist(),
            "using": self._vector,
            "limit": count,
            "with_payload": True,
            "with_vectors": True if self._vector is None else [self._vector],
        }

    def _point(self, passage: Passage, vector: Vector) -> Any:
        payload = {
            name: dict(value) if name == "metadata" else value
            for name in ("id", "title", "source", "metadata")
            if (value := getattr(passage, name))
        }
        values = vector.tolist()
        return self._store.library.models.PointStruct(
            id=_point_id(passage),
            vector=values if self._vector is None else {self._vector: values},
            payload={**payload, self._text: passage.text},
        )

    def _passage(self, point: Any) -> Passage:
        payload = _payload(point)
        named: dict[str, Any] = {"title": payload["title"]} if isinstance(payload.get("title"), str) else {}
        return Passage(
            self._store.text_of(point, (self._text,)),
            id=_name(point),
            score=point.score,
            embedding=_vector(point, self._vector),
            original=point,
            source=source_in({}, payload) or source_in({}, payload.get("metadata")),
            metadata=metadata_of({k: v for k, v in payload.items() if k != self._text}, payload.get("metadata")),
            **named,
        )

    def _must_be_synchronous(self, method: str) -> None:
        if self._asynchronous:
            raise OptionError(
                f"{method} needs a QdrantClient, and this retriever has an AsyncQdrantClient; use aretrieve, or "
                "another client"
            )

    def __repr__(self) -> str:
        return f"QdrantRetriever({self.collection!r}, encoder={self.encoder.name!r})"


def _point_id(passage: Passage) -> str:
    """Qdrant takes UUIDs and numbers only."""
    return str(uuid5(NAMESPACE_URL, passage.text if passage.id is None else f"id:{passage.id}"))


def _payload(point: Any) -> Mapping[str, Any]:
    return point.payload if isinstance(point.payload, Mapping) else {}


def _name(point: Any) -> str:
    """A point's id in the payload, or its own without one."""
    named = _payload(point).get("id")
    return str(point.id if named is None else named)


def _vector(point: Any, name: str | None = None) -> Any:
    """The vector of this name where a point has several; without a name its first dense one."""
    if not isinstance(point.vector, Mapping):
        return point.vector
    if name is not None:
        return point.vector.get(name)
    return next((vector for vector in point.vector.values() if isinstance(vector, list)), None)


def _like(models: Any, vector: Any) -> Any:
    """Vectors of the sizes of a point's, by cosine."""
    if isinstance(vector, Mapping):
        return {
            name: models.VectorParams(size=len(value), distance=models.Distance.COSINE)
            for name, value in vector.items()
            if isinstance(value, list)
        }
    return models.VectorParams(size=len(vector), distance=models.Distance.COSINE)
