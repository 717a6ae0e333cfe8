"""A server of Elasticsearch or OpenSearch, spoken to by REST through its official client."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from unpoison.errors import StoreError, UnpoisonError, clip
from unpoison.io.file_rows import json_line
from unpoison.retrieval.search_index import Index
from unpoison.retrieval.store import refuse, unreachable
from unpoison.utils.extras import require

__all__ = ["KEPT_OPEN", "PAGE", "SearchServer", "Secrets", "with_port"]

PAGE = 256
"""Documents of one request."""

BULK = 8 << 20
"""Bytes of one request that writes; a server takes 100 MiB."""

KEPT_OPEN = "10m"
"""How long a reader may be busy with a page before the server lets go of the view that it reads."""

Action = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""What `_bulk` does, and the document that it writes."""


class SearchServer(ABC):
    """The calls that a store makes of one index name.

    Args:
        address: The server's URL.
        index: The name of an index, an alias, or a pattern.
        client: Use this one instead of `address`.

    Raises:
        InputError: The server refuses the address, or the first call.
        MissingExtraError: The client is not installed.
        StoreError: It cannot be reached.

    Attributes:
        name: What messages call the index.
        cluster: The server's own id.
        version: What it says of its version.
    """

    module: ClassVar[str]
    product: ClassVar[str]

    def __init__(self, address: str, index: str, client: Any = None) -> None:
        self.library = require(self.module, f"using {self.product}")
        self.index, self.name = index, f"the {self.product} index {index!r}"
        self._ours = client is None
        try:
            with self.translate_errors():
                self.client = client or self.connect(address)
        except ValueError as error:
            raise refuse(self.name, error, "its URL") from None
        about = self.call("GET", "/")
        self.cluster, self.version = str(about.get("cluster_uuid")), about["version"]

    @property
    @abstractmethod
    def errors(self) -> tuple[type[Exception], ...]:
        """What the client raises."""

    @property
    @abstractmethod
    def order(self) -> list[Mapping[str, Any]]:
        """An order of all documents in which no two are equal."""

    @abstractmethod
    def connect(self, address: str) -> Any:
        """The client."""

    @abstractmethod
    def request(self, method: str, path: str, query: Mapping[str, str], body: Any, content: str) -> Any:
        """One call: the reply's JSON."""

    @abstractmethod
    def open_view(self) -> str:
        """Open a view of the index as it is now; its id."""

    @abstractmethod
    def close_view(self, view: str) -> None:
        """Let go of it."""

    @abstractmethod
    def nearest(self, path: str, vector: list[float], count: int) -> Mapping[str, Any]:
        """The part of a search that asks for the documents nearest to a vector."""

    @abstractmethod
    def plain_vector(self, size: int) -> dict[str, Any]:
        """The mapping of vectors that are compared by cosine."""

    @property
    def whole(self) -> Any:
        """The `_source` that asks for everything of a document."""
        return True

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of an index that is made here."""
        return {}

    def path(self, *parts: str) -> str:
        """The path of the index, and of something of it."""
        return "/".join(["", quote(self.index, safe="*,"), *parts])

    def call(
        self, method: str, path: str, body: Any = None, content: str = "json", documents: int = 0, **query: str
    ) -> Any:
        """One call, with the client's errors as our own; `documents` were read before."""
        with self.translate_errors(documents):
            return self.request(method, path, query, body, f"application/{content}")

    def describe(self) -> dict[str, Index]:
        """The indices behind the name, by their own; none where there is no such name."""
        with self.translate_errors():
            try:
                described = self.request("GET", self.path(), {}, None, "application/json")
            except self.library.NotFoundError:
                return {}
        return {name: Index.read(name, about) for name, about in described.items()}

    def search(self, body: Mapping[str, Any], *, view: str | None = None, documents: int = 0) -> Any:
        """The answer of every shard; an answer of some of them is none.

        Args:
            body: As the server takes it.
            view: Search this view instead of the index.
            documents: How many were read before.

        Raises:
            InputError: The server refuses it.
            StoreError: It cannot be reached, has let go of the view, or a shard did not answer.
        """
        seen = {"_source": self.whole, **body}
        if view is not None:
            seen["pit"] = {"id": view, "keep_alive": KEPT_OPEN}
        found = self.call("POST", self.path("_search") if view is None else "/_search", seen, documents=documents)
        shards = found["_shards"]
        if shards.get("failed") or found.get("timed_out"):
            why = next((failure.get("reason") for failure in shards.get("failures", ())), "out of time")
            raise unreachable(self.name, StoreError(f"of {shards['total']} shards not all answered: {why}"), documents)
        return found

    def write(self, actions: Sequence[Action]) -> None:
        """Do all of this, and wait until searches see it.

        Raises:
            InputError: The server does not take a document.
            StoreError: It cannot be reached, or a document was changed meanwhile.
        """
        lines, size = list[bytes](), 0
        for action, source in actions:
            line = json_line(action) + (b"" if source is None else self._line(source))
            if lines and (size + len(line) > BULK or len(lines) >= PAGE):
                self._send(lines)
                lines, size = [], 0
            lines.append(line)
            size += len(line)
        if lines:
            self._send(lines)

    def close(self) -> None:
        """Let go of connections, where they are our own."""
        if self._ours:
            self.client.close()

    def _line(self, source: Mapping[str, Any]) -> bytes:
        try:
            return json_line(source)
        except (TypeError, ValueError) as error:
            raise refuse(self.name, error, "the document's fields") from None

    def _send(self, lines: Sequence[bytes]) -> None:
        body = b"".join(lines).decode()
        # `_none`: documents that are put back have been through the pipeline when they were first written
        replied = self.call("POST", "/_bulk", body, "x-ndjson", refresh="true", pipeline="_none")
        for item in replied["items"]:
            ((action, result),) = item.items()
            if (error := result.get("error")) is None:
                continue
            why = RuntimeError(f"{result.get('_id')}: {error.get('reason') if isinstance(error, Mapping) else error}")
            if result["status"] == 409:
                raise StoreError(
                    f"the document {clip(result.get('_id'))} of {self.name} was changed by somebody else since it was "
                    f"read, and was left as it is ({action}); run the same command again"
                )
            if result["status"] == 429 or result["status"] >= 500:
                raise unreachable(self.name, why)
            raise refuse(self.name, why, "the mapping, and the vectors' size")

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """What the client raises, as our own errors.

        Args:
            documents: How many were read before.
        """
        try:
            yield
        except UnpoisonError:
            raise
        except self.errors as error:
            status = getattr(error, "status_code", None)
            known = isinstance(status, int) and status < 500 and status not in (408, 429)
            if not known or documents:  # a view that has expired is a 404
                raise unreachable(self.name, error, documents) from error
            raise refuse(self.name, error, "its name, its product and version, and what you may do there") from error


class Secrets:
    """What the environment says for a product.

    Args:
        product: How the variables begin.
    """

    def __init__(self, product: str) -> None:
        self.key = os.environ.get(f"{product}_API_KEY")
        password = os.environ.get(f"{product}_PASSWORD")
        self.login = (os.environ.get(f"{product}_USERNAME", ""), password) if password else None
        self.certificates = os.environ.get(f"{product}_CA_CERTS")


def with_port(address: str) -> str:
    """A URL with the port that is meant where it has none."""
    url = urlsplit(address)
    if url.port is not None or not url.hostname:
        return address
    return url._replace(netloc=f"{url.netloc}:{443 if url.scheme == 'https' else 9200}").geturl()
