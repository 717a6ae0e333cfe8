"""An index of Elasticsearch as a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unpoison.retrieval.search_server import KEPT_OPEN, SearchServer, Secrets, with_port
from unpoison.retrieval.search_store import SearchStore

__all__ = ["ElasticsearchStore"]

MAX_CANDIDATES = 10_000
"""More than that no search looks at."""


class ElasticsearchServer(SearchServer):
    """Elasticsearch 8.12 or later, by a client of the same major version or an earlier one.

    From 9.2 on, the server leaves vectors out of documents unless it is asked for them.
    """

    module, product = "elasticsearch", "Elasticsearch"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return self.library.ApiError, self.library.TransportError

    @property
    def order(self) -> list[Mapping[str, Any]]:
        return [{"_shard_doc": "asc"}]

    def connect(self, address: str) -> Any:
        secrets = Secrets("ELASTICSEARCH")
        options: dict[str, Any] = {"api_key": secrets.key} if secrets.key else {"basic_auth": secrets.login}
        if secrets.certificates:
            options["ca_certs"] = secrets.certificates
        return self.library.Elasticsearch(with_port(address), request_timeout=60, **options)

    def request(self, method: str, path: str, query: Mapping[str, str], body: Any, content: str) -> Any:
        headers = {"accept": "application/json", "content-type": content}
        return self.client.perform_request(method, path, params=query, headers=headers, body=body).body

    def open_view(self) -> str:
        return str(self.call("POST", self.path("_pit"), keep_alive=KEPT_OPEN)["id"])

    def close_view(self, view: str) -> None:
        self.call("DELETE", "/_pit", {"id": view})

    def nearest(self, path: str, vector: list[float], count: int) -> Mapping[str, Any]:
        candidates = min(max(200, 2 * count), MAX_CANDIDATES)
        return {"knn": {"field": path, "query_vector": vector, "k": count, "num_candidates": candidates}}

    def plain_vector(self, size: int) -> dict[str, Any]:
        return {"type": "dense_vector", "dims": size, "index": True, "similarity": "cosine"}

    @property
    def whole(self) -> Any:
        return {"exclude_vectors": False} if self._leaves_vectors_out else True

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"index.mapping.exclude_source_vectors": False} if self._leaves_vectors_out else {}

    @property
    def _leaves_vectors_out(self) -> bool:
        numbers = tuple(int(part) for part in self.version["number"].split(".")[:2])
        return numbers >= (9, 2) or self.version.get("build_flavor") == "serverless"  # which gives an old number


class ElasticsearchStore(SearchStore):
    """As `SearchStore` says, in Elasticsearch.

    The key stands in ELASTICSEARCH_API_KEY, or user and password in ELASTICSEARCH_USERNAME and ELASTICSEARCH_PASSWORD;
    the certificate of a server that signs its own in the file ELASTICSEARCH_CA_CERTS.
    """

    server_type = ElasticsearchServer
