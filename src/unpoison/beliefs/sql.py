"""Beliefs in a table: one SQLite file, the default, and PostgreSQL, for services that have one anyway."""

from __future__ import annotations

import re
import sqlite3
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

from unpoison.beliefs.store import check_key, check_namespace, check_ttl, fresh_version, times
from unpoison.core.answers import Belief
from unpoison.errors import InputError, StoreError, clip
from unpoison.utils.extras import require
from unpoison.utils.sqlite import Connected, connect, explain_errors

__all__ = ["POSTGRES_MIGRATIONS", "SQLITE_MIGRATIONS", "PostgresBeliefs", "SqlBeliefs", "SqliteBeliefs"]

PAGE = 500
"""Beliefs that a listing reads at once."""

_COLUMNS = "answer, support, conflict, query, version, created, updated, expires"
_INSERT = f"""
INSERT INTO beliefs (namespace, key, {_COLUMNS})
VALUES (:namespace, :key, :{_COLUMNS.replace(", ", ", :")})
ON CONFLICT (namespace, key) DO UPDATE SET answer = excluded.answer, support = excluded.support,
  conflict = excluded.conflict, query = excluded.query, version = excluded.version, updated = excluded.updated,
  expires = excluded.expires, created = CASE WHEN :anew THEN excluded.created ELSE beliefs.created END"""  # noqa: S608
STATEMENTS = {
    "get": f"SELECT {_COLUMNS} FROM beliefs "  # noqa: S608
    "WHERE namespace = :namespace AND key = :key AND (expires IS NULL OR expires > :now)",
    "page": f"SELECT key, {_COLUMNS} FROM beliefs WHERE namespace = :namespace AND key > :last "  # noqa: S608
    "AND (expires IS NULL OR expires > :now) ORDER BY key LIMIT :count",
    "insert": _INSERT,
    "insert if none": f"{_INSERT} WHERE beliefs.expires <= :now",
    "replace": "UPDATE beliefs SET answer = :answer, support = :support, conflict = :conflict, query = :query, "
    "version = :version, updated = :updated, expires = :expires "
    "WHERE namespace = :namespace AND key = :key AND version = :expected",
    "expire": "DELETE FROM beliefs WHERE expires <= :now",
    "forget": "DELETE FROM beliefs WHERE namespace = :namespace AND key = :key",
    "forget all": "DELETE FROM beliefs WHERE namespace = :namespace",
}
"""As SQLite has them."""


class SqlBeliefs(Connected):
    """Beliefs in one table. A subclass says how to connect."""

    statements: ClassVar[Mapping[str, str]] = STATEMENTS

    def __init__(self, namespace: str, ttl: float | None) -> None:
        super().__init__()
        self.namespace = check_namespace(namespace)
        self.ttl = check_ttl(ttl)

    @property
    @abstractmethod
    def _address(self) -> str:
        """The store as error messages name it; never with a password."""

    def get(self, key: str) -> Belief | None:
        values = {"namespace": self.namespace, "key": check_key(key), "now": time.time()}
        with self._open_connection() as connection:
            row = connection.execute(self.statements["get"], values).fetchone()
        return None if row is None else self._belief(row)

    def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
        now = time.time()
        values: dict[str, Any] = {
            "namespace": self.namespace,
            "key": check_key(key),
            **{name: getattr(belief, name) for name in ("answer", "support", "conflict", "query")},
            "version": fresh_version(),
            "now": now,
            "expected": expected,
            "anew": expected == "",
            **times(now, self.ttl),
        }
        statement = "insert" if expected is None else "replace" if expected else "insert if none"
        with self._open_connection() as connection:
            if self.ttl is not None:
                connection.execute(self.statements["expire"], {"now": now})
            return bool(connection.execute(self.statements[statement], values).rowcount == 1)

    def items(self) -> Iterator[tuple[str, Belief]]:
        last = ""
        while True:
            values = {"namespace": self.namespace, "last": last, "now": time.time(), "count": PAGE}
            with self._open_connection() as connection:
                rows = connection.execute(self.statements["page"], values).fetchall()
            for key, *row in rows:
                yield key, self._belief(row)
            if len(rows) < PAGE:
                return
            last = rows[-1][0]

    def forget(self, key: str) -> bool:
        return self._delete("forget", key=check_key(key)) == 1

    def forget_all(self) -> int:
        return self._delete("forget all")

    def _delete(self, statement: str, **values: str) -> int:
        """Delete, and count those that had not expired."""
        with self._open_connection() as connection:
            connection.execute(self.statements["expire"], {"now": time.time()})
            values["namespace"] = self.namespace
            return int(connection.execute(self.statements[statement], values).rowcount)

    def _belief(self, row: Sequence[Any]) -> Belief:
        try:
            return Belief(*row)
        except InputError as error:
            raise InputError(f"{self._address} holds what is no belief: {error}; restore it") from None


