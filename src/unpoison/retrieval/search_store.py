"""What the stores of Elasticsearch and OpenSearch have in common: they are spoken to by REST."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from unpoison.errors import InputError, StoreError, UnpoisonError, clip
from unpoison.retrieval.search_index import ORIGIN, Index, held_at, holds, similarity
from unpoison.retrieval.search_server import PAGE, SearchServer
from unpoison.retrieval.store import TEXT_FIELDS, Store, VectorStore, textless

__all__ = ["SearchStore"]
VECTOR = "embedding"
"""The field of vectors in an index that is made here."""


class SearchStore(VectorStore):
    """Every document of an index, of an alias, or of several, by `_id`.

    Where an alias has several indices, a document goes back to the one that it came from, and new ones into its write
    index. What is read cannot be missed or come twice, for it is one view of the index.

    Args:
        address: Its URL; user and password may stand in it, or in the environment.
        index: Its name, that of an alias, or a pattern.
        new: Make the index, when documents are put, if it is not there.
        client: Use this one instead of `address`.

    Raises:
        InputError: There is no such index, and `new` is not set.
        MissingExtraError: The client is not installed.
        StoreError: The server cannot be reached.
    """

    server_type: ClassVar[type[SearchServer]]

    def __init__(self, address: str, index: str, *, new: bool = False, client: Any = None) -> None:
        self.server = self.server_type(address, index, client)
        self.name = self.server.name
        self._versions = dict[str, Mapping[str, Any] | None]()
        if not new and not self.server.describe():
            self.close()
            raise InputError(f"{self.name} is not there; name one that is, or make it")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        indices = self.server.describe()
        if not indices:
            return
        view, after, count, total = self.server.open_view(), None, 0, 0
        try:
            while True:
                body = {
                    "size": PAGE, "sort": self.server.order, "track_total_hits": after is None,
                    **({} if after is None else {"search_after": after}),
                }  # fmt: skip
                found = self.server.search(body, view=view, documents=count)
                total = found["hits"]["total"]["value"] if after is None else total
                if not (hits := found["hits"]["hits"]):
                    break
                view, after, count = found.get("pit_id", view), hits[-1]["sort"], count + len(hits)
                yield from (self._row(hit, self._index_of(hit, indices)) for hit in hits)
        finally:
            with suppress(UnpoisonError):  # which the server lets go of by itself
                self.server.close_view(view)
        if count != total:
            raise StoreError(f"{self.name} gave {count:,} of its {total:,} documents; run the same command again")

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        indices = self.server.describe()
        if not indices or not count:
            return []
        field = next(filter(None, (index.searched for index in indices.values())), None)
        if field is None:
            raise InputError(f"the mapping of {self.name} has no vectors that could be searched")
        if field.dimensions not in (None, len(vector)):
            raise InputError(f"the query has {len(vector)} dimensions and {self.name} {field.dimensions}")
        found = self.server.search({**self.server.nearest(field.path, list(vector), count), "size": count})
        hits = [
            {**self._row(h, self._index_of(h, indices)), "score": float(h["_score"])} for h in found["hits"]["hits"]
        ]
        if field.measure and all(len(hit["embedding"] or ()) == len(vector) for hit in hits):
            for hit in hits:  # of each engine and version the server's own is another function of it
                hit["score"] = similarity(field.measure, vector, hit["embedding"])
        return sorted(hits, key=lambda hit: -hit["score"])

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        index = next(iter(self.server.describe().values()), None)
        schema = index.schema if index else self._plain_schema(len(fields["embedding"]))
        vector = VECTOR if index is None else index.searched.path if index.searched else None
        others = {name: value for name, value in fields.items() if name not in ("id", "text", "embedding") and value}
        if index and str(index.mapping.get("dynamic")).lower() == "strict":
            others = {name: value for name, value in others.items() if name in index.mapping.get("properties", {})}
        source = {**others, schema["text"]: fields["text"], **({vector: list(fields["embedding"])} if vector else {})}
        return {"id": fields["id"], "source": source, "schema": schema}

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        indices = self.server.describe()
        if not ids or not indices:
            return {}
        for index in indices.values():
            if (why := index.loss()) is not None:
                raise InputError(
                    f"no document of {self.name} could be put back as it was: {why} ({index.name}); reindex into an "
                    "index that keeps documents as they are, and name that one"
                )
        raw, versions = dict[str, Mapping[str, Any]](), dict[str, Mapping[str, Any] | None].fromkeys(ids)
        for hit in self._hits(ids, indices, whole=True):
            name = hit["_id"]
            if name in raw:  # of two indices, or with two routings: both would be taken out, and one put back
                raise InputError(f"{self.name} has several documents named {clip(name)}; give each an id of its own")
            source = dict(hit["_source"])
            origin = source.pop(ORIGIN, hit["_index"] if len(indices) > 1 else None)
            raw[name], versions[name] = {
                "id": name, "source": source, "schema": self._index_of(hit, indices).schema,
                **({"routing": hit["_routing"]} if "_routing" in hit else {}),
                **({"index": origin} if origin is not None else {}),
            }, {part: value for part, value in hit.items() if part != "_source"}  # fmt: skip
        self._versions = versions
        return {name: raw[name] for name in ids if name in raw}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        rows = list(raw.values())
        if any("source" not in row or "schema" not in row for row in rows):
            raise InputError(
                f"{self.name} takes documents of {self.server.product}; move documents to a store of their kind"
            )
        if not rows:
            return
        if not (indices := self.server.describe()):
            self._make(rows[0]["schema"])
            indices = self.server.describe()
        self.server.write([self._index_action(row, indices) for row in rows])

    def take(self, ids: Collection[str]) -> None:
        indices = self.server.describe()
        if not ids or not indices:
            return
        known = [hit for name in ids if (hit := self._versions.get(name)) is not None]
        others = set(ids).difference(hit["_id"] for hit in known)
        hits = [*known, *(self._hits(sorted(others), indices) if others else ())]
        for name in ids:
            self._versions.pop(name, None)
        self.server.write(
            [({"delete": _place(hit["_index"], hit["_id"], hit.get("_routing"), hit)}, None) for hit in hits]
        )

    def shares_with(self, other: Store) -> bool:
        if not isinstance(other, SearchStore) or self.server.cluster != other.server.cluster:
            return super().shares_with(other)
        return super().shares_with(other) or not self.server.describe().keys().isdisjoint(other.server.describe())

    def close(self) -> None:
        self.server.close()

    def _index_of(self, hit: Mapping[str, Any], indices: Mapping[str, Index]) -> Index:
        if hit["_index"] not in indices:
            raise StoreError(f"{self.name} has other indices than a moment ago; run the same command again")
        return indices[hit["_index"]]

    def _hits(self, ids: Collection[str], indices: Mapping[str, Index], *, whole: bool = False) -> Iterator[Any]:
        """The documents of these ids as they are now.

        Args:
            ids: Which.
            indices: That have them.
            whole: Make sure that they have come with their vectors.
        """
        self.server.call("POST", self.server.path("_refresh"))
        names = list(dict.fromkeys(ids))
        for start in range(0, len(names), PAGE):
            by_id = {"ids": {"values": names[start : start + PAGE]}}
            body = {"query": by_id, "size": 2 * PAGE, "seq_no_primary_term": True, "track_total_hits": True}
            found = self.server.search(body)["hits"]
            if found["total"]["value"] > len(found["hits"]):
                raise InputError(f"{self.name} has several documents of one id; give each an id of its own")
            if whole:
                self._check_vectors(found["hits"], by_id, indices)
            yield from found["hits"]

    def _check_vectors(self, hits: Sequence[Any], by_id: Mapping[str, Any], indices: Mapping[str, Index]) -> None:
        """Refuse documents whose vectors the server has and did not send.

        Raises:
            InputError: They were left out.
        """
        fields = {(field.path, field.nested): field for index in indices.values() for field in index.vectors}
        for field in fields.values():
            without = {(hit["_index"], hit["_id"]) for hit in hits if not holds(hit.get("_source"), field)}
            if not without:
                continue
            body = {"query": {"bool": {"filter": [by_id, field.exists]}}, "size": 2 * PAGE, "_source": False}
            for hit in self.server.search(body)["hits"]["hits"]:
                if (hit["_index"], hit["_id"]) in without:
                    raise InputError(
                        f"{self.name} has vectors of {clip(hit['_id'])} in {field.path!r} and leaves them out of the "
                        "document, which could so not be put back as it was; reindex into an index that keeps vectors "
                        "in _source, and name that one"
                    )

    def _index_action(self, row: Mapping[str, Any], indices: Mapping[str, Index]) -> tuple[Any, Any]:
        """The action that writes a document to its place, and the document."""
        origin, source = row.get("index"), row["source"]
        target = origin if origin is not None and origin in indices else self._write_index(origin, indices)
        if origin is not None and len(indices) == 1 and target != origin:
            source = {**source, ORIGIN: origin}
        seen = self._versions.pop(row["id"], None) if row["id"] in self._versions else {}
        place = _place(target, row["id"], row.get("routing"), seen or {})
        return {"create" if seen is None else "index": place}, source

    def _write_index(self, origin: str | None, indices: Mapping[str, Index]) -> str:
        """Where a document goes that came from none of these indices."""
        if origin is not None and len(indices) > 1:
            raise InputError(
                f"{self.name} is {', '.join(sorted(indices))}, and a document came from {clip(origin)}; name the index "
                "that it shall go to"
            )
        writing = [name for name, index in indices.items() if len(indices) == 1 or self.server.index in index.writes]
        if not writing:
            raise InputError(
                f"{self.name} is {clip(', '.join(sorted(indices)), 200)}, and none of them is its write index; name "
                "the one that new documents shall go to"
            )
        return writing[0]

    def _plain_schema(self, size: int) -> dict[str, Any]:
        return {"text": TEXT_FIELDS[0], "vectors": {VECTOR: self.server.plain_vector(size)}}

    def _make(self, schema: Mapping[str, Any]) -> None:
        """Make an index with these vectors that keeps all other fields as they are, unread."""
        text = {} if schema["text"] in schema["vectors"] else {schema["text"]: {"type": "text"}}
        mapping = {"dynamic": False, "properties": {**text, **schema["vectors"]}}
        self.server.call("PUT", self.server.path(), {"mappings": mapping, "settings": self.server.settings})

    def _row(self, hit: Mapping[str, Any], index: Index) -> dict[str, Any]:
        source = hit.get("_source")
        if source is None:
            raise InputError(f"{self.name} gives no documents back ({index.loss() or 'without _source'})")
        text = next((source[name] for name in TEXT_FIELDS if isinstance(source.get(name), str)), None)
        if text is None:
            raise textless(self.name, hit["_id"])
        vector = held_at(source, index.searched.path) if index.searched else None
        inner = source.get("metadata")
        fields = {**inner, **source} if isinstance(inner, Mapping) else source
        usable = isinstance(vector, list) and bool(vector) and isinstance(vector[0], float | int)
        return {
            **{name: value for name, value in fields.items() if name != ORIGIN},
            "id": hit["_id"], "text": text, "embedding": vector if usable else None,
        }  # fmt: skip


def _place(index: str, name: str, routing: str | None, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Where an action happens, and which version of the document must still be there."""
    version = {f"if{part}": seen[part] for part in ("_seq_no", "_primary_term") if part in seen}
    return {"_index": index, "_id": name, **({} if routing is None else {"routing": routing}), **version}
