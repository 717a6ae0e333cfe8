"""Beliefs in one SQLite file: the default. Shared by threads and processes of one machine, survives killed ones."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from unpoison.beliefs.sql import SqlBeliefs, Statements
from unpoison.errors import InputError, clip
from unpoison.utils.sqlite import connect, explain_errors, transaction

__all__ = ["MIGRATIONS", "SqliteBeliefs"]

APPLICATION = int.from_bytes(b"unpb")
"""SQLite's own mark of which application a file belongs to."""

BUSY = 10.0
"""Seconds to wait for another process."""


def _first(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE beliefs (namespace TEXT NOT NULL, key TEXT NOT NULL, answer TEXT NOT NULL, support REAL NOT NULL,"
        " conflict REAL NOT NULL, query TEXT NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,"
        " updated REAL NOT NULL, expires REAL, PRIMARY KEY (namespace, key)) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX beliefs_expires ON beliefs (expires) WHERE expires IS NOT NULL")


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_first]
"""What makes schema 1 of an empty file, schema 2 of schema 1, and so on; the table `migrations` says when."""


class SqliteBeliefs(SqlBeliefs):
    """Beliefs in a SQLite file, made where there is none.

    The file is in write-ahead mode: readers do not wait for writers, a killed process leaves every belief as it was
    before or after a write, and after a power cut the last writes may be missing but none is torn.

    Args:
        path: The file; beside it SQLite keeps `-wal` and `-shm`. Not on a network drive.
        namespace: Stores of different namespaces in one file do not see each other.
        ttl: Seconds after which a belief that was not written again is forgotten; None never.

    Raises:
        OptionError: An option out of its range.
        InputError: The file is damaged, is not a store of beliefs, or was made by a newer version.
        StoreError: The file cannot be opened.
    """

    def __init__(self, path: str | Path, *, namespace: str = "default", ttl: float | None = None) -> None:
        super().__init__(namespace, ttl)
        self.path = Path(path)
        with self._open_connection():
            pass

    @contextmanager
    def _open_connection(self) -> Iterator[sqlite3.Connection]:
        """The one connection of this process; every statement is a transaction of its own."""
        self._leave_to_the_parent()
        with self._lock, explain_errors(f"the belief store {self._address}"):
            if self._connection is None:
                self._connection = connect(
                    self.path,
                    self._migrate,
                    wait=BUSY,
                    application=APPLICATION,
                    refusal=f"{self._address} is a database, but no store of beliefs; give another path",
                )
            yield self._connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Bring the file up to the newest schema, in one transaction; of several processes one does it."""
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        if schema == len(MIGRATIONS):
            return
        with transaction(connection):
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            if schema > len(MIGRATIONS):
                raise InputError(
                    f"{self._address} has schema {schema}, and this version knows {len(MIGRATIONS)}; upgrade unpoison"
                )
            connection.execute("CREATE TABLE IF NOT EXISTS migrations (schema INTEGER PRIMARY KEY, applied REAL)")
            for number, migration in enumerate(MIGRATIONS[schema:], schema + 1):
                migration(connection)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (number, time.time()))
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")

    @property
    def _address(self) -> str:
        return clip(str(self.path), 200)

    def __repr__(self) -> str:
        return f"SqliteBeliefs({str(self.path)!r}, namespace={self.namespace!r})"


_GET = """
SELECT answer, support, conflict, query, version, created, updated, expires FROM beliefs
WHERE namespace = ? AND key = ? AND coalesce(expires > ?, 1)"""
_LIST = """
SELECT key, answer, support, conflict, query, version, created, updated, expires FROM beliefs
WHERE namespace = ? AND key > ? AND coalesce(expires > ?, 1) ORDER BY key LIMIT ?"""
_INSERT = """
INSERT INTO beliefs (namespace, key, answer, support, conflict, query, version, created, updated, expires)
VALUES (:namespace, :key, :answer, :support, :conflict, :query, :version, :created, :updated, :expires)
ON CONFLICT (namespace, key) DO UPDATE SET answer = excluded.answer, support = excluded.support,
  conflict = excluded.conflict, query = excluded.query, version = excluded.version, updated = excluded.updated,
  expires = excluded.expires, created = CASE WHEN :anew THEN excluded.created ELSE beliefs.created END"""
_INSERT_IF_NONE = _INSERT + " WHERE beliefs.expires <= :now"
_REPLACE = """
UPDATE beliefs SET answer = :answer, support = :support, conflict = :conflict, query = :query, version = :version,
  updated = :updated, expires = :expires WHERE namespace = :namespace AND key = :key AND version = :expected"""
_EXPIRE = "DELETE FROM beliefs WHERE expires <= ?"
_FORGET = "DELETE FROM beliefs WHERE namespace = ? AND key = ?"
_FORGET_ALL = "DELETE FROM beliefs WHERE namespace = ?"

SqliteBeliefs.statements = Statements(_GET, _LIST, _INSERT, _INSERT_IF_NONE, _REPLACE, _EXPIRE, _FORGET, _FORGET_ALL)
