"""A stand-in for Elasticsearch and OpenSearch: what their documentation says of the calls that a store makes.

What is written is found after a refresh; a search of a newer Elasticsearch leaves vectors out of `_source` unless it is
asked for them; a name that no documentation has, in a path, a query or a body, is refused as a server refuses it.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

VECTORS = ("dense_vector", "knn_vector", "sparse_vector", "semantic_text")


class Doc(NamedTuple):
    """A version of a document."""

    id: str
    routing: str | None
    source: dict[str, Any]
    seq_no: int


class RefusalError(Exception):
    """An error as the server answers it."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.error = {"type": kind, "reason": reason, "root_cause": [{"type": kind, "reason": reason}]}


class StandIn:
    """The state of a cluster.

    Args:
        product: "elasticsearch" or "opensearch".
        version: Its number.
        flavor: Its build.
    """

    def __init__(self, product: str, version: str, flavor: str = "default") -> None:
        self.elastic, self.version, self.flavor = product == "elasticsearch", version, flavor
        self.newer = self.elastic and (flavor == "serverless" or tuple(map(int, version.split(".")[:2])) >= (9, 2))
        self.indices = dict[str, dict[str, Any]]()
        self.views = dict[str, list[tuple[str, Doc]]]()
        self.aliases = dict[str, dict[str, Any]]()
        self.opened, self.seq_no = 0, 0
        self.calls, self.headers = list[tuple[str, str, Any]](), dict[str, str]()
        self.failing: Callable[[str, str, Any], Any] = lambda method, path, body: None
        self.lock = threading.Lock()

    def make(self, name: str, mappings: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> None:
        """An index, as `PUT /NAME` makes it."""
        if name in self.indices:
            raise RefusalError(400, "resource_already_exists_exception", f"index [{name}] already exists")
        if name != name.lower():
            raise RefusalError(400, "invalid_index_name_exception", "must be lowercase")
        nested: dict[str, Any] = {}
        for key, value in (settings or {}).items():
            place = nested
            *parts, last = key.removeprefix("index.").split(".")
            if last == "exclude_source_vectors" and not self.newer:
                raise RefusalError(400, "illegal_argument_exception", f"unknown setting [{key}]")
            for part in parts:
                place = place.setdefault(part, {})
            place[last] = value if isinstance(value, dict) else str(value).lower()
        self.indices[name] = {"mappings": copy.deepcopy(dict(mappings)), "settings": nested, "docs": {}, "seen": {}}

    def add(self, name: str, source: Mapping[str, Any], id: str, routing: str | None = None) -> None:
        """A document, written and seen."""
        self.seq_no += 1
        self.indices[name]["docs"][id, routing] = Doc(id, routing, copy.deepcopy(dict(source)), self.seq_no)
        self.refresh(name)

    def refresh(self, name: str) -> None:
        self.indices[name]["seen"] = dict(self.indices[name]["docs"])

    def resolve(self, name: str) -> list[str]:
        """The indices of a name, an alias, or a pattern."""
        found = [
            index
            for part in name.split(",")
            for index in self.indices
            if part in {index, self.indices[index].get("data_stream"), *self.aliases.get(index, {})}
            or (part.endswith("*") and index.startswith(part[:-1]))
        ]
        if not found and "*" not in name:
            raise RefusalError(404, "index_not_found_exception", f"no such index [{name}]")
        return found

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        """The reply to a call."""
        self.calls.append((method, path, body))
        if (failure := self.failing(method, path, body)) is not None:
            return failure
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[-1] in ("_pit", "_search", "point_in_time"):
            return self.answer_search(method, parts, query, body)
        match method, *parts:
            case "GET", "":
                kind = {"build_flavor": self.flavor} if self.elastic else {"distribution": "opensearch"}
                return {"cluster_uuid": str(id(self)), "version": {"number": self.version, **kind}}
            case "POST" | "PUT", "_bulk":
                known(query, "refresh", "pipeline")
                return self.bulk(body, query)
            case "GET", name:
                return {index: self.described(index) for index in self.resolve(name)}
            case "PUT", name:
                known(body, "mappings", "settings")
                self.make(name, body["mappings"], body.get("settings"))
                return {"acknowledged": True}
            case "POST", name, "_refresh":
                for index in self.resolve(name):
                    self.refresh(index)
                return {"_shards": {"failed": 0}}
        raise RefusalError(405, "illegal_argument_exception", f"no handler found for {method} {path}")

    def answer_search(self, method: str, parts: list[str], query: dict[str, str], body: Any) -> Any:
        match method, *parts:
            case ("POST", name, "_pit") if self.elastic:
                return {"id": self.open_view(name, query)}
            case ("POST", name, "_search", "point_in_time") if not self.elastic:
                return {"pit_id": self.open_view(name, query)}
            case ("DELETE", "_pit") if self.elastic:
                del self.views[body["id"]]
                return {"succeeded": True}
            case ("DELETE", "_search", "point_in_time") if not self.elastic:
                for view in body["pit_id"]:
                    del self.views[view]
                return {"pits": []}
            case "POST", "_search":
                if body["pit"]["id"] not in self.views:
                    raise RefusalError(404, "search_context_missing_exception", "No search context found")
                known(body["pit"], "id", "keep_alive")
                return self.search(self.views[body["pit"]["id"]], body)
            case "POST", name, "_search":
                return self.search([(i, doc) for i in self.resolve(name) for doc in self.seen(i)], body)
        raise RefusalError(405, "illegal_argument_exception", f"no handler found for {method} {parts}")

    def described(self, index: str) -> dict[str, Any]:
        held = self.indices[index]
        stream = {"data_stream": held["data_stream"]} if "data_stream" in held else {}
        return {
            "aliases": self.aliases.get(index, {}), "mappings": held["mappings"], **stream,
            "settings": {"index": held["settings"]},
        }  # fmt: skip

    def seen(self, index: str) -> list[Doc]:
        return list(self.indices[index]["seen"].values())

    def open_view(self, name: str, query: Mapping[str, str]) -> str:
        known(query, "keep_alive")
        self.opened += 1
        self.views[f"view-{self.opened}"] = [(i, doc) for i in self.resolve(name) for doc in self.seen(i)]
        return f"view-{self.opened}"

    def bulk(self, body: str, query: Mapping[str, str]) -> Any:
        lines, items, touched = list(map(json.loads, body.splitlines())), [], set()
        while lines:
            ((action, place),) = lines.pop(0).items()
            known(place, "_index", "_id", "routing", "if_seq_no", "if_primary_term")
            source = None if action == "delete" else lines.pop(0)
            try:
                status = self.change(action, place, source)
                items.append({action: {"_index": place["_index"], "_id": place["_id"], "status": status}})
                touched.add(place["_index"])
            except RefusalError as error:
                items.append({action: {"_id": place["_id"], "status": error.status, "error": error.error}})
        for index in touched if query.get("refresh") == "true" else ():
            self.refresh(index)
        return {"errors": any("error" in next(iter(item.values())) for item in items), "items": items}

    def change(self, action: str, place: Mapping[str, Any], source: Any) -> int:
        (index,) = self.resolve(place["_index"])
        key, docs, mapping = (
            (place["_id"], place.get("routing")),
            self.indices[index]["docs"],
            self.indices[index]["mappings"],
        )
        held = docs.get(key)
        if "if_seq_no" in place and (held is None or held.seq_no != place["if_seq_no"]):
            raise RefusalError(409, "version_conflict_engine_exception", "version conflict, required seqNo")
        if action == "create" and held is not None:
            raise RefusalError(409, "version_conflict_engine_exception", "document already exists")
        if mapping.get("_routing", {}).get("required") and key[1] is None:
            raise RefusalError(400, "routing_missing_exception", f"routing is required for [{index}]/[{key[0]}]")
        if action == "delete":
            return 404 if docs.pop(key, None) is None else 200
        for path, definition, _ in vector_fields(mapping["properties"]):
            size, value = definition.get("dims") or definition.get("dimension"), at(source, path)
            if size and isinstance(value, list) and value and not isinstance(value[0], dict) and len(value) != size:
                raise RefusalError(400, "document_parsing_exception", f"vector has {len(value)} dimensions, not {size}")
        if str(mapping.get("dynamic")).lower() == "strict" and (more := set(source) - set(mapping["properties"])):
            raise RefusalError(
                400, "strict_dynamic_mapping_exception", f"dynamic introduction of {more} is not allowed"
            )
        self.seq_no += 1
        docs[key] = Doc(key[0], key[1], source, self.seq_no)
        return 201 if held is None else 200

    def search(self, docs: list[tuple[str, Doc]], body: Mapping[str, Any]) -> Any:
        known(
            body, "size", "sort", "track_total_hits", "pit", "search_after", "_source", "query", "seq_no_primary_term",
            *(["knn"] if self.elastic else []),
        )  # fmt: skip
        query = body.get("query", {"match_all": {}})
        scored: list[tuple[float, str, Doc]]
        if "knn" in body or "knn" in query:
            scored = self.nearest(docs, body)
        else:
            scored = [(1.0, index, doc) for index, doc in docs if self.matches(query, index, doc)]
        total, start = len(scored), body["search_after"][0] + 1 if "search_after" in body else 0
        page = scored[start : start + body["size"]]
        hits = []
        for place, (score, index, doc) in enumerate(page, start):
            source = self.source_of(index, doc, body.get("_source", True))
            hits.append({
                "_index": index, "_id": doc.id, "_score": score,
                **({} if doc.routing is None else {"_routing": doc.routing}),
                **({} if source is None else {"_source": source}),
                **({"_seq_no": doc.seq_no, "_primary_term": 1} if body.get("seq_no_primary_term") else {}),
                **({"sort": [place]} if "sort" in body else {}),
            })  # fmt: skip
        counted = {"total": {"value": total, "relation": "eq"}} if body.get("track_total_hits", True) else {}
        view = {"pit_id": body["pit"]["id"]} if "pit" in body else {}
        return {**view, "timed_out": False, "_shards": {"total": 1, "failed": 0}, "hits": {**counted, "hits": hits}}

    def nearest(self, docs: list[tuple[str, Doc]], body: Mapping[str, Any]) -> list[tuple[float, str, Doc]]:
        if self.elastic:
            known(body["knn"], "field", "query_vector", "k", "num_candidates")
            field, vector, count = body["knn"]["field"], body["knn"]["query_vector"], body["knn"]["k"]
            if not count <= body["knn"]["num_candidates"] <= 10_000:
                raise RefusalError(400, "illegal_argument_exception", "[num_candidates] cannot be less than [k]")
        else:
            ((field, asked),) = body["query"]["knn"].items()
            vector, count = asked["vector"], asked["k"]
        scored = []
        for index, doc in docs:
            if (held := at(doc.source, field)) is not None:
                cosine = float(np.dot(held, vector) / np.linalg.norm(held) / np.linalg.norm(vector))
                scored.append(((1 + cosine) / 2, index, doc))
        return sorted(scored, key=lambda one: -one[0])[:count]

    def matches(self, query: Mapping[str, Any], index: str, doc: Doc) -> bool:
        match dict(query):
            case {"match_all": {}}:
                return True
            case {"ids": {"values": values}}:
                return doc.id in values
            case {"bool": {"filter": filters}}:
                return all(self.matches(one, index, doc) for one in filters)
            case {"exists": {"field": field}}:
                fields = vector_fields(self.indices[index]["mappings"]["properties"])
                return any(not nested and path == field for path, _, nested in fields) and has(doc.source, field)
            case {"nested": {"path": _, "query": {"exists": {"field": field}}}}:
                return has(doc.source, field)
        raise RefusalError(400, "parsing_exception", f"unknown query {query}")

    def source_of(self, index: str, doc: Doc, asked: Any) -> Any:
        """What comes of a document: not the vectors of a newer Elasticsearch, and not what the mapping leaves out."""
        rules, settings = self.indices[index]["mappings"].get("_source", {}), self.indices[index]["settings"]
        if asked is False or rules.get("enabled") is False:
            return None
        if isinstance(asked, dict):
            known(asked, *(["exclude_vectors"] if self.newer else []))
        source = copy.deepcopy(doc.source)
        left_out = list(rules.get("excludes", ()))
        kept = settings.get("mapping", {}).get("exclude_source_vectors") == "false"
        if self.newer and not kept and not (isinstance(asked, dict) and asked.get("exclude_vectors") is False):
            fields = vector_fields(self.indices[index]["mappings"]["properties"])
            left_out += [path for path, definition, _ in fields if definition["type"] != "semantic_text"]
            source.pop("_inference_fields", None)
        for path in left_out:
            drop(source, path)
        return source


def known(given: Mapping[str, Any], *names: str) -> None:
    """Refuse what no documentation names."""
    if unknown := set(given) - set(names):
        raise RefusalError(400, "parsing_exception", f"unknown key {unknown}")


def vector_fields(
    properties: Mapping[str, Any], prefix: str = "", nested: bool = False
) -> Iterator[tuple[str, Any, bool]]:
    for name, definition in properties.items():
        if definition.get("type") in VECTORS:
            yield prefix + name, definition, nested
        inner = nested or definition.get("type") == "nested"
        yield from vector_fields(definition.get("properties", {}), f"{prefix}{name}.", inner)


def at(source: Any, path: str) -> Any:
    for part in path.split("."):
        source = source.get(part) if isinstance(source, dict) else None
    return source


def has(source: Any, path: str) -> bool:
    if isinstance(source, list):
        return any(has(one, path) for one in source)
    first, _, rest = path.partition(".")
    return isinstance(source, dict) and source.get(first) is not None and (not rest or has(source[first], rest))


def drop(source: Any, path: str) -> None:
    first, _, rest = path.partition(".")
    for one in source if isinstance(source, list) else [source]:
        if isinstance(one, dict) and first in one:
            if rest:
                drop(one[first], rest)
            else:
                del one[first]


@contextmanager
def serve(state: StandIn) -> Iterator[str]:
    """The address of a server of this state, while it runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_call(self) -> None:
            url = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            body = text if url.path == "/_bulk" else json.loads(text) if text else None
            status = 200
            state.headers = dict(self.headers.items())
            with state.lock:
                try:
                    reply = state.answer(self.command, url.path, dict(parse_qsl(url.query)), body)
                except RefusalError as error:
                    status, reply = error.status, {"status": error.status, "error": error.error}
                except Exception as error:  # a call that no documentation has
                    status, reply = 400, {"status": 400, "error": f"the stand-in cannot: {error!r}"}
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            if state.elastic:
                self.send_header("x-elastic-product", "Elasticsearch")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = handle_call  # noqa: N815  the names that the base class calls

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
