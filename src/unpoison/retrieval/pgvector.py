"""A PostgreSQL table with pgvector: searched as a retriever, and read whole and changed as a store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import numpy as np

from unpoison.core.passages import Passage, Vector
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval.base import BATCH, VectorRetriever, check_encoder, vectors_of
from unpoison.retrieval.store import VectorStore, refuse, unreachable
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.utils.extras import require

__all__ = ["PgvectorRetriever", "PgvectorStore"]

PAGE = 1_000
"""Rows that are fetched at once."""

VECTOR = "embedding"
"""The column of the vectors in a table that is read whole."""


class PgvectorStore(VectorStore):
    """A table with `id`, `text` and perhaps `embedding`, `title`, `source`, `author`, `added_at` and others.

    Args:
        address: The database, as psycopg takes it.
        table: Its name, or `schema.name`.
        new: Make it like the rows that are put, if it is not there.
        connection: Use this one instead of `address`.

    Raises:
        InputError: There is no such table, and `new` is not set.
        MissingExtraError: psycopg is not installed.
        StoreError: The server cannot be reached.
    """

    def __init__(self, address: str, table: str, *, new: bool = False, connection: Any = None) -> None:
        self.library = require("psycopg", "using PostgreSQL")
        self.table, self.name, self._ours = table, f"the table {table!r}", connection is None
        with self.translate_errors():
            self.connection = connection or self.library.connect(address)
        if not new and not self._types():
            raise InputError(f"{self.name} is not there, or has no columns; name one that is")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        types = self._types()
        for row in self._select(types) if types else ():
            if row.get("text") is None:
                raise self.textless(row.get("id"))
            yield row

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        types = self._types()
        raw = dict[str, Mapping[str, Any]]()
        for row in self._select(types, list(ids), as_text=True) if types and ids else ():
            if row["id"] in raw:  # both would be taken out, and one put back
                raise InputError(f"{self.name} has several rows named {clip(row['id'])}; give each an id of its own")
            raw[row["id"]] = {"id": row["id"], "row": row, "types": types}
        return raw

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        sql, types = self.library.sql, self._types()
        if not types or not count:
            return []
        if VECTOR not in types:
            raise InputError(f"{self.name} has no column {VECTOR}; nothing can be searched in it")
        nearest = sql.SQL(_NEAREST).format(table=self.identifier, vector=sql.Identifier(VECTOR))
        with self.translate_errors(), self.connection.transaction():
            asked = {"vector": list(vector), "count": count}
            distances = dict(self.connection.execute(nearest, asked).fetchall())
        held = {row["id"]: row for row in self._select(types, list(distances))}
        for row in held.values():
            if row.get("text") is None:
                raise self.textless(row.get("id"))
        return [
            {**held[name], "score": 0.0 if np.isnan(distance) else 1.0 - distance}
            for name, distance in distances.items()
            if name in held
        ]

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        types = self._types() or {**_PLAIN, VECTOR: f"vector({len(fields[VECTOR])})"}
        values = {**fields.get("metadata", {}), **fields}
        row = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name in types
            if (value := values.get(name)) is not None
        }
        return {"id": fields["id"], "row": row, "types": types}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        sql = self.library.sql
        if any("row" not in one or "types" not in one for one in raw.values()):
            raise InputError(f"{self.name} takes rows of PostgreSQL; move documents to a store of their kind")
        if not raw:
            return
        with self.translate_errors(), self.connection.transaction():
            if not self._types():
                self._make(next(iter(raw.values()))["types"])
            rows, types = [one["row"] for one in raw.values()], self._types()
            names = [name for name in types if any(name in row for row in rows)]
            insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(
                self.identifier,
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join(sql.SQL(f"%s::{types[name]}") for name in names),
            )
            self.take(raw)
            with self.connection.cursor() as cursor:
                cursor.executemany(insert, [[row.get(name) for name in names] for row in rows])

    def take(self, ids: Collection[str]) -> None:
        sql = self.library.sql
        with self.translate_errors(), self.connection.transaction():
            self.connection.execute(
                sql.SQL("DELETE FROM {} WHERE id::text = ANY(%s)").format(self.identifier), [list(ids)]
            )

    def close(self) -> None:
        if self._ours:
            self.connection.close()

    def _make(self, types: Mapping[str, str]) -> None:
        """A table with these columns."""
        sql = self.library.sql
        columns = [
            sql.SQL("{} ").format(sql.Identifier(name)) + sql.SQL(f"{kind} PRIMARY KEY" if name == "id" else kind)
            for name, kind in types.items()
        ]
        self.connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self.identifier, sql.SQL(", ").join(columns)))

    def _select(
        self, types: Mapping[str, str], ids: list[str] | None = None, *, as_text: bool = False
    ) -> Iterator[dict[str, Any]]:
        """All rows, or those of these ids; as text, every value is as exact as PostgreSQL writes it."""
        sql, names, count = self.library.sql, list(types), 0
        fields = [
            sql.SQL("{}::text" if as_text or name == "id" else "{}::real[]" if name == VECTOR else "{}").format(
                sql.Identifier(name)
            )
            for name in names
        ]
        select = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(fields), self.identifier)
        where, values = ("", None) if ids is None else (" WHERE id::text = ANY(%s)", [ids])
        with (
            self.translate_errors(),
            self.connection.transaction(),
            self.connection.cursor("unpoison_rows") as cursor,
        ):
            cursor.itersize = PAGE
            cursor.execute(select + sql.SQL(where), values)
            while True:
                with self.translate_errors(count):
                    rows = cursor.fetchmany(PAGE)
                if not rows:
                    return
                count += len(rows)
                yield from (dict(zip(names, row, strict=True)) for row in rows)

    def _types(self) -> dict[str, str]:
        """The columns with their types, without those that PostgreSQL computes; none where there is no table."""
        with self.translate_errors(), self.connection.transaction():
            described = self.connection.execute(
                "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND attgenerated = '' "
                "ORDER BY attnum",
                [".".join(f'"{part}"' for part in self.table.replace('"', '""').split("."))],
            ).fetchall()
        return dict(described)

    @property
    def identifier(self) -> Any:
        """The table's name, quoted."""
        return self.library.sql.Identifier(*self.table.split("."))

    def textless(self, name: object) -> InputError:
        """The error for a row without a text."""
        return InputError(f"the row {clip(name)} of {self.name} has no text; fill it, or name a view without it")

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """What psycopg raises, as our own errors.

        Args:
            documents: How many were read before.
        """
        errors = self.library
        try:
            yield
        except (errors.OperationalError, errors.InterfaceError) as error:
            raise unreachable(self.name, error, documents) from error
        except (errors.Error, UnicodeError) as error:  # texts that are no UTF-8
            raise refuse(self.name, error, "the table's columns and the vectors' size") from error


