"""SQLite files that several processes share: private to their owner, in write-ahead mode, with errors that help."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from unpoison.errors import InputError, StoreError
from unpoison.utils.private import private

__all__ = ["connect", "explain_errors", "transaction", "write_ahead"]

RETRY = 0.005
"""Seconds between two tries to switch a file that another process switches at the moment."""


def connect(
    path: Path | None, prepare: Callable[[sqlite3.Connection], None], *, wait: float, application: int, refusal: str
) -> sqlite3.Connection:
    """Open a file, made where there is none, whose statements are each a transaction of their own.

    A killed process leaves every row as it was before or after a write; after a power cut the last writes may be
    missing, but none is torn.

    Args:
        path: The file; None for memory.
        prepare: Makes the tables, or migrates them; it is called each time.
        wait: Seconds to wait for another process.
        application: SQLite's own mark (`PRAGMA application_id`) of the files that may be opened; `prepare` sets it.
        refusal: What is said of a database with another mark.

    Raises:
        InputError: The file is a database of something else.
        sqlite3.Error: It is damaged, or cannot be used.
    """
    if path is not None:
        private(path)
    connection = sqlite3.connect(path or ":memory:", timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        # In this order: whoever made the tables at the same time has set the mark with them.
        (used,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if used and owner != application:
            raise InputError(refusal)
        write_ahead(connection, wait)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


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
        raise StoreError(
            f"{name} cannot be used ({error}); give a path in a folder that can be written, and see whether another "
            "process holds it locked"
        ) from error
    except sqlite3.Error as error:  # of which a damaged file is the only one left
        raise InputError(f"{name} is damaged or no SQLite file ({error}); give another path, or restore it") from error
