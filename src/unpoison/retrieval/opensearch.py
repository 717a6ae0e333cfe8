"""An index of OpenSearch as a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unpoison.retrieval.search_server import KEPT_OPEN, SearchServer, Secrets, with_port
from unpoison.retrieval.search_store import SearchStore

__all__ = ["OpenSearchStore"]


class OpenSearchServer(SearchServer):
    """OpenSearch 2.4 or later."""

    module, product = "opensearchpy", "OpenSearch"

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (self.library.OpenSearchException,)

    @property
    def order(self) -> list[Mapping[str, Any]]:
        return [{"_doc": "asc"}, {"_id": "asc"}]  # versions before 3.3 have no _shard_doc

    def connect(self, address: str) -> Any:
        secrets = Secrets("OPENSEARCH")
        return self.library.OpenSearch(
            hosts=[with_port(address)], http_auth=secrets.login, verify_certs=True, ca_certs=secrets.certificates,
            timeout=60,
        )  # fmt: skip

    def request(self, method: str, path: str, query: Mapping[str, str], body: Any, content: str) -> Any:
        headers = {"content-type": content}
        return self.client.transport.perform_request(method, path, params=dict(query), body=body, headers=headers)

    def open_view(self) -> str:
        return str(self.call("POST", self.path("_search", "point_in_time"), keep_alive=KEPT_OPEN)["pit_id"])

    def close_view(self, view: str) -> None:
        self.call("DELETE", "/_search/point_in_time", {"pit_id": [view]})

    def nearest(self, path: str, vector: list[float], count: int) -> Mapping[str, Any]:
        return {"query": {"knn": {path: {"vector": vector, "k": count}}}}

    def plain_vector(self, size: int) -> dict[str, Any]:
        method = {"name": "hnsw", "space_type": "cosinesimil", "engine": "lucene"}
        return {"type": "knn_vector", "dimension": size, "method": method}

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"index.knn": True}


class OpenSearchStore(SearchStore):
    """As `SearchStore` says, in OpenSearch.

    User and password stand in OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD; the certificate of a server that signs its
    own in the file OPENSEARCH_CA_CERTS.
    """

    server_type = OpenSearchServer
