"""A Chroma collection as a store: in a folder, or on a server."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unpoison.errors import InputError, UnpoisonError, clip
from unpoison.retrieval.store import VectorStore, refuse, textless, unreachable
from unpoison.utils.checks import direct
from unpoison.utils.extras import require

__all__ = ["ChromaStore"]

PAGE = 256
"""Documents per request."""

_PARTS = ["documents", "metadatas", "embeddings", "uris"]


class ChromaStore(VectorStore):
    """The documents of a collection, by Chroma's ids.

    Nothing is embedded here: the collection's own embedding function is never loaded. Chroma scales the vectors of a
    cosine collection, so that they come back within 1e-6 of what was written; those of others come back exactly.

    Args:
        address: A folder, or the URL of a server (its token in CHROMA_API_KEY; CHROMA_TENANT and CHROMA_DATABASE).
        collection: The name of the collection.
        new: Create the collection with the first documents if it is missing.
        client: A client to use instead of `address`.

    Raises:
        InputError: There is no such collection, and `new` is not set.
        MissingExtraError: chromadb is not installed.
        StoreError: The server cannot be reached.
    """

    def __init__(self, address: str, collection: str, *, new: bool = False, client: Any = None) -> None:
        self.library = require("chromadb", "using Chroma")
        self.collection, self.name = collection, f"the Chroma collection {collection!r}"
        self._ours = client is None
        with self.translate_errors():
            self.client = client or self._connect(address, new)
        if not new and self._opened() is None:
            with self.translate_errors():
                held = [str(getattr(one, "name", one)) for one in self.client.list_collections(limit=10)]
            named = ", ".join(map(clip, held)) or "there is none"
            raise InputError(f"{self.name} does not exist; name an existing one ({named}), or create it")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        collection = self._opened()
        if collection is None:
            return
        with self.translate_errors():
            ids = collection.get(include=[])["ids"]  # pages by offset would skip concurrently moved documents
        for start in range(0, len(ids), PAGE):
            with self.translate_errors(start):
                raw = self._raw(collection, ids[start : start + PAGE])
            yield from (self._row(raw[name]) for name in ids[start : start + PAGE] if name in raw)

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        collection = self._opened()
        if collection is None or not count:
            return []
        with self.translate_errors():
            found = collection.query(query_embeddings=[list(vector)], n_results=count, include=["distances"])
            raw = self._raw(collection, found["ids"][0])
        whole = 0.0 if _space(collection) == "l2" else 1.0
        return [
            {**self._row(raw[name]), "score": whole - float(distance)}
            for name, distance in zip(found["ids"][0], found["distances"][0], strict=True)
            if name in raw
        ]

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        collection = self._opened()
        if collection is None or not ids:
            return {}
        with self.translate_errors():
            return self._raw(collection, list(ids))

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        whole = {name: fields[name] for name in ("title", "source") if fields.get(name)}
        metadata = {**fields.get("metadata", {}), **whole}
        return {
            "id": fields["id"], "document": fields["text"], "metadata": metadata or None, "uri": None,
            "embedding": list(fields["embedding"]), "space": "cosine",
        }  # fmt: skip

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        rows = list(raw.values())
        if any("document" not in row or "space" not in row for row in rows):
            raise InputError(f"{self.name} accepts documents of Chroma; move documents to a store of the same kind")
        if not rows:
            return
        with self.translate_errors():
            collection = self._opened() or self.client.create_collection(
                self.collection, embedding_function=None, configuration={"hnsw": {"space": rows[0]["space"]}}
            )
            held = self._raw(collection, list(raw))
            if held:  # an upsert would keep old metadata fields
                collection.delete(ids=list(held))
            for some in (rows[start : start + PAGE] for start in range(0, len(rows), PAGE)):
                fields = {f"{part}s": [row[part] for row in some] for part in ("id", "document", "metadata")}
                vectors, uris = [row["embedding"] for row in some], [row["uri"] for row in some]
                given = uris if any(uri is not None for uri in uris) else None
                collection.add(**fields, embeddings=vectors, uris=given)

    def take(self, ids: Collection[str]) -> None:
        collection = self._opened()
        if collection is None or not ids:
            return
        with self.translate_errors():
            there = collection.get(ids=list(ids), include=[])["ids"]
            if there:
                collection.delete(ids=there)

    def close(self) -> None:
        if self._ours:
            self.client.close()

    def _connect(self, address: str, new: bool) -> Any:
        place = {name: value for name in ("tenant", "database") if (value := os.environ.get(f"CHROMA_{name.upper()}"))}
        if "://" in address:
            url, key = urlsplit(address), os.environ.get("CHROMA_API_KEY")
            with direct(address):
                return self.library.HttpClient(
                    host=url.hostname, port=url.port or (443 if url.scheme == "https" else 8000),
                    ssl=url.scheme == "https", headers={"x-chroma-token": key} if key else None, **place,
                )  # fmt: skip
        if not new and not Path(address, "chroma.sqlite3").is_file():  # the client would create an empty one
            raise InputError(f"there is no Chroma database in {address!r}; name the folder of a PersistentClient")
        return self.library.PersistentClient(path=address, **place)  # settings must equal those of other clients

    def _opened(self) -> Any:
        """The collection; None if it is missing."""
        with self.translate_errors():
            try:
                return self.client.get_collection(self.collection, embedding_function=None)
            except self.library.errors.NotFoundError:
                return None

    def _raw(self, collection: Any, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        got, space = collection.get(ids=list(ids), include=_PARTS), _space(collection)
        columns = (got["ids"], got["documents"], got["metadatas"], got["uris"], got["embeddings"])
        return {
            name: {
                "id": name, "document": text, "metadata": None if metadata is None else dict(metadata), "uri": uri,
                "embedding": [float(value) for value in vector], "space": space,
            }
            for name, text, metadata, uri, vector in zip(*columns, strict=True)
        }  # fmt: skip

    def _row(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        if raw["document"] is None:
            raise textless(self.name, raw["id"])
        return {
            **(raw["metadata"] or {}), "id": raw["id"], "text": raw["document"], "embedding": raw["embedding"],
        }  # fmt: skip

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """Translate errors of the client.

        Args:
            documents: Number of documents read before.
        """
        errors = self.library.errors
        try:
            yield
        except UnpoisonError:
            raise
        except (errors.InternalError, errors.RateLimitError, OSError) as error:
            raise unreachable(self.name, error, documents) from error
        except (errors.ChromaError, ValueError, TypeError) as error:
            if str(error).startswith("Could not connect"):  # the client raises a ValueError for it
                raise unreachable(self.name, error, documents) from error
            raise refuse(self.name, error, "its name, and the vectors' size") from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] not in ("httpx", "httpcore"):
                raise
            raise unreachable(self.name, error, documents) from error


def _space(collection: Any) -> str:
    """`l2`, `cosine` or `ip`."""
    configuration = collection.configuration_json or {}
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return str(index.get("space", "l2"))
