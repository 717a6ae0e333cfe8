"""Database connections per process, and SQLite files with mode 600 and helpful errors."""

from __future__ import annotations

import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from unpoison.errors import InputError, OptionError, StoreError, clip
from unpoison.utils.files import private

__all__ = ["Connected", "SqliteStore", "connect", "explain_errors", "transaction"]

SCHEMA = 1
"""The schema version of all files."""

RETRY = 0.005
"""Seconds between two attempts to switch to write-ahead mode."""

_ABANDONED: list[Any] = []
"""Connections of the parent process, which a forked child must neither use nor close."""


class Connected(ABC):
    """A store with one connection per process, opened on first use and used by one thread at a time.

    Attributes:
        in_memory: Whether the data live in the connection, which is then never closed.
    """

    in_memory = False

    def __init__(self) -> None:
        self._connection: Any = None
        self._process = os.getpid()
        self._lock = RLock()

    @abstractmethod
    def _connect(self) -> Any:
        """Open the connection in autocommit mode."""

    @abstractmethod
    def _translate_errors(self) -> AbstractContextManager[None]:
        """Raise the database's errors as ours."""

    @contextmanager
    def _open_connection(self) -> Iterator[Any]:
        if self._process != os.getpid():  # a forked child must not use the parent's connection or lock
            self._lock, self._process = RLock(), os.getpid()
            if self._connection is not None and not self.in_memory:
                _ABANDONED.append(self._connection)
                self._connection = None
        with self._lock, self._translate_errors():
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection

    def close(self) -> None:
        """Close the connection; the next use reopens it. An in-memory database stays open."""
        with self._lock:
            if self._connection is None or self.in_memory:
                return
            if self._process == os.getpid():
                self._connection.close()
            self._connection = None


class SqliteStore(Connected):
    """A store in one SQLite file, created with its tables on first use.

    Attributes:
        path: The file; None for memory.
        kind: What it is, in messages.
        app_id: SQLite's application id of the file.
        busy: Seconds to wait for a lock held by another process.

    Raises:
        OptionError: An invalid path.
    """

    kind: ClassVar[str]
    app_id: ClassVar[int]
    busy: ClassVar[float]

    def __init__(self, path: str | Path | None) -> None:
        if path is not None and "\0" in str(path):
            raise OptionError(f"the {self.kind} must be the path of a file, got {clip(str(path))}")
        super().__init__()
        self.path = None if path is None else Path(path)
        self.in_memory = path is None

    @abstractmethod
    def _make_tables(self, connection: sqlite3.Connection) -> None:
        """Create the tables."""

    def _connect(self) -> sqlite3.Connection:
        return connect(
            self.path, self._make_tables, wait=self.busy, app_id=self.app_id, name=self._address, kind=self.kind
        )

    def _translate_errors(self) -> AbstractContextManager[None]:
        return explain_errors(f"the {self.kind} {self._address}")

    @property
    def _address(self) -> str:
        return "in memory" if self.path is None else clip(str(self.path), 200)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({None if self.path is None else str(self.path)!r})"


def connect(
    path: Path | None, make: Callable[[sqlite3.Connection], object], *, wait: float, app_id: int, name: str, kind: str
) -> sqlite3.Connection:
    """Open a file in autocommit mode, and create it with its tables if it does not exist.

    Writes are atomic; a power failure loses at most the last ones.

    Args:
        path: The file; None for memory.
        make: Creates the tables.
        wait: Seconds to wait for a lock.
        app_id: The expected `PRAGMA application_id`.
        name: The file's name in messages.
        kind: Its purpose, such as "history of sources".

    Raises:
        InputError: The file is another app_id's, or of a newer version.
        sqlite3.Error: It is damaged, or cannot be used.
    """
    if path is not None:
        private(path)
    connection = sqlite3.connect(path or ":memory:", timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        # In this order, because a concurrent process sets the id together with the tables.
        (used,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if used and owner != app_id:
            raise InputError(f"{name} is a database, but no {kind}; give another path")
        write_ahead(connection, wait)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _schema(connection) != SCHEMA:
            _make(connection, make, app_id, name)
    except BaseException:
        connection.close()
        raise
    return connection


def _schema(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make(connection: sqlite3.Connection, make: Callable[[sqlite3.Connection], object], app_id: int, name: str) -> None:
    """Create the tables in one transaction, by one process only."""
    with transaction(connection):
        schema = _schema(connection)
        if schema not in (0, SCHEMA):
            raise InputError(f"{name} has schema {schema}, this version knows {SCHEMA}; upgrade, or give another path")
        if not schema:
            make(connection)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute(f"PRAGMA application_id = {app_id}")


def write_ahead(connection: sqlite3.Connection, wait: float) -> None:
    """Switch to write-ahead mode, with retries: here SQLite itself does not wait for other processes.

    Args:
        connection: To the file.
        wait: Seconds to try for.

    Raises:
        sqlite3.OperationalError: The file stayed busy, or cannot be switched.
    """
    until = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(RETRY)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the statements inside atomically."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explain_errors(name: str) -> Iterator[None]:
    """Raise SQLite's errors as ours.

    Args:
        name: The file's name in messages, such as "the history FILE".

    Raises:
        StoreError: The file cannot be used.
        InputError: It is damaged, or no SQLite file.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        full = error.sqlite_errorcode == sqlite3.SQLITE_FULL
        other = "give a path in a folder that can be written, and see whether another process holds it locked"
        raise StoreError(f"{name} cannot be used ({error}); {'free some space' if full else other}") from error
    except sqlite3.Error as error:  # a damaged file
        raise InputError(f"{name} is damaged or no SQLite file ({error}); give another path, or restore it") from error
