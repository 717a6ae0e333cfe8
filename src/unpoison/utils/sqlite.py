"""One connection to a database for each process; SQLite files for their owner alone, with errors that help."""

from __future__ import annotations

import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import RLock
from typing import Any

from unpoison.errors import InputError, StoreError
from unpoison.utils.files import private

__all__ = ["Connected", "connect", "explain_errors", "transaction", "write_ahead"]

SCHEMA = 1
"""Of all our files."""

RETRY = 0.005
"""Seconds between two tries to switch a file that another process switches at the moment."""

_ABANDONED: list[Any] = []
"""Connections of a parent process, which a child may neither use nor close."""


class Connected(ABC):
    """What has one connection for each process, opened when it is used, by one thread at a time.

    Attributes:
        in_memory: Whether everything is lost with the connection: then it is never let go of.
    """

    in_memory = False

    def __init__(self) -> None:
        self._connection: Any = None
        self._process = os.getpid()
        self._lock = RLock()

    @abstractmethod
    def _connect(self) -> Any:
        """Open it; every statement is a transaction of its own."""

    @abstractmethod
    def _translate_errors(self) -> AbstractContextManager[None]:
        """Raise the database's errors as ours."""

    @contextmanager
    def _open_connection(self) -> Iterator[Any]:
        if self._process != os.getpid():  # a child: the parent's connection is the parent's, and so are its threads
            self._lock, self._process = RLock(), os.getpid()
            if self._connection is not None and not self.in_memory:
                _ABANDONED.append(self._connection)
                self._connection = None
        with self._lock, self._translate_errors():
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection

    def close(self) -> None:
        """Let go of the connection; it is opened again when it is used again. What is in memory stays."""
        with self._lock:
            if self._connection is None or self.in_memory:
                return
            if self._process == os.getpid():
                self._connection.close()
            self._connection = None


def connect(
    path: Path | None,
    make: Callable[[sqlite3.Connection], object],
    *,
    wait: float,
    application: int,
    name: str,
    kind: str,
) -> sqlite3.Connection:
    """Open a file, made where there is none, whose statements are each a transaction of their own.

    A file appears with its tables in it, so one of 0 bytes has lost what it held. A killed process leaves every row as
    it was before or after a write; after a power cut the last writes may be missing, but none is torn.

    Args:
        path: The file; None for memory.
        make: Makes the tables of an empty file.
        wait: Seconds to wait for another process.
        application: SQLite's own mark (`PRAGMA application_id`) of the files that may be opened.
        name: What messages call the file.
        kind: What it is, such as "history of sources".

    Raises:
        InputError: The file is empty, a database of something else, or was made by a newer version.
        sqlite3.Error: It is damaged, or cannot be used.
    """

    def open_file(here: Path | None) -> sqlite3.Connection:
        return _open(here, make, wait=wait, application=application, name=name, kind=kind)

    if path is not None and not os.path.exists(path):
        draft = path.with_name(f".{path.name}.{token_hex(8)}")
        try:
            private(draft)
            open_file(draft).close()
            _name_once(draft, path)
        finally:
            with suppress(OSError):
                draft.unlink()
    elif path is not None and path.is_file() and not path.stat().st_size:
        raise InputError(f"{name} has 0 bytes: what the {kind} held is lost; restore it, or delete it to begin anew")
    return open_file(path)


def _name_once(draft: Path, path: Path) -> None:
    """Give a file its name, unless another process was faster."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:  # the file system has no second names
        os.replace(draft, path)


def _open(
    path: Path | None,
    make: Callable[[sqlite3.Connection], object],
    *,
    wait: float,
    application: int,
    name: str,
    kind: str,
) -> sqlite3.Connection:
    connection = sqlite3.connect(path or ":memory:", timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        # In this order: whoever made the tables at the same time has set the mark with them.
        (used,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if used and owner != application:
            raise InputError(f"{name} is a database, but no {kind}; give another path")
        write_ahead(connection, wait)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        if _schema(connection) != SCHEMA:
            _make(connection, make, application, name)
    except BaseException:
        connection.close()
        raise
    return connection


def _schema(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _make(
    connection: sqlite3.Connection, make: Callable[[sqlite3.Connection], object], application: int, name: str
) -> None:
    """Make the tables of an empty file, in one transaction; of several processes one does it."""
    with transaction(connection):
        schema = _schema(connection)
        if schema not in (0, SCHEMA):
            raise InputError(
                f"{name} has schema {schema}, and this version knows {SCHEMA}; upgrade unpoison, or give another path"
            )
        if not schema:
            make(connection)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute(f"PRAGMA application_id = {application}")


def write_ahead(connection: sqlite3.Connection, wait: float) -> None:
    """Switch to write-ahead mode. SQLite does not wait for other processes here, as it does everywhere else.

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
    """All statements inside, or none."""
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
        name: The file as messages name it, such as "the history FILE".

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
    except sqlite3.Error as error:  # of which a damaged file is the only one left
        raise InputError(f"{name} is damaged or no SQLite file ({error}); give another path, or restore it") from error