class PgvectorRetriever(VectorRetriever):
    """The rows of a table that are nearest by cosine distance (`<=>`), with the vectors that it holds.

    The table needs columns such as `id text PRIMARY KEY, text text NOT NULL, embedding vector(384)`; an index
    `USING hnsw (embedding vector_cosine_ops)` is used. Names are quoted and values passed apart from the statement.
    Nothing is registered on the connection. Rows without an embedding are not found. Equal distances are ordered by
    id; of equal ones on the border the database chooses. Searching raises an InputError if there is no such table or
    column, if the dimensions are others, or if a row has no text; a StoreError if the server cannot be reached.

    Args:
        connection: Your `psycopg.Connection`, or `AsyncConnection` for `aretrieve` alone, best one that nobody else
            uses meanwhile. Each call is a transaction of its own, or part of the one that is open; one at a time.
        table: Its name, or `schema.name`; a view for searching part of a table.
        encoder: Made, and makes, the vectors; or its string, such as "minilm".
        columns: Which columns hold id, text, embedding, and title and source where there are any.
        sources: With it the score is multiplied by the trust in a passage's source (`retrieval.base`).

    Raises:
        OptionError: `columns` lacks one of the first three or names others, or the encoder's vectors hold for the
            texts of one call only.
        MissingExtraError: psycopg is not installed.
    """

    def __init__(
        self,
        connection: Any,
        table: str,
        encoder: Encoder | str,
        *,
        columns: Mapping[str, str] | None = None,
        sources: SourcesOption = None,
    ) -> None:
        self.sources = Sources.of(sources)
        self._store = PgvectorStore("", table, new=True, connection=connection)
        self.encoder = check_encoder(encoder)
        self.table = table
        self._connection = connection
        self._turn, self._aturn = Lock(), asyncio.Lock()  # the transactions of one connection only nest
        self._asynchronous = isinstance(connection, self._store.library.AsyncConnection)
        named = {"id": "id", "text": "text", "embedding": "embedding"} if columns is None else dict(columns)
        if not {"id", "text", "embedding"} <= named.keys() <= {*FIELDS, "embedding"}:
            raise OptionError(
                "columns must name those of id, text and embedding, and may name those of title and source, got "
                f"{clip(sorted(named))}"
            )
        self._fields = [field for field in FIELDS if field in named]
        self._search, self._insert, self._delete = self._statements(named)

    def add(self, passages: Iterable[Any]) -> None:
        """Write passages into the table, all or none, encoded where they bring no embedding.

        A passage whose id is there replaces the one that was there.

        Raises:
            InputError: An unusable passage, one without an id, or what the table does not take.
            ModelError: The encoder failed.
            OptionError: The connection is asynchronous.
            StoreError: The server cannot be reached.
        """
        self._must_be_synchronous("add")
        new = [Passage.of(value, position) for position, value in enumerate(passages)]
        for position, passage in enumerate(new):
            if passage.id is None:
                raise InputError(f"passages[{position}] has no id, which a row of {self!r} needs; give it one")
        with (
            self._turn,
            self._store.translate_errors(),
            self._connection.transaction(),
            self._connection.cursor() as cursor,
        ):
            for start in range(0, len(new), BATCH):
                some = new[start : start + BATCH]
                rows = zip(some, vectors_of(some, self.encoder), strict=True)
                cursor.executemany(self._insert, [[*self._values(p), vector.tolist()] for p, vector in rows])

    def remove(self, ids: Iterable[str]) -> int:
        """Delete the rows with these ids; how many there were. Ids that no row has are passed over.

        Raises:
            InputError: There is no such table or column.
            OptionError: The connection is asynchronous.
            StoreError: The server cannot be reached.
        """
        self._must_be_synchronous("remove")
        with self._turn, self._store.translate_errors(), self._connection.transaction():
            return int(self._connection.execute(self._delete, [list(ids)]).rowcount)

    async def _anearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        if not self._asynchronous:
            return await super()._anearest(vector, count)
        with self._store.translate_errors():
            async with self._aturn, self._connection.transaction():
                cursor = await self._connection.execute(self._search, self._parameters(vector, count))
                rows = await cursor.fetchall()
        return tuple(map(self._passage, rows))

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        self._must_be_synchronous("retrieve")
        with self._turn, self._store.translate_errors(), self._connection.transaction():
            rows = self._connection.execute(self._search, self._parameters(vector, count)).fetchall()
        return tuple(map(self._passage, rows))

    def _statements(self, columns: Mapping[str, str]) -> tuple[Any, Any, Any]:
        """The search, the insertion and the deletion, every name quoted."""
        sql = self._store.library.sql
        names = [sql.Identifier(columns[field]) for field in self._fields]
        parts = {
            "table": self._store.identifier,
            "id": sql.Identifier(columns["id"]),
            "embedding": sql.Identifier(columns["embedding"]),
            "fields": sql.SQL(", ").join(names),
            "texts": sql.SQL(", ").join(sql.SQL("{}::text").format(name) for name in names),
            "values": sql.SQL(", ").join(sql.Placeholder() for _ in names),
            "changes": sql.SQL(", ").join(
                sql.SQL("{0} = excluded.{0}").format(name)
                for name in [*names[1:], sql.Identifier(columns["embedding"])]
            ),
        }
        search, insert, delete = (sql.SQL(text).format(**parts) for text in (_SEARCH, _INSERT, _DELETE))
        return search, insert, delete

    def _parameters(self, vector: Vector, count: int) -> dict[str, Any]:
        return {"vector": vector.tolist(), "count": count}

    def _values(self, passage: Passage) -> list[str | None]:
        return [getattr(passage, field) for field in self._fields]

    def _passage(self, row: Sequence[Any]) -> Passage:
        *values, embedding, distance = row
        fields = dict(zip(self._fields, values, strict=True))
        if fields["text"] is None:
            raise self._store.textless(fields["id"])
        score = 0.0 if np.isnan(distance) else 1.0 - distance  # a vector of length 0 has no cosine
        return Passage(**fields, score=score, embedding=embedding)

    def _must_be_synchronous(self, method: str) -> None:
        if self._asynchronous:
            raise OptionError(
                f"{method} needs a psycopg.Connection, and this retriever has an AsyncConnection; use aretrieve, or "
                "another connection"
            )

    def __repr__(self) -> str:
        return f"PgvectorRetriever({self.table!r}, encoder={self.encoder.name!r})"  # never the connection


