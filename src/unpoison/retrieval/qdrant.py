"""Search in a Qdrant collection."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, OptionError, StoreError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import BATCH, VectorRetriever, check_encoder, vectors_of
from unpoison.sources.fields import metadata_of, source_in
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.extras import require

__all__ = ["QdrantRetriever"]


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
        sources: With it the score is multiplied by the trust in a passage's source (`retrieval.trusted`).

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
        self._library = require("qdrant_client", "searching with Qdrant")
        self.encoder = check_encoder(encoder)
        self.collection = collection
        self._client = client
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
            with self._translate_errors():
                self._client.upsert(self.collection, points)

    def remove(self, ids: Iterable[str]) -> None:
        """Take out the passages that `add` wrote under these ids; unknown ids are passed over.

        Raises:
            InputError: There is no such collection.
            OptionError: The client is asynchronous.
            StoreError: The server cannot be reached.
        """
        self._must_be_synchronous("remove")
        points = self._library.models.PointIdsList(points=[_point_id(Passage("", id=name)) for name in ids])
        if points.points:
            with self._translate_errors():
                self._client.delete(self.collection, points)

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        self._must_be_synchronous("retrieve")
        if not count:
            return ()
        with self._translate_errors():
            response = self._client.query_points(self.collection, **self._question(vector, count))
        return tuple(map(self._passage, response.points))

    async def _anearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        if not self._asynchronous:
            return await super()._anearest(vector, count)
        if not count:
            return ()
        with self._translate_errors():
            response = await self._client.query_points(self.collection, **self._question(vector, count))
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
        return self._library.models.PointStruct(
            id=_point_id(passage),
            vector=values if self._vector is None else {self._vector: values},
            payload={**payload, self._text: passage.text},
        )

    def _passage(self, point: Any) -> Passage:
        payload = point.payload if isinstance(point.payload, Mapping) else {}
        text = payload.get(self._text)
        if not isinstance(text, str):
            raise InputError(
                f"point {clip(point.id)} of {self!r} has no text in the payload field {clip(self._text)}, got "
                f"{clip(text)}; name the field that holds it with text=..."
            )
        named: dict[str, Any] = {"title": payload["title"]} if isinstance(payload.get("title"), str) else {}
        vector = point.vector.get(self._vector) if isinstance(point.vector, Mapping) else point.vector
        name = payload.get("id")
        return Passage(
            text,
            id=str(point.id if name is None else name),
            score=point.score,
            embedding=vector,
            original=point,
            source=source_in({}, payload) or source_in({}, payload.get("metadata")),
            metadata=metadata_of({k: v for k, v in payload.items() if k != self._text}, payload.get("metadata")),
            **named,
        )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """What the client raises, as our own errors."""
        errors = self._library.http.exceptions
        try:
            yield
        except (errors.ApiException, ValueError) as error:  # the local mode raises ValueError
            line = clip(" ".join(str(error).split()), 200)
            status = getattr(error, "status_code", None)
            if isinstance(error, ValueError) or (status is not None and 400 <= status < 500):
                raise InputError(
                    f"{self!r} refuses this ({line}); see its name, and the vectors' name and size"
                ) from error
            raise StoreError(
                f"{self!r} cannot be reached ({line}); see whether the server runs and lets you in"
            ) from error

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
