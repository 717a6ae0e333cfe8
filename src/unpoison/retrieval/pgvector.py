"""A PostgreSQL table with pgvector as a store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from unpoison.errors import InputError, clip
from unpoison.retrieval.store import VectorStore, refuse, textless, unreachable
from unpoison.utils.extras import require

__all__ = ["PgvectorStore"]

PAGE = 1_000
"""Rows per fetch."""

VECTOR = "embedding"
"""The vector column."""


class PgvectorStore(VectorStore):
    """A table with `id`, `text` and perhaps `embedding`, `title`, `source`, `author`, `added_at` and others.

    Args:
        address: The database, as for psycopg.
        table: The name of the table, or `schema.name`.
        new: Create the table with the columns of the first rows if it is missing.
        connection: A connection to use instead of `address`.

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
            raise InputError(f"{self.name} does not exist, or has no columns; name an existing one")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        types = self._types()
        for row in self._select(types) if types else ():
            if row.get("text") is None:
                raise textless(self.name, row.get("id"))
            yield row

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        types = self._types()
        raw = dict[str, Mapping[str, Any]]()
        for row in self._select(types, list(ids), as_text=True) if types and ids else ():
            if row["id"] in raw:  # both would be removed, and one restored
                raise InputError(f"{self.name} has several rows named {clip(row['id'])}; ids must be unique")
            raw[row["id"]] = {"id": row["id"], "row": row, "types": types}
        return raw

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        sql, types = self.library.sql, self._types()
        if not types or not count:
            return []
        if VECTOR not in types:
            raise InputError(f"{self.name} has no column {VECTOR}, so it cannot be searched")
        nearest = sql.SQL(_NEAREST).format(table=self.identifier, vector=sql.Identifier(VECTOR))
        with self.translate_errors(), self.connection.transaction():
            asked = {"vector": list(vector), "count": count}
            distances = dict(self.connection.execute(nearest, asked).fetchall())
        held = {row["id"]: row for row in self._select(types, list(distances))}
        for row in held.values():
            if row.get("text") is None:
                raise textless(self.name, row.get("id"))
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
            raise InputError(f"{self.name} accepts rows of PostgreSQL; move documents to a store of the same kind")
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
            delete = sql.SQL("DELETE FROM {} WHERE id::text = ANY(%s)").format(self.identifier)
            self.connection.execute(delete, [list(ids)])

    def close(self) -> None:
        if self._ours:
            self.connection.close()

    def _make(self, types: Mapping[str, str]) -> None:
        """Create the table with these columns."""
        sql = self.library.sql
        columns = [
            sql.SQL("{} ").format(sql.Identifier(name)) + sql.SQL(f"{kind} PRIMARY KEY" if name == "id" else kind)
            for name, kind in types.items()
        ]
        self.connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self.identifier, sql.SQL(", ").join(columns)))

    def _select(
        self, types: Mapping[str, str], ids: list[str] | None = None, *, as_text: bool = False
    ) -> Iterator[dict[str, Any]]:
        """All rows, or those of these ids, as text, which keeps the full precision."""
        sql, names, count = self.library.sql, list(types), 0
        fields = [
            sql.SQL("{}::text" if as_text or name == "id" else "{}::real[]" if name == VECTOR else "{}").format(
                sql.Identifier(name)
            )
            for name in names
        ]
        select = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(fields), self.identifier)
        where, values = ("", None) if ids is None else (" WHERE id::text = ANY(%s)", [ids])
        with self.translate_errors(), self.connection.transaction(), self.connection.cursor("unpoison_rows") as cursor:
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
        """The columns with their types, without generated ones; none if the table is missing."""
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

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """Translate errors of psycopg.

        Args:
            documents: Number of documents read before.
        """
        errors = self.library
        try:
            yield
        except (errors.OperationalError, errors.InterfaceError) as error:
            raise unreachable(self.name, error, documents) from error
        except (errors.Error, UnicodeError) as error:  # texts that are not UTF-8
            raise refuse(self.name, error, "the table's columns and the vectors' size") from error


_PLAIN = {"id": "text", "text": "text", "title": "text", "source": "text", "metadata": "jsonb"}
"""Columns of a new table for documents from elsewhere, beside the vector column."""

_NEAREST = """
SELECT id::text, {vector} <=> %(vector)s::float8[]::vector AS unpoison_distance FROM {table}
WHERE {vector} IS NOT NULL ORDER BY {vector} <=> %(vector)s::float8[]::vector LIMIT %(count)s"""
