"""SQLite files that several processes share: write-ahead mode, in which readers wait for nobody."""

from __future__ import annotations

import sqlite3
import time

__all__ = ["write_ahead"]

RETRY = 0.005
"""Seconds between two tries to switch a file that another process switches at the moment."""


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