FIELDS = ("id", "text", "title", "source")


_PLAIN = {"id": "text", "text": "text", "title": "text", "source": "text", "metadata": "jsonb"}
"""The columns of a table that is made for documents from elsewhere, beside that of the vectors."""

_NEAREST = """
SELECT id::text, {vector} <=> %(vector)s::float8[]::vector AS unpoison_distance FROM {table}
WHERE {vector} IS NOT NULL ORDER BY {vector} <=> %(vector)s::float8[]::vector LIMIT %(count)s"""

_SEARCH = """
SELECT {texts}, {embedding}::real[], unpoison_distance FROM (
  SELECT {fields}, {embedding}, {embedding} <=> %(vector)s::float8[]::vector AS unpoison_distance FROM {table}
  WHERE {embedding} IS NOT NULL ORDER BY {embedding} <=> %(vector)s::float8[]::vector LIMIT %(count)s
) AS found ORDER BY unpoison_distance, {id}"""
"""With the id in the inner order, PostgreSQL up to 16 would not use the index."""

_INSERT = """
INSERT INTO {table} ({fields}, {embedding}) VALUES ({values}, %s::float8[]::vector)
ON CONFLICT ({id}) DO UPDATE SET {changes}"""

_DELETE = "DELETE FROM {table} WHERE {id} = ANY(%s)"
