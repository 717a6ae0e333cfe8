"""What is remembered of origins: counts and days in one SQLite file, or in memory. No text, no question.

A question is remembered for an origin as 8 bytes of a hash of its words, so that asking it again counts once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import Any, Literal, NamedTuple

from unpoison.errors import InputError, OptionError, clip
from unpoison.text.tokens import ENGLISH_318, stems
from unpoison.utils.sqlite import connect, explain_errors, transaction

__all__ = ["OUTCOMES", "History", "Outcome", "Past", "question_hash"]

Outcome = Literal["seen", "agreed", "contested", "dropped"]
OUTCOMES: tuple[Outcome, ...] = ("seen", "agreed", "contested", "dropped")

APPLICATION = int.from_bytes(b"unph")
"""SQLite's own mark of which application a file belongs to."""

SCHEMA = 1

BUSY = 2.0
"""Seconds to wait for another process: a history is not worth more of a user's time."""

MAX_QUESTIONS = 1_000
"""Remembered for each origin; it is long known by then."""

MAX_ORIGINS = 1_000_000

PRUNED_EVERY = 1_000
"""New origins after which it is seen whether there are too many."""

_ABANDONED: list[sqlite3.Connection] = []
"""Connections of a parent process, which a child may neither use nor close."""


class Past(NamedTuple):
    """What is remembered of one origin.

    Attributes:
        origin: Its name.
        first_day: When it was first retrieved.
        last_day: When it was last.
        days: On how many days.
        questions: For how many questions; at most 1,000.
        agreed: For how many of them it said what was answered.
        contested: For how many of them it said something else.
        dropped: For how many of them it was dropped.
    """

    origin: str
    first_day: date
    last_day: date
    days: int
    questions: int
    agreed: int
    contested: int
    dropped: int


class History:
    """Counts by origin. Safe for threads, and with a file for processes.

    A file is in write-ahead mode, so that readers wait for nobody; every change is one transaction. A day before the
    one that was seen last changes no day: a clock that goes back makes nobody older.

    Args:
        path: The file, made when it is first used; None for memory.

    Raises:
        OptionError: No file can have that path.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        if path is not None and "\0" in str(path):
            raise OptionError(f"history must be the path of a file, got {clip(str(path))}")
        self.path = None if path is None else Path(path)
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._lock = RLock()
        self._new = 0

    def past(self, origins: Iterable[str], but: int | None = None) -> dict[str, Past]:
        """What is remembered of those origins of which anything is.

        Args:
            origins: Their names.
            but: Hash of a question that does not count (`question_hash`).

        Raises:
            StoreError: The file cannot be used.
            InputError: It is damaged, no history, or of another version.
        """
        names = [name for name in dict.fromkeys(origins) if name]
        found: dict[str, Past] = {}
        with self._open_connection() as connection:
            for start in range(0, len(names), 500):
                part = names[start : start + 500]
                marks = ",".join("?" * len(part))
                for *row, outcome in connection.execute(_PAST.format(marks), (but, *part)):
                    past = _past(row)
                    found[past.origin] = past if outcome is None else _without(past, outcome)
        return found

    def record(self, question: str, outcomes: Mapping[str, Outcome], day: date) -> None:
        """Remember for which question origins were retrieved, and what came of it. The last outcome is the one kept.

        Raises:
            OptionError: No such outcome.
            StoreError: The file cannot be used.
            InputError: It is damaged, no history, or of another version.
        """
        self.record_many([(question_hash(question), outcomes)], day)

    def record_many(self, records: Iterable[tuple[int, Mapping[str, Outcome]]], day: date) -> None:
        """`record` for many questions, by their hashes, in one transaction."""
        rows = [
            (origin, question, outcome) for question, found in records for origin, outcome in found.items() if origin
        ]
        for _, _, outcome in rows:
            if outcome not in OUTCOMES:
                raise OptionError(f"an outcome must be one of {', '.join(OUTCOMES)}, got {clip(outcome)}")
        if not rows:
            return
        with self._open_connection() as connection, transaction(connection):
            for origin, question, outcome in rows:
                self._count(connection, origin, question, outcome, day.toordinal())
            if self._new >= PRUNED_EVERY:
                self._new = 0
                _prune(connection)

    def _count(self, connection: sqlite3.Connection, origin: str, question: int, outcome: str, day: int) -> None:
        (count,) = connection.execute(_UPSERT, {"origin": origin, "day": day}).fetchone()
        self._new += count == 0
        before = connection.execute(
            "SELECT outcome FROM questions WHERE origin = ? AND question = ?", (origin, question)
        ).fetchone()
        if before is None and count >= MAX_QUESTIONS:
            return
        if before is not None and (outcome == "seen" or before[0] == outcome):
            return
        connection.execute("INSERT OR REPLACE INTO questions VALUES (?, ?, ?)", (origin, question, outcome))
        connection.execute(
            "UPDATE origins SET questions = questions + ?1, agreed = agreed + ?2, contested = contested + ?3,"
            " dropped = dropped + ?4 WHERE origin = ?5",
            (int(before is None), *(_change(name, before, outcome) for name in OUTCOMES[1:]), origin),
        )

    def rows(self) -> list[Past]:
        """All of it, by questions, falling.

        Raises:
            StoreError: The file cannot be used.
            InputError: It is damaged, no history, or of another version.
        """
        with self._open_connection() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM origins ORDER BY questions DESC, origin").fetchall()  # noqa: S608
        return [_past(row) for row in rows]

    def __bool__(self) -> bool:
        """Whether anything is remembered."""
        with self._open_connection() as connection:
            return connection.execute("SELECT 1 FROM origins LIMIT 1").fetchone() is not None

    def forget(self, origin: str) -> bool:
        """Remember nothing of an origin any more; whether there was anything."""
        with self._open_connection() as connection, transaction(connection):
            connection.execute("DELETE FROM questions WHERE origin = ?", (origin,))
            return connection.execute("DELETE FROM origins WHERE origin = ?", (origin,)).rowcount > 0

    def close(self) -> None:
        """Let go of the file; it is opened again when it is used again. What is in memory stays."""
        with self._lock:
            if self.path is None:
                return
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _open_connection(self) -> Iterator[sqlite3.Connection]:
        """The one connection of this process."""
        if self._process != os.getpid():  # a child: the parent's connection is the parent's, and so are its threads
            self._lock, self._process = RLock(), os.getpid()
            if self._connection is not None and self.path is not None:
                _ABANDONED.append(self._connection)
                self._connection = None
        with self._lock, explain_errors(f"the history {self._address}"):
            if self._connection is None:
                self._connection = connect(
                    self.path,
                    self._prepare,
                    wait=BUSY,
                    application=APPLICATION,
                    refusal=f"{self._address} is a database, but no history of sources; give another path",
                )
            yield self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the tables, in one transaction; of several processes one does it."""
        if connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,):
            return
        with transaction(connection):
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            if schema not in (0, SCHEMA):
                raise InputError(
                    f"the history {self._address} has schema {schema}, and this version knows {SCHEMA}; "
                    "upgrade unpoison, or give another path"
                )
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")

    @property
    def _address(self) -> str:
        return "in memory" if self.path is None else clip(str(self.path), 200)

    def __getstate__(self) -> dict[str, Any]:
        """A file by its path, memory by its rows."""
        state: dict[str, Any] = {"path": self.path}
        if self.path is None:
            with self._open_connection() as connection:
                state["origins"] = connection.execute("SELECT * FROM origins").fetchall()
                state["questions"] = connection.execute("SELECT * FROM questions").fetchall()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        History.__init__(self, state["path"])
        if self.path is None:
            with self._open_connection() as connection, transaction(connection):
                connection.executemany("INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?, ?, ?)", state["origins"])
                connection.executemany("INSERT INTO questions VALUES (?, ?, ?)", state["questions"])

    def __repr__(self) -> str:
        return f"History({None if self.path is None else str(self.path)!r})"


