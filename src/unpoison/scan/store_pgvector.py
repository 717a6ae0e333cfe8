"""A PostgreSQL table with pgvector as a store: every row with all its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from unpoison.errors import InputError, StoreError, clip
from unpoison.scan.documents import Document
from unpoison.scan.stores import Store
from unpoison.utils.extras import require

__all__ = ["PgvectorStore"]

PAGE = 1_000
"""Rows that are fetched at once."""

VECTOR = "embedding"


class PgvectorStore(Store):
    """A table with `id`, `text` and perhaps `embedding`, `title`, `source`, `author`, `added_at` and others.

    Args:
        address: The database, as psycopg takes it.
        table: Its name, or `schema.name`.
        new: Make it like the rows that are put, if it is not there.
        connection: Use this one instead of `address`.
    """

    def __init__(self, address: str, table: str, *, new: bool = False, connection: Any = None) -> None:
        self._library = require("psycopg", "reading a PostgreSQL table")
        self.table, self.name, self._ours = table, f"the table {table!r}", connection is None
        with self._translate_errors(0):
            self._connection = connection or self._library.connect(address)
        if not new and not self._columns():
            raise InputError(f"{self.name} is not there, or has no columns; name one that is")

    def documents(self) -> Iterator[Document]:
        for row in self._rows("", None):
            if row.get("text") is None:
                raise InputError(f"the row {clip(row.get('id'))} of {self.name} has no text; fill it, or scan a view")
            yield Document.of({name: value for name, value in row.items() if value is not None and name != "score"})

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        if not self._columns():
            return {}
        return {str(row["id"]): row for row in self._rows(" WHERE id::text = ANY(%s)", [list(ids)])}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        sql = self._library.sql
        rows = list(raw.values())
        if any("text" not in row for row in rows):
            raise InputError(f"{self.name} takes rows with a text; move documents to a store of their kind")
        with self._translate_errors(0), self._connection.transaction():
            if not self._columns():
                self._make(rows[0])
            names = [name for name in self._columns() if name in rows[0]]
            cast = {name: "%s::float8[]::vector" if name == VECTOR else "%s" for name in names}
            insert = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}").format(
                self._name(),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join(sql.SQL(cast[name]) for name in names),
                sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(n)) for n in names),
            )
            with self._connection.cursor() as cursor:
                cursor.executemany(insert, [[self._value(row[name]) for name in names] for row in rows])

    def take(self, ids: Collection[str]) -> None:
        sql = self._library.sql
        with self._translate_errors(0), self._connection.transaction():
            self._connection.execute(
                sql.SQL("DELETE FROM {} WHERE id::text = ANY(%s)").format(self._name()), [list(ids)]
            )

    def close(self) -> None:
        if self._ours:
            self._connection.close()

    def _value(self, value: Any) -> Any:
        return self._library.types.json.Jsonb(value) if isinstance(value, dict) else value

    def _make(self, row: Mapping[str, Any]) -> None:
        """A table for rows like this one."""
        sql = self._library.sql
        size = len(row[VECTOR]) if row.get(VECTOR) else 0
        kinds = {"id": "text PRIMARY KEY", "text": "text NOT NULL", VECTOR: f"vector({size})" if size else "vector",
                 "added_at": "timestamptz", "metadata": "jsonb"}  # fmt: skip
        columns = [sql.SQL("{} ").format(sql.Identifier(name)) + sql.SQL(kinds.get(name, "text")) for name in row]
        self._connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self._name(), sql.SQL(", ").join(columns)))

    def _rows(self, where: str, values: Any) -> Iterator[dict[str, Any]]:
        sql, names, count = self._library.sql, self._columns(), 0
        fields = [
            sql.SQL("{}::real[]" if name == VECTOR else "{}::text" if name == "id" else "{}").format(
                sql.Identifier(name)
            )
            for name in names
        ]
        select = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(fields), self._name()) + sql.SQL(where)
        with (
            self._translate_errors(0),
            self._connection.transaction(),
            self._connection.cursor("unpoison_rows") as cursor,
        ):
            cursor.itersize = PAGE
            cursor.execute(select, values)
            while True:
                with self._translate_errors(count):
                    rows = cursor.fetchmany(PAGE)
                if not rows:
                    return
                count += len(rows)
                yield from (dict(zip(names, row, strict=True)) for row in rows)

    def _columns(self) -> list[str]:
        """The table's columns; none where there is no such table."""
        with self._translate_errors(0), self._connection.transaction():
            described = self._connection.execute(
                "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 "
                "AND NOT attisdropped ORDER BY attnum",
                [".".join(f'"{part}"' for part in self.table.replace('"', '""').split("."))],
            ).fetchall()
        return [name for (name,) in described]

    def _name(self) -> Any:
        return self._library.sql.Identifier(*self.table.split("."))

    @contextmanager
    def _translate_errors(self, count: int) -> Iterator[None]:
        errors = self._library
        try:
            yield
        except (errors.OperationalError, errors.InterfaceError) as error:
            when = f"went away after {count:,} documents" if count else "cannot be reached"
            raise StoreError(f"{self.name} {when} ({_one_line(error)}); run the same command again") from error
        except errors.Error as error:
            raise InputError(f"{self.name} refuses this ({_one_line(error)}); see its columns") from error


def _one_line(error: Exception) -> str:
    return clip(" ".join(str(error).split()), 200)
