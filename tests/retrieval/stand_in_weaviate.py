"""A stand-in for Weaviate: REST for schemas and deletions, gRPC for the rest, on the client's own generated messages.

What is written is read by the types of the schema; references and blobs come only when a query names them.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import grpc
import numpy as np
from weaviate.proto.v1 import base_pb2, batch_pb2, properties_pb2, search_get_pb2, weaviate_pb2_grpc

INDEX = {
    "cleanupIntervalSeconds": 300, "dynamicEfMin": 100, "dynamicEfMax": 500, "dynamicEfFactor": 8, "ef": -1,
    "efConstruction": 128, "flatSearchCutoff": 40000, "maxConnections": 32, "skip": False,
    "vectorCacheMaxObjects": 1, "distance": "cosine",
}  # fmt: skip
DEFAULTS = {
    "invertedIndexConfig": {
        "bm25": {"b": 0.75, "k1": 1.2}, "cleanupIntervalSeconds": 60,
        "stopwords": {"preset": "en", "additions": None, "removals": None},
    },
    "replicationConfig": {"factor": 1},
    "shardingConfig": {
        "virtualPerPhysical": 128, "desiredCount": 1, "actualCount": 1, "desiredVirtualCount": 128,
        "actualVirtualCount": 128, "key": "_id", "strategy": "hash", "function": "murmur3",
    },
}  # fmt: skip


class StandIn(weaviate_pb2_grpc.WeaviateServicer):  # type: ignore[misc]
    """The state of a server: schemas, and objects with their vectors, by UUID."""

    def __init__(self) -> None:
        self.schemas = dict[str, dict[str, Any]]()
        self.aliases = dict[str, str]()
        self.objects = dict[str, dict[str, tuple[dict[str, Any], dict[str, bytes]]]]()
        self.refusing, self.late = "", False
        self.keys = set[str | None]()

    def make(self, definition: dict[str, Any]) -> dict[str, Any]:
        """A collection, as `POST /v1/schema` makes it."""
        schema = {**DEFAULTS, **definition}
        for one in definition.get("properties", ()):
            one |= {"indexFilterable": True, "indexSearchable": True}
            for inner in one.get("nestedProperties", ()):
                inner |= {"indexFilterable": True, "indexSearchable": True}
        for one in [schema, *schema.get("vectorConfig", {}).values()]:
            if "vectorConfig" not in one:
                one |= {
                    "vectorIndexType": "hnsw",
                    "vectorIndexConfig": {**INDEX, **definition.get("vectorIndexConfig", {}),
                                          **(one.get("vectorIndexConfig") or {})},
                }  # fmt: skip
        schema.setdefault("vectorizer", "none")
        self.schemas[definition["class"]] = schema
        self.objects[definition["class"]] = {}
        return schema

    def rest(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and reply."""
        match method, *path.removeprefix("/v1/").split("?")[0].split("/"):
            case "GET", "meta":
                return 200, {"version": "1.33.0", "hostname": "stand-in", "modules": {}}
            case "GET", "schema", name if (real := self.aliases.get(name, name)) in self.schemas:
                return 200, self.schemas[real]
            case "POST", "schema":
                return 200, self.make(body)
            case "DELETE", "objects", name, uuid:
                held = self.objects[self.aliases.get(name, name)]
                return (204, None) if held.pop(uuid, None) is not None else (404, None)
        return 404, {"error": [{"message": f"no {method} {path}"}]}

    def BatchObjects(self, request: Any, context: Any) -> Any:
        errors = []
        for i, one in enumerate(request.objects):
            size = self.size(one.collection)
            vectors = {vector.name: vector.vector_bytes for vector in one.vectors}
            if one.vector_bytes:
                vectors["default"] = one.vector_bytes
            if self.refusing and self.refusing in str(one.properties):
                errors.append(batch_pb2.BatchObjectsReply.BatchError(index=i, error="refused by the stand-in"))
            elif size and any(len(vector) != size for vector in vectors.values()):
                errors.append(batch_pb2.BatchObjectsReply.BatchError(index=i, error="vector lengths don't match"))
            else:
                name = self.aliases.get(one.collection, one.collection)
                self.objects[name][one.uuid] = (read(one.properties), vectors)
        return batch_pb2.BatchObjectsReply(errors=errors)

    def size(self, collection: str) -> int:
        objects = self.objects[self.aliases.get(collection, collection)]
        return next((len(vector) for _, vectors in objects.values() for vector in vectors.values()), 0)

    def Search(self, request: Any, context: Any) -> Any:
        self.keys.add(dict(context.invocation_metadata()).get("authorization"))
        if self.late:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")
        name = self.aliases.get(request.collection, request.collection)
        found = sorted(self.objects[name].items())
        distances: dict[str, float] = {}
        if request.HasField("near_vector"):
            near, schema = request.near_vector, self.schemas[name]
            asked = np.frombuffer(near.vector_bytes or near.vectors[0].vector_bytes, "<f4")
            target = next(iter(near.targets.target_vectors), "default")
            if self.size(name) not in (0, asked.nbytes):
                context.abort(grpc.StatusCode.UNKNOWN, "vector lengths don't match")
            config = schema["vectorConfig"][target] if "vectorConfig" in schema else schema
            for uuid, (_, vectors) in found:
                if target in vectors:
                    held = np.frombuffer(vectors[target], "<f4").astype(float)
                    distances[uuid] = distance(config["vectorIndexConfig"]["distance"], asked.astype(float), held)
            found = sorted(((u, one) for u, one in found if u in distances), key=lambda one: distances[one[0]])
        if request.HasField("filters"):
            wanted = {one.value_text for one in request.filters.filters} or {request.filters.value_text}
            found = [one for one in found if one[0] in wanted]
        if request.after:
            found = [one for one in found if one[0] > request.after]
        kinds = {one["name"]: one for one in self.schemas[name]["properties"]}
        results = []
        for uuid, (properties, vectors) in found[: request.limit or 10]:
            shown = request.metadata.vector
            meta = search_get_pb2.MetadataResult(id=uuid, id_as_bytes=UUID(uuid).bytes)
            if uuid in distances and request.metadata.distance:
                meta.distance, meta.distance_present = distances[uuid], True
            if shown and "vectorConfig" in self.schemas[name]:
                single = base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32
                meta.vectors.extend(
                    base_pb2.Vectors(name=key, vector_bytes=v, type=single) for key, v in vectors.items()
                )
            elif shown and "default" in vectors:
                meta.vector_bytes = vectors["default"]
            fields = {
                key: write(value, kinds[key])
                for key, value in properties.items()
                if key in kinds and kinds[key]["dataType"][0] != "blob"
            }
            kept = search_get_pb2.PropertiesResult(non_ref_props=properties_pb2.Properties(fields=fields))
            results.append(search_get_pb2.SearchResult(metadata=meta, properties=kept))
        return search_get_pb2.SearchReply(results=results)