APPLICATION = int.from_bytes(b"unpb")
"""SQLite's own mark of which application a file belongs to, and PostgreSQL's lock under which one process migrates."""

BUSY = 10.0
"""Seconds to wait for another process that holds the file."""


def _make_file(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE beliefs (namespace TEXT NOT NULL, key TEXT NOT NULL, answer TEXT NOT NULL, support REAL NOT NULL,"
        " conflict REAL NOT NULL, query TEXT NOT NULL, version TEXT NOT NULL, created REAL NOT NULL,"
        " updated REAL NOT NULL, expires REAL, PRIMARY KEY (namespace, key)) WITHOUT ROWID"
    )
    connection.execute("CREATE INDEX beliefs_expires ON beliefs (expires) WHERE expires IS NOT NULL")


SQLITE_MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_make_file]
"""What makes schema 1 of an empty file, schema 2 of schema 1, and so on; the table `migrations` says when."""


class SqliteBeliefs(SqlBeliefs):
    """Beliefs in a SQLite file, made where there is none. Shared by threads and processes of one machine.

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

    def _connect(self) -> sqlite3.Connection:
        return connect(
            self.path,
            SQLITE_MIGRATIONS,
            wait=BUSY,
            application=APPLICATION,
            name=self._address,
            kind="store of beliefs",
        )

    def _translate_errors(self) -> AbstractContextManager[None]:
        return explain_errors(f"the belief store {self._address}")

    @property
    def _address(self) -> str:
        return clip(str(self.path), 200)

    def __repr__(self) -> str:
        return f"SqliteBeliefs({str(self.path)!r}, namespace={self.namespace!r})"


TIMEOUT = 5
"""Seconds to wait for a connection to PostgreSQL, and for a statement."""


def _make_table(connection: Any) -> None:
    connection.execute(
        'CREATE TABLE unpoison_beliefs (namespace text NOT NULL, key text COLLATE "C" NOT NULL, answer text NOT NULL,'
        " support double precision NOT NULL, conflict double precision NOT NULL, query text NOT NULL,"
        " version text NOT NULL, created double precision NOT NULL, updated double precision NOT NULL,"
        " expires double precision, PRIMARY KEY (namespace, key))"
    )
    connection.execute("CREATE INDEX ON unpoison_beliefs (expires) WHERE expires IS NOT NULL")


POSTGRES_MIGRATIONS: list[Callable[[Any], None]] = [_make_table]
"""As those of SQLite. Applied ones stand in `unpoison_migrations`."""


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

    statements: ClassVar[Mapping[str, str]] = {
        name: re.sub(r":(\w+)", r"%(\1)s", re.sub(r"\bbeliefs\b", "unpoison_beliefs", statement))
        for name, statement in STATEMENTS.items()
    }

    def __init__(self, url: str, *, namespace: str = "default", ttl: float | None = None) -> None:
        self._psycopg = require("psycopg", "keeping beliefs in PostgreSQL")
        super().__init__(namespace, ttl)
        self._url = url
        with self._open_connection():
            pass

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (self._psycopg.errors.UndefinedColumn, self._psycopg.errors.UndefinedTable) as error:
            raise InputError(
                f"the table unpoison_beliefs was made by something else ({self._mask_secrets(error)}); "
                "use another database"
            ) from error
        except self._psycopg.Error as error:
            if self._connection is not None and self._connection.broken:
                self._connection.close()
                self._connection = None
            raise StoreError(
                f"{self!r} cannot be reached ({self._mask_secrets(error)}); see whether the server runs and lets you in"
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
        if there and _schema(connection) == len(POSTGRES_MIGRATIONS):
            return
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION,))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS unpoison_migrations (schema integer PRIMARY KEY, applied double precision)"
            )
            schema = _schema(connection)
            if schema > len(POSTGRES_MIGRATIONS):
                raise InputError(
                    f"{self!r} has schema {schema}, and this version knows {len(POSTGRES_MIGRATIONS)}; upgrade unpoison"
                )
            for number, migration in enumerate(POSTGRES_MIGRATIONS[schema:], schema + 1):
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
    return int(connection.execute("SELECT coalesce(max(schema), 0) FROM unpoison_migrations").fetchone()[0])
