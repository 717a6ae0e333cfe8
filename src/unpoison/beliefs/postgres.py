"""Beliefs in PostgreSQL, for services that have one anyway."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from unpoison.beliefs.sql import SqlBeliefs, Statements
from unpoison.errors import InputError, StoreError
from unpoison.utils.extras import require

__all__ = ["MIGRATIONS", "PostgresBeliefs"]

TIMEOUT = 5
"""Seconds to wait for a connection, and for a statement."""

LOCK = int.from_bytes(b"unpb")
"""The advisory lock under which one process migrates."""


def _first(connection: Any) -> None:
    connection.execute(
        'CREATE TABLE unpoison_beliefs (namespace text NOT NULL, key text COLLATE "C" NOT NULL, answer text NOT NULL,'
        " support double precision NOT NULL, conflict double precision NOT NULL, query text NOT NULL,"
        " version text NOT NULL, created double precision NOT NULL, updated double precision NOT NULL,"
        " expires double precision, PRIMARY KEY (namespace, key))"
    )
    connection.execute("CREATE INDEX ON unpoison_beliefs (expires) WHERE expires IS NOT NULL")


MIGRATIONS: list[Callable[[Any], None]] = [_first]
"""What makes schema 1 of nothing, schema 2 of schema 1, and so on. Applied ones stand in `unpoison_migrations`."""


class PostgresBeliefs(SqlBeliefs):
    """Beliefs in the table `unpoison_beliefs`, made where there is none. One connection, used by one thread at a time.

    Args:
        url: `postgresql://[user[:password]@]host[:port]/database`, or any other connection string of libpq.
        namespace: Stores of different namespaces in one table do not see each other.
        ttl: Seconds after which a belief that was not written again is forgotten; None never. By this machine's clock.

    Raises:
        OptionError: An option out of its range.
        MissingExtraError: psycopg is not installed.
        StoreError: The server cannot be reached, or does not let this user in.
        InputError: The table was made by something else, or by a newer version.
    """

    def __init__(self, url: str, *, namespace: str = "default", ttl: float | None = None) -> None:
        self._psycopg = require("psycopg", "keeping beliefs in PostgreSQL")
        super().__init__(namespace, ttl)
        self._url = url
        with self._open_connection():
            pass

    @contextmanager
    def _open_connection(self) -> Iterator[Any]:
        """The one connection of this process; every statement is a transaction of its own."""
        self._leave_to_the_parent()
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._connect()
                yield self._connection
            except (self._psycopg.errors.UndefinedColumn, self._psycopg.errors.UndefinedTable) as error:
                raise InputError(
                    f"the table unpoison_beliefs was made by something else ({self._mask_secrets(error)}); "
                    "use another database"
                ) from error
            except self._psycopg.Error as error:
                if self._connection is not None and self._connection.broken:
                    self._connection.close()
                raise StoreError(
                    f"{self!r} cannot be reached ({self._mask_secrets(error)}); "
                    "see whether the server runs and lets you in"
                ) from error

    def _connect(self) -> Any:
        connection = self._psycopg.connect(
            self._url, autocommit=True, connect_timeout=TIMEOUT, options=f"-c statement_timeout={TIMEOUT}s"
        )
        try:
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: Any) -> None:
        """Bring the tables up to the newest schema, in one transaction; of several processes one does it."""
        (there,) = connection.execute("SELECT to_regclass('unpoison_migrations') IS NOT NULL").fetchone()
        if there and _schema(connection) == len(MIGRATIONS):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS unpoison_migrations (schema integer PRIMARY KEY, applied double precision)"
            )
            schema = _schema(connection)
            if schema > len(MIGRATIONS):
                raise InputError(
                    f"{self!r} has schema {schema}, and this version knows {len(MIGRATIONS)}; upgrade unpoison"
                )
            for number, migration in enumerate(MIGRATIONS[schema:], schema + 1):
                try:
                    migration(connection)
                except self._psycopg.errors.DuplicateTable as error:
                    raise InputError(
                        "the database has a table of that name that unpoison did not make "
                        f"({self._mask_secrets(error)}); use another database"
                    ) from error
                connection.execute("INSERT INTO unpoison_migrations VALUES (%s, %s)", (number, time.time()))

    @property
    def _address(self) -> str:
        return repr(self)

    def _mask_secrets(self, error: Exception) -> str:
        """The error on one line, without what may be a password: libpq quotes parts of the url."""
        message = " ".join(str(error).split())
        for secret in re.findall(r"(?<=:)[^:/@]{1,512}(?=@)|(?<=password=)\S{1,512}", self._url):
            message = message.replace(secret, "***")
        return message[:200]

    def __repr__(self) -> str:
        return f"PostgresBeliefs(namespace={self.namespace!r})"  # never the url: it may hold a password


def _schema(connection: Any) -> int:
    (schema,) = connection.execute("SELECT coalesce(max(schema), 0) FROM unpoison_migrations").fetchone()
    return int(schema)


_GET = """
SELECT answer, support, conflict, query, version, created, updated, expires FROM unpoison_beliefs
WHERE namespace = %s AND key = %s AND coalesce(expires > %s, true)"""
_LIST = """
SELECT key, answer, support, conflict, query, version, created, updated, expires FROM unpoison_beliefs
WHERE namespace = %s AND key > %s AND coalesce(expires > %s, true) ORDER BY key LIMIT %s"""
_INSERT = """
INSERT INTO unpoison_beliefs (namespace, key, answer, support, conflict, query, version, created, updated, expires)
VALUES (%(namespace)s, %(key)s, %(answer)s, %(support)s, %(conflict)s, %(query)s, %(version)s, %(created)s,
  %(updated)s, %(expires)s)
ON CONFLICT (namespace, key) DO UPDATE SET answer = excluded.answer, support = excluded.support,
  conflict = excluded.conflict, query = excluded.query, version = excluded.version, updated = excluded.updated,
  expires = excluded.expires, created = CASE WHEN %(anew)s THEN excluded.created ELSE unpoison_beliefs.created END"""
_INSERT_IF_NONE = _INSERT + " WHERE unpoison_beliefs.expires <= %(now)s"
_REPLACE = """
UPDATE unpoison_beliefs SET answer = %(answer)s, support = %(support)s, conflict = %(conflict)s, query = %(query)s,
  version = %(version)s, updated = %(updated)s, expires = %(expires)s
WHERE namespace = %(namespace)s AND key = %(key)s AND version = %(expected)s"""
_EXPIRE = "DELETE FROM unpoison_beliefs WHERE expires <= %s"
_FORGET = "DELETE FROM unpoison_beliefs WHERE namespace = %s AND key = %s"
_FORGET_ALL = "DELETE FROM unpoison_beliefs WHERE namespace = %s"

PostgresBeliefs.statements = Statements(_GET, _LIST, _INSERT, _INSERT_IF_NONE, _REPLACE, _EXPIRE, _FORGET, _FORGET_ALL)
