"""Beliefs in a table of SQLite, the default, or PostgreSQL; or in Redis, for services on several machines."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from unpoison.beliefs.store import check_key, fresh_version
from unpoison.core.answers import Belief
from unpoison.errors import InputError, OptionError, StoreError
from unpoison.utils.extras import require
from unpoison.utils.processes import Remade
from unpoison.utils.sqlite import Connected, SqliteStore

__all__ = ["PostgresBeliefs", "RedisBeliefs", "SqliteBeliefs"]

_COLUMNS = "answer, support, conflict, query, version, created, updated"
_INSERT = f"""
INSERT INTO beliefs (key, {_COLUMNS}) VALUES (:key, :{_COLUMNS.replace(", ", ", :")}) ON CONFLICT (key) DO"""  # noqa: S608
_SET = ", ".join(f"{name} = :{name}" for name in _COLUMNS.split(", ") if name != "created")
STATEMENTS = {
    "get": f"SELECT {_COLUMNS} FROM beliefs WHERE key = :key",  # noqa: S608
    "put": f"{_INSERT} UPDATE SET {_SET}",
    "put if none": f"{_INSERT} NOTHING",
    "put if": f"UPDATE beliefs SET {_SET} WHERE key = :key AND version = :expected",  # noqa: S608
}
"""The table, in SQLite's dialect."""


class SqlBeliefs(Remade, Connected):
    """Beliefs in one table; subclasses connect to the database."""

    statements: ClassVar[Mapping[str, str]] = STATEMENTS

    @property
    @abstractmethod
    def _address(self) -> str:
        """The store as error messages name it; never with a password."""

    def _execute(self, statement: str, **values: Any) -> Any:
        return self._connection.execute(self.statements[statement], values)

    def get(self, key: str) -> Belief | None:
        check_key(key)
        with self._open_connection():
            row = self._execute("get", key=key).fetchone()
        return None if row is None else self._belief(row)

    def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
        check_key(key)
        now = time.time()
        fields = {name: getattr(belief, name) for name in ("answer", "support", "conflict", "query")}
        fields |= {"version": fresh_version(), "created": now, "updated": now, "expected": expected}
        statement = "put" if expected is None else "put if" if expected else "put if none"
        with self._open_connection():
            return bool(self._execute(statement, key=key, **fields).rowcount == 1)

    def _belief(self, row: Sequence[Any]) -> Belief:
        try:
            return Belief(*row)
        except InputError as error:
            raise InputError(f"{self._address} holds what is no belief: {error}; restore it") from None


APPLICATION = int.from_bytes(b"unpb")
"""SQLite's application id, and PostgreSQL's advisory lock for creating the table."""

TABLE = (
    "(key TEXT NOT NULL PRIMARY KEY, answer TEXT NOT NULL, support {real} NOT NULL, conflict {real} NOT NULL,"
    " query TEXT NOT NULL, version TEXT NOT NULL, created {real} NOT NULL, updated {real} NOT NULL)"
)


class SqliteBeliefs(SqliteStore, SqlBeliefs):
    """Beliefs in a SQLite file, created if missing. Shared by threads and processes of one machine.

    The file is in write-ahead mode: readers do not wait for writers, writes are atomic, and a power failure loses at
    most the last writes.

    Args:
        path: The file; beside it SQLite keeps `-wal` and `-shm`. Not on a network drive.

    Raises:
        OptionError: An option out of its range.
        InputError: The file is damaged, is not a store of beliefs, or was made by a newer version.
        StoreError: The file cannot be opened.
    """

    kind = "store of beliefs"
    app_id = APPLICATION
    busy = 10.0

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        with self._open_connection():
            pass

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"CREATE TABLE beliefs {TABLE.format(real='REAL')} WITHOUT ROWID")


TIMEOUT = 5
"""Seconds to wait for a connection to PostgreSQL, and for a statement."""


