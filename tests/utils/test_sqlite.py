"""SQLite files: whose they are, of which version, and what happens to them when something fails."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from unpoison.errors import InputError, StoreError
from unpoison.utils import sqlite
from unpoison.utils.sqlite import SCHEMA, Connected, connect, explain_errors, transaction

OURS = 7


def make(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE things (name TEXT)")


def opened(path: Path | None) -> sqlite3.Connection:
    return connect(path, make, wait=0.2, app_id=OURS, name="FILE", kind="store of things")


def test_a_file_is_made_once_and_opened_again(tmp_path: Path) -> None:
    with_row = opened(tmp_path / "x.db")
    with_row.execute("INSERT INTO things VALUES ('a')")
    with_row.close()
    again = opened(tmp_path / "x.db")
    assert again.execute("SELECT name FROM things").fetchall() == [("a",)]
    assert again.execute("PRAGMA application_id").fetchone() == (OURS,)
    assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert again.execute("PRAGMA synchronous").fetchone() == (1,)
    assert again.execute("PRAGMA trusted_schema").fetchone() == (0,)
    assert (tmp_path / "x.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("owner", "used", "taken"), [(0, True, False), (8, True, False), (8, False, True)])
def test_the_file_of_another_application_is_refused(tmp_path: Path, owner: int, used: bool, taken: bool) -> None:
    path = tmp_path / "x.db"
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA application_id = {owner}")
    if used:
        other.execute("CREATE TABLE others (name TEXT)")
    other.commit()
    other.close()
    if taken:
        opened(path)
        return
    before = path.read_bytes()
    with pytest.raises(InputError, match="FILE is a database, but no store of things"):
        opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("schema", [SCHEMA + 1, -1])
def test_a_file_of_another_version_is_refused(tmp_path: Path, schema: int) -> None:
    connection = opened(tmp_path / "x.db")
    connection.execute(f"PRAGMA user_version = {schema}")
    connection.close()
    with pytest.raises(InputError, match=f"FILE has schema {schema}, this version knows {SCHEMA}"):
        opened(tmp_path / "x.db")


def test_statements_of_a_failed_transaction_are_taken_back() -> None:
    connection = opened(None)
    with pytest.raises(KeyError), transaction(connection):
        connection.execute("INSERT INTO things VALUES ('a')")
        raise KeyError
    assert not connection.in_transaction
    with transaction(connection):
        connection.execute("INSERT INTO things VALUES ('b')")
    assert connection.execute("SELECT name FROM things").fetchall() == [("b",)]


def test_a_transaction_that_ended_inside_reports_its_own_failure() -> None:
    connection = opened(None)
    with pytest.raises(KeyError), transaction(connection):
        connection.execute("ROLLBACK")
        raise KeyError


def test_a_busy_file_is_tried_again_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        def __init__(self, failures: int) -> None:
            self.failures = failures

        def execute(self, statement: str) -> None:
            if self.failures:
                self.failures -= 1
                error = sqlite3.OperationalError("locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY | 1 << 8  # with further details in the upper bits
                raise error

    now = [0.0]
    monkeypatch.setattr(sqlite.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sqlite.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    patient: Any = Busy(3)
    sqlite.write_ahead(patient, 1.0)
    assert (patient.failures, now[0]) == (0, 3 * sqlite.RETRY)
    endless: Any = Busy(10**9)
    with pytest.raises(sqlite3.OperationalError):
        sqlite.write_ahead(endless, 1.0)
    assert now[0] == pytest.approx(1.0 + 3 * sqlite.RETRY, abs=2 * sqlite.RETRY)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_FULL, StoreError, "free some space"),
        (sqlite3.SQLITE_CANTOPEN, StoreError, "a folder that can be written"),
        (None, InputError, "is damaged or no SQLite file"),
    ],
)
def test_an_error_says_what_can_be_done(code: int | None, kind: type[Exception], words: str) -> None:
    error = sqlite3.DatabaseError("x") if code is None else sqlite3.OperationalError("x")
    if code is not None:
        error.sqlite_errorcode = code
    with pytest.raises(kind, match=words), explain_errors("the history FILE"):
        raise error


class Store(Connected):
    """A store that counts how often it connects."""

    made = 0

    def _connect(self) -> sqlite3.Connection:
        self.made += 1
        return opened(None)

    def _translate_errors(self) -> AbstractContextManager[None]:
        return explain_errors("the store")


@pytest.mark.parametrize(("in_memory", "times"), [(False, 2), (True, 1)])
def test_a_closed_store_connects_again_unless_its_data_are_in_the_connection(in_memory: bool, times: int) -> None:
    store = Store()
    store.in_memory = in_memory
    for _ in range(2):
        with store._open_connection(), store._open_connection():
            pass
        store.close()
        store.close()
    assert store.made == times


@pytest.mark.parametrize(("in_memory", "times"), [(False, 2), (True, 1)])
def test_another_process_leaves_the_connection_of_its_parent_alone(
    monkeypatch: pytest.MonkeyPatch, in_memory: bool, times: int
) -> None:
    store = Store()
    store.in_memory = in_memory
    with store._open_connection() as before:
        pass
    monkeypatch.setattr(sqlite.os, "getpid", lambda: -1)
    with store._open_connection() as after:
        assert (after is before) == in_memory
    assert before.execute("SELECT 1").fetchone() == (1,), "neither used nor closed"
    assert store.made == times
