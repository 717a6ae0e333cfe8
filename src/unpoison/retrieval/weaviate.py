"""A Weaviate collection as a store, by the client's gRPC."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, UUID, uuid5

from unpoison.errors import InputError, UnpoisonError, clip
from unpoison.retrieval.store import TEXT_FIELDS, Store, VectorStore, refuse, textless, unreachable
from unpoison.utils.extras import require

__all__ = ["WeaviateStore"]

PAGE = 100
"""Objects of one request."""

NAME = "_original_id"
"""The property of a document's own id, for objects have UUIDs; Haystack's stores call it so, too."""

KINDS = frozenset({"text", "int", "number", "boolean", "date", "uuid", "object"})
"""Types of properties that come back as they were written; lists of them, too."""

EXACT = 2**53
"""Beyond it the client rounds whole numbers that it writes."""

GRPC_PORT = 50051

AWAY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "CANCELLED")
"""Codes of a server that does not answer, and of one that cannot now."""


class WeaviateStore(VectorStore):
    """Every object of a collection with its vectors. `id` is its `_original_id`, or its UUID without one.

    Objects of Weaviate have no versions: one that is changed while it is moved is moved as it was read.

    Args:
        address: The server's URL (its key in WEAVIATE_API_KEY). gRPC is spoken on port 50051 of the same host, or with
            WEAVIATE_GRPC=HOST:PORT.
        collection: Its name, or an alias.
        new: Make the collection, when documents are put, if it is not there.

    Raises:
        InputError: There is no such collection, and `new` is not set; or it has tenants.
        MissingExtraError: weaviate-client is not installed.
        StoreError: The server cannot be reached.
    """

    def __init__(self, address: str, collection: str, *, new: bool = False) -> None:
        self.library = require("weaviate", "using Weaviate")
        self.collection, self.name, self.address = collection, f"the Weaviate collection {collection!r}", address
        self.client: Any = None
        with self.translate_errors():
            self.client = self._connect(address)
        try:
            about = self._about()
            if about is None and not new:
                raise InputError(f"{self.name} is not there; name one that is, or make it")
            if about is not None and about.multi_tenancy_config.enabled:
                raise InputError(f"{self.name} has tenants, which are not read; name a collection without")
        except UnpoisonError:
            self.close()
            raise

    def rows(self) -> Iterator[Mapping[str, Any]]:
        yield from map(self._row, self._objects())

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        if (about := self._about()) is None or not count:
            return []
        measures = _measures(about)
        target = next(iter(measures), "")
        with self.translate_errors():
            found = self._opened().query.near_vector(
                list(vector), limit=count, target_vector=target or None, include_vector=True,
                return_metadata=["distance"],
            )  # fmt: skip
        nearest = 1.0 if measures.get(target) == "cosine" else 0.0  # the distance of the others is below 0, or none
        return [{**self._row(one), "score": nearest - one.metadata.distance} for one in found.objects]

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        about, size = self._about(), list(fields["embedding"])
        schema = _plain_schema() if about is None else _schema(about)
        names = [one["name"] for one in schema["properties"]]
        text = next((name for name in TEXT_FIELDS if name in names), TEXT_FIELDS[0])
        others = {**fields.get("metadata", {}), **fields, NAME: fields["id"]}
        properties = {name: value for name, value in others.items() if name in names and name != "metadata" and value}
        return {
            "id": fields["id"], "uuid": _uuid(fields["id"]), "properties": {**properties, text: fields["text"]},
            "vectors": {next(iter(schema["vectors"])) or "default": size}, "schema": schema,
        }  # fmt: skip

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        about = self._about()
        if about is None or not ids:
            return {}
        schema = _schema(about)
        if lost := _lost(about):
            raise InputError(
                f"no object of {self.name} could be put back as it was: its properties {', '.join(lost)} do not come "
                "with it whole; name a collection without references, blobs, places and telephone numbers"
            )
        raw = dict[str, Mapping[str, Any]]()
        for one in self._named(ids, schema):
            name = _name(one)
            if name in raw:  # both would be taken out, and one put back
                raise InputError(f"{self.name} has several objects named {clip(name)}; give each an id of its own")
            if any(isinstance(value[0], list) for value in one.vector.values() if value):
                raise InputError(f"{clip(name)} of {self.name} has several vectors in one, and such are not moved")
            properties = {key: self._plain(value, key) for key, value in one.properties.items()}
            raw[name] = {
                "id": name, "uuid": str(one.uuid), "properties": properties, "vectors": dict(one.vector),
                "schema": schema,
            }  # fmt: skip
        return {name: raw[name] for name in ids if name in raw}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        rows = list(raw.values())
        if any("uuid" not in row or "schema" not in row for row in rows):
            raise InputError(f"{self.name} takes objects of Weaviate; move documents to a store of their kind")
        if not rows:
            return
        objects = self.library.classes.data.DataObject
        with self.translate_errors():
            about = self._about()
            if about is None:
                self.client.collections.create_from_dict(_definition(self.collection, rows[0]["schema"]))
                about = self._about()
            named = "" not in _measures(about)
            for start in range(0, len(rows), PAGE):
                written = self._opened().data.insert_many(
                    [
                        objects(
                            uuid=row["uuid"],
                            properties=row["properties"],
                            vector=(row["vectors"] if named else row["vectors"].get("default")) or None,
                        )
                        for row in rows[start : start + PAGE]
                    ]
                )
                for error in written.errors.values():
                    raise refuse(
                        self.name, RuntimeError(f"{error.original_uuid}: {error.message}"), "its properties and vectors"
                    )

    def take(self, ids: Collection[str]) -> None:
        about = self._about()
        if about is None or not ids:
            return
        found = [one.uuid for one in self._named(ids, _schema(about))]
        with self.translate_errors():
            for one in found:
                self._opened().data.delete_by_id(one)

    def shares_with(self, other: Store) -> bool:
        """Also by an alias."""
        if super().shares_with(other) or not isinstance(other, WeaviateStore) or self.address != other.address:
            return super().shares_with(other)
        here, there = self._about(), other._about()
        return here is not None and there is not None and here.name == there.name

    def close(self) -> None:
        if self.client is not None:
            self.client.close()

    def _connect(self, address: str) -> Any:
        url, key = urlsplit(address), os.environ.get("WEAVIATE_API_KEY")
        secure = url.scheme == "https"
        cloud = bool(url.hostname and url.hostname.endswith((".weaviate.cloud", ".weaviate.network")))
        if cloud and "WEAVIATE_GRPC" not in os.environ:
            return self.library.connect_to_weaviate_cloud(address, key, skip_init_checks=True)
        host, _, port = os.environ.get("WEAVIATE_GRPC", f"{url.hostname}:{GRPC_PORT}").rpartition(":")
        return self.library.connect_to_custom(
            http_host=url.hostname, http_port=url.port or (443 if secure else 8080), http_secure=secure,
            grpc_host=host, grpc_port=int(port), grpc_secure=secure, auth_credentials=key,
            skip_init_checks=True,  # one of them asks a package registry for the client's newest version
        )  # fmt: skip

    def _opened(self) -> Any:
        return self.client.collections.use(self.collection)

    def _about(self) -> Any:
        """What the collection is made of; None where there is none."""
        with self.translate_errors():
            return self._opened().config.get() if self.client.collections.exists(self.collection) else None

    def _objects(self) -> Iterator[Any]:
        """Every object, in the order of UUIDs, by which none is missed or comes twice."""
        if self._about() is None:
            return
        with self.translate_errors():
            objects, count = iter(self._opened().iterator(include_vector=True, cache_size=PAGE)), 0
        while True:
            with self.translate_errors(count):
                one = next(objects, None)
            if one is None:
                return
            count += 1
            yield one

    def _named(self, ids: Collection[str], schema: Mapping[str, Any]) -> list[Any]:
        """The objects of these ids."""
        wanted = set(ids)
        if any(one["name"] == NAME for one in schema["properties"]):  # filters see words, not names
            return [one for one in self._objects() if _name(one) in wanted]
        found, uuids = list[Any](), sorted({_uuid(name) for name in wanted})
        for start in range(0, len(uuids), PAGE):
            with self.translate_errors():
                some = self._opened().query.fetch_objects_by_ids(
                    uuids[start : start + PAGE], limit=PAGE, include_vector=True
                )
            found += some.objects
        return found

    def _row(self, one: Any) -> Mapping[str, Any]:
        properties = {key: self._plain(value, key) for key, value in one.properties.items() if value is not None}
        text = next((properties[name] for name in TEXT_FIELDS if isinstance(properties.get(name), str)), None)
        if text is None:
            raise textless(self.name, _name(one))
        inner = properties.get("metadata")
        fields = {**inner, **properties} if isinstance(inner, Mapping) else properties
        vector = next((value for value in one.vector.values() if value and not isinstance(value[0], list)), None)
        fields = {key: value for key, value in fields.items() if key != NAME}
        return {**fields, "id": _name(one), "text": text, "embedding": vector}

    def _plain(self, value: Any, name: str) -> Any:
        """A property as JSON has it.

        Raises:
            InputError: It could not be written back as it is.
        """
        if isinstance(value, Mapping):
            return {key: self._plain(one, f"{name}.{key}") for key, one in value.items()}
        if isinstance(value, list):
            return [self._plain(one, name) for one in value]
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, UUID):
            return str(value)
        if isinstance(value, int) and not -EXACT <= value <= EXACT:
            raise InputError(f"{name} of {self.name} is {value}, which the client would round; take it out")
        return value if isinstance(value, str | int | float | bool | None) else str(value)

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """What the client raises, as our own errors.

        Args:
            documents: How many were read before.
        """
        errors = self.library.exceptions
        try:
            yield
        except UnpoisonError:
            raise
        except (
            errors.WeaviateConnectionError, errors.WeaviateStartUpError, errors.WeaviateGRPCUnavailableError,
            errors.WeaviateTimeoutError, errors.WeaviateRetryError, errors.WeaviateClosedClientError, OSError,
        ) as error:  # fmt: skip
            raise unreachable(self.name, error, documents) from error
        except (errors.WeaviateBaseError, ValueError, TypeError) as error:
            if getattr(error, "status_code", 0) in (429, 502, 503, 504) or _code(error) in AWAY:
                raise unreachable(self.name, error, documents) from error
            raise refuse(self.name, error, "its name, and the vectors' size") from error


def _code(error: Exception) -> str:
    """The code of the gRPC call that failed; "" where it was none."""
    cause = error.__cause__ or error.__context__
    return str(cause.code().name) if cause is not None and hasattr(cause, "code") else ""


def _name(one: Any) -> str:
    named = one.properties.get(NAME)
    return named if isinstance(named, str) else str(one.uuid)


def _uuid(name: str) -> str:
    """The UUID that an id is, or that one of ours gets."""
    try:
        return str(UUID(name))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"id:{name}"))


def _measures(about: Any) -> dict[str, str]:
    """How each vector is compared, by its name; "" is the name in collections that have one only."""
    if about.vector_config:
        return {name: _measure(one.vector_index_config) for name, one in about.vector_config.items()}
    return {"": _measure(about.vector_index_config)}


def _measure(index: Any) -> str:
    return str(getattr(index.distance_metric, "value", index.distance_metric)) if index is not None else "cosine"


def _schema(about: Any) -> dict[str, Any]:
    """What another collection needs to hold these objects, as JSON has it."""
    return {"properties": list(map(_property, about.properties)), "vectors": _measures(about)}


def _property(one: Any) -> dict[str, Any]:
    nested = {"nestedProperties": list(map(_property, one.nested_properties))} if one.nested_properties else {}
    return {"name": one.name, "dataType": [str(getattr(one.data_type, "value", one.data_type))], **nested}


def _lost(about: Any) -> list[str]:
    """Properties that do not come with an object, or not whole."""

    def unknown(properties: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        for one in properties:
            if one["dataType"][0].removesuffix("[]") not in KINDS:
                yield one["name"]
            yield from unknown(one.get("nestedProperties", ()))

    return [*unknown(_schema(about)["properties"]), *(one.name for one in about.references)]


def _plain_schema() -> dict[str, Any]:
    """Of a collection that is made for documents from elsewhere."""
    names = ("text", "title", "source", NAME)
    return {"properties": [{"name": name, "dataType": ["text"]} for name in names], "vectors": {"": "cosine"}}


def _definition(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A collection whose vectors are brought to it."""
    measures = schema["vectors"]
    index = {"vectorIndexType": "hnsw"}
    if "" in measures:
        vectors: dict[str, Any] = {"vectorizer": "none", "vectorIndexConfig": {"distance": measures[""]}, **index}
    else:
        vectors = {
            "vectorConfig": {
                one: {"vectorizer": {"none": {}}, "vectorIndexConfig": {"distance": measure}, **index}
                for one, measure in measures.items()
            }
        }
    return {"class": name[:1].upper() + name[1:], "properties": schema["properties"], **vectors}