def distance(measure: str, one: Any, other: Any) -> float:
    if measure == "l2-squared":
        return float(((one - other) ** 2).sum())
    product = float(one @ other)
    return -product if measure == "dot" else 1 - product / float(np.linalg.norm(one) * np.linalg.norm(other))


def read(message: Any) -> dict[str, Any]:
    """The properties of a batch."""
    values = json.loads(json.dumps(dict(message.non_ref_properties)))
    for one in message.text_array_properties:
        values[one.prop_name] = list(one.values)
    for one in message.int_array_properties:
        values[one.prop_name] = list(one.values)
    for one in message.boolean_array_properties:
        values[one.prop_name] = list(one.values)
    for one in message.number_array_properties:
        values[one.prop_name] = list(struct.unpack(f"<{len(one.values_bytes) // 8}d", one.values_bytes))
    for one in message.object_properties:
        values[one.prop_name] = read(one.value)
    for one in message.object_array_properties:
        values[one.prop_name] = list(map(read, one.values))
    return {**values, **{name: [] for name in message.empty_list_props}}


def write(value: Any, about: dict[str, Any]) -> Any:
    """A property of a reply, by its type."""
    kind, inner = about["dataType"][0], {one["name"]: one for one in about.get("nestedProperties", ())}
    if value is None:
        return properties_pb2.Value(null_value=0)
    match kind:
        case "number":
            return properties_pb2.Value(number_value=value)
        case "int":
            return properties_pb2.Value(int_value=int(value))
        case "boolean":
            return properties_pb2.Value(bool_value=value)
        case "date":
            return properties_pb2.Value(date_value=value)
        case "uuid":
            return properties_pb2.Value(uuid_value=value)
        case "text[]":
            texts = properties_pb2.TextValues(values=value)
            return properties_pb2.Value(list_value=properties_pb2.ListValue(text_values=texts))
        case "number[]":
            numbers = properties_pb2.NumberValues(values=struct.pack(f"<{len(value)}d", *value))
            return properties_pb2.Value(list_value=properties_pb2.ListValue(number_values=numbers))
        case "object":
            fields = {name: write(one, inner[name]) for name, one in value.items()}
            return properties_pb2.Value(object_value=properties_pb2.Properties(fields=fields))
    return properties_pb2.Value(text_value=value)


@contextmanager
def serve(state: StandIn) -> Iterator[tuple[str, str]]:
    """The URL and the gRPC address of a server of this state, while it runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_call(self) -> None:
            text = self.rfile.read(int(self.headers.get("content-length") or 0))
            state.keys.add(self.headers.get("authorization"))
            status, reply = state.rest(self.command, self.path, json.loads(text) if text else None)
            content = b"" if reply is None else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            if status != 204:
                self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = handle_call  # noqa: N815  the names that the base class calls

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        weaviate_pb2_grpc.add_WeaviateServicer_to_server(state, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}", f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()
            http.shutdown()
            http.server_close()
            thread.join()