def question_hash(question: str) -> int:
    """8 bytes that stand for a question's words in any order, as SQLite's integer. Without a key: it is no secret."""
    return _words_hash(question[:10_000])


@lru_cache(maxsize=256)
def _words_hash(question: str) -> int:
    words = set(stems(question))
    words = words - ENGLISH_318 or words or {question.strip().casefold()}
    text = " ".join(sorted(words)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


def _change(name: str, before: Sequence[str] | None, after: str) -> int:
    return int(after == name) - int(before is not None and before[0] == name)


def _past(row: Sequence[Any]) -> Past:
    try:
        return Past(row[0], date.fromordinal(row[1]), date.fromordinal(row[2]), *map(int, row[3:]))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the history holds no counts for {clip(row[0])}; give another path") from None


def _without(past: Past, outcome: str) -> Past:
    counts = {outcome: getattr(past, outcome) - 1} if outcome in OUTCOMES[1:] else {}
    return past._replace(questions=past.questions - 1, **counts)


def _prune(connection: sqlite3.Connection) -> None:
    """Forget a hundredth of the origins where there are too many: those seen for one question, the oldest first."""
    (count,) = connection.execute("SELECT count(*) FROM origins").fetchone()
    if count <= MAX_ORIGINS:
        return
    connection.execute(
        "DELETE FROM origins WHERE origin IN"
        " (SELECT origin FROM origins ORDER BY questions > 1, last_day, questions LIMIT ?)",
        (count - MAX_ORIGINS + MAX_ORIGINS // 100,),
    )
    connection.execute("DELETE FROM questions WHERE origin NOT IN (SELECT origin FROM origins)")


_COLUMNS = "origin, first_day, last_day, days, questions, agreed, contested, dropped"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS origins (origin TEXT PRIMARY KEY, first_day INTEGER NOT NULL,"
    " last_day INTEGER NOT NULL, days INTEGER NOT NULL, questions INTEGER NOT NULL, agreed INTEGER NOT NULL,"
    " contested INTEGER NOT NULL, dropped INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS questions (origin TEXT NOT NULL, question INTEGER NOT NULL, outcome TEXT NOT NULL,"
    " PRIMARY KEY (origin, question)) WITHOUT ROWID",
)
_PAST = f"""
SELECT {_COLUMNS.replace("origin", "o.origin")}, q.outcome FROM origins o
LEFT JOIN questions q ON q.origin = o.origin AND q.question = ? WHERE o.origin IN ({{}})"""  # noqa: S608
_UPSERT = """
INSERT INTO origins VALUES (:origin, :day, :day, 1, 0, 0, 0, 0)
ON CONFLICT (origin) DO UPDATE SET days = days + (:day > last_day), last_day = max(last_day, :day)
RETURNING questions"""