class PostgresBeliefs(SqlBeliefs):
    """Beliefs in the table `unpoison_beliefs`, created if missing. One connection, used by one thread at a time.

    Args:
        url: `postgresql://[user[:password]@]host[:port]/database`, or any other connection string of libpq.

    Raises:
        OptionError: An option out of its range.
        MissingExtraError: psycopg is not installed.
        StoreError: The server cannot be reached, or refuses this user.
        InputError: The table has another structure.
    """

    statements: ClassVar[Mapping[str, str]] = {
        name: re.sub(r":(\w+)", r"%(\1)s", re.sub(r"\bbeliefs\b", "unpoison_beliefs", statement))
        for name, statement in STATEMENTS.items()
    }

    def __init__(self, url: str) -> None:
        self._psycopg = require("psycopg", "keeping beliefs in PostgreSQL")
        super().__init__()
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
            (there,) = connection.execute("SELECT to_regclass('unpoison_beliefs') IS NOT NULL").fetchone()
            if not there:
                with connection.transaction():  # only one process creates it
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION,))
                    table = TABLE.format(real="double precision")
                    connection.execute(f"CREATE TABLE IF NOT EXISTS unpoison_beliefs {table}")
            connection.execute(f"SELECT {_COLUMNS} FROM unpoison_beliefs LIMIT 0")  # noqa: S608
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def _address(self) -> str:
        return repr(self)

    def _mask_secrets(self, error: Exception) -> str:
        """The error on one line, with passwords masked: libpq quotes parts of the URL."""
        message = " ".join(str(error).split())
        for secret in re.findall(r"(?<=:)[^:/@]{1,512}(?=@)|(?<=password=)\S{1,512}", self._url):
            message = message.replace(secret, "***")
        return message[:200]

    def __repr__(self) -> str:
        return "PostgresBeliefs(...)"  # never the url: it may hold a password


PREFIX = "unpoison:beliefs:"

_REDIS_TIMEOUT = 5.0
"""Seconds to wait for a connection or a reply."""

_PUT = """
local version, created = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+) ')
if ARGV[1] ~= '*' and ARGV[1] ~= (version or '') then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. (created or ARGV[3]) .. ' ' .. ARGV[4])
return 1
"""
"""Compare and set, atomic as every script is. ARGV: expected version or `*`, version, created, the rest."""


class RedisBeliefs(Remade):
    """Beliefs as one string each, under `unpoison:beliefs:KEY`.

    A string holds the version, the time of creation and the rest as JSON, separated by spaces.

    Persistence depends on the server: switch `appendonly` on, and use no eviction policy that drops keys without
    expiry.

    Args:
        url: `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS, or `unix://`.
        client: A ready `redis.Redis` instead of `url`.

    Raises:
        OptionError: An option out of its range.
        MissingExtraError: redis is not installed.
        StoreError: The server cannot be reached.
        InputError: The server holds other data under these keys.
    """

    def __init__(self, url: str = "redis://localhost:6379/0", *, client: Any = None) -> None:
        self._redis = require("redis", "keeping beliefs in Redis")
        try:
            self._client = client or self._redis.Redis.from_url(
                url, socket_timeout=_REDIS_TIMEOUT, socket_connect_timeout=_REDIS_TIMEOUT, decode_responses=False
            )
        except ValueError as error:  # not shown whole: it may hold a password
            raise OptionError(f"the address of the store is not valid ({error}); write redis://HOST:PORT") from None
        self._put = self._client.register_script(_PUT)
        with self._errors():
            self._client.ping()

    def get(self, key: str) -> Belief | None:
        with self._errors():
            return self._belief(self._client.get(PREFIX + check_key(key)))

    def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
        now = time.time()
        rest = json.dumps(replace(belief, created=None, updated=now).to_dict(), ensure_ascii=False)
        arguments = ["*" if expected is None else expected, fresh_version(), repr(now), rest]
        with self._errors():
            return bool(self._put(keys=[PREFIX + check_key(key)], args=arguments))

    def close(self) -> None:
        self._client.close()

    def _belief(self, value: bytes | None) -> Belief | None:
        if value is None:
            return None
        try:
            version, created, rest = value.decode().split(" ", 2)
            return Belief.from_dict({**json.loads(rest), "created": float(created)}, version=version)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{self!r} holds what is no belief: {error}; use another database") from None

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._redis.ResponseError as error:
            raise InputError(f"{self!r} refuses or holds something else ({error}); use another database") from error
        except (self._redis.RedisError, OSError) as error:
            raise StoreError(f"{self!r} cannot be reached ({error}); see whether the server runs") from error

    def __repr__(self) -> str:
        return "RedisBeliefs(...)"  # never the url: it may hold a password
