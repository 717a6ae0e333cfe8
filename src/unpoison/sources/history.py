"""The history of origins: counts and days in an SQLite file, or in memory. It stores no text and no question.

`retrieval_of` reads past retrievals from rows of any format. Of a question, 8 bytes of a hash of its words are stored,
so that a repeated question counts once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

from unpoison.errors import InputError, OptionError, clip
from unpoison.text.tokens import ENGLISH_318, stems
from unpoison.utils.sqlite import SqliteStore, transaction

__all__ = ["History", "Outcome", "Past", "PastRetrieval", "question_hash", "retrieval_of"]

Outcome = Literal["seen", "agreed", "contested", "dropped"]
OUTCOMES: tuple[Outcome, ...] = ("seen", "agreed", "contested", "dropped")

MAX_QUESTIONS = 1_000
"""Questions stored for each origin."""

MAX_ORIGINS = 1_000_000

PRUNED_EVERY = 1_000
"""New origins between checks of `MAX_ORIGINS`."""


class Past(NamedTuple):
    """The record of one origin.

    Attributes:
        origin: Its name.
        first_day: Day of its first retrieval.
        last_day: Day of its last retrieval.
        questions: Number of questions, at most 1,000.
        agreed: Questions on which it agreed with the answer.
        contested: Questions on which it contradicted the answer.
        dropped: Questions on which all its passages were dropped.
    """

    origin: str
    first_day: date
    last_day: date
    questions: int
    agreed: int
    contested: int
    dropped: int


class History(SqliteStore):
    """Counts by origin. Safe for threads, and with a file for processes.

    The file uses write-ahead logging, so readers never wait; every change is one transaction. A day before the last
    one is ignored, so that a clock set back makes no origin older.

    Args:
        path: The file, created on first use; None keeps the history in memory.

    Raises:
        OptionError: An invalid path.
    """

    kind = "history of sources"
    app_id = int.from_bytes(b"unph")
    busy = 2.0

    def __init__(self, path: str | Path | None = None) -> None:
        super().__init__(path)
        self._new = 0

    def past(self, origins: Iterable[str], but: int | None = None) -> dict[str, Past]:
        """The records of the origins that have one.

        Args:
            origins: Their names.
            but: Hash of a question to leave out (`question_hash`).

        Raises:
            StoreError: The file cannot be used.
            InputError: It is damaged, not a history, or of another version.
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
        """Record the outcomes of one question by origin; a later outcome replaces an earlier one.

        Raises:
            OptionError: An unknown outcome.
            StoreError: The file cannot be used.
            InputError: It is damaged, not a history, or of another version.
        """
        self.record_many([(question_hash(question), outcomes)], day)

    def record_many(self, records: Iterable[tuple[int, Mapping[str, Outcome]]], day: date) -> None:
        """`record` for many questions, given by their hashes, in one transaction."""
        rows = [(origin, question, said) for question, found in records for origin, said in found.items() if origin]
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
        was = before[0] if before is not None else None
        if was is not None and outcome in ("seen", was):
            return
        connection.execute("INSERT OR REPLACE INTO questions VALUES (?, ?, ?)", (origin, question, outcome))
        connection.execute(
            "UPDATE origins SET questions = questions + ?1, agreed = agreed + ?2, contested = contested + ?3,"
            " dropped = dropped + ?4 WHERE origin = ?5",
            (int(before is None), *((name == outcome) - (name == was) for name in OUTCOMES[1:]), origin),
        )

    def rows(self) -> list[Past]:
        """All records, those with the most questions first.

        Raises:
            StoreError: The file cannot be used.
            InputError: It is damaged, not a history, or of another version.
        """
        with self._open_connection() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM origins ORDER BY questions DESC, origin").fetchall()  # noqa: S608
        return [_past(row) for row in rows]

    def __bool__(self) -> bool:
        """Whether there is any record."""
        with self._open_connection() as connection:
            return connection.execute("SELECT 1 FROM origins LIMIT 1").fetchone() is not None

    def forget(self, origin: str) -> bool:
        """Delete the record of an origin; return whether there was one."""
        with self._open_connection() as connection, transaction(connection):
            connection.execute("DELETE FROM questions WHERE origin = ?", (origin,))
            return bool(connection.execute("DELETE FROM origins WHERE origin = ?", (origin,)).rowcount)

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "CREATE TABLE origins (origin TEXT PRIMARY KEY, first_day INTEGER NOT NULL, last_day INTEGER NOT NULL,"
            " questions INTEGER NOT NULL, agreed INTEGER NOT NULL, contested INTEGER NOT NULL,"
            " dropped INTEGER NOT NULL) WITHOUT ROWID"
        )
        connection.execute(
            "CREATE TABLE questions (origin TEXT NOT NULL, question INTEGER NOT NULL, outcome TEXT NOT NULL,"
            " PRIMARY KEY (origin, question)) WITHOUT ROWID"
        )

    def __getstate__(self) -> dict[str, Any]:
        """The path of a file; the rows of a history in memory."""
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
                connection.executemany("INSERT INTO origins VALUES (?, ?, ?, ?, ?, ?, ?)", state["origins"])
                connection.executemany("INSERT INTO questions VALUES (?, ?, ?)", state["questions"])


def question_hash(question: str) -> int:
    """A 64-bit hash of a question's words in any order. It has no key, so it hides nothing."""
    return _words_hash(question[:10_000])


@lru_cache(maxsize=256)
def _words_hash(question: str) -> int:
    words = set(stems(question))
    words = words - ENGLISH_318 or words or {question.strip().casefold()}
    text = " ".join(sorted(words)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), signed=True)


def _past(row: Sequence[Any]) -> Past:
    try:
        return Past(row[0], date.fromordinal(row[1]), date.fromordinal(row[2]), *map(int, row[3:]))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"the history has no valid counts for {clip(row[0])}; give another path") from None


def _without(past: Past, outcome: str) -> Past:
    counts = {outcome: getattr(past, outcome) - 1} if outcome in OUTCOMES[1:] else {}
    return past._replace(questions=past.questions - 1, **counts)


def _prune(connection: sqlite3.Connection) -> None:
    """Delete a hundredth of the origins if there are too many: those with one question first, then the oldest."""
    (count,) = connection.execute("SELECT count(*) FROM origins").fetchone()
    if count <= MAX_ORIGINS:
        return
    connection.execute(
        "DELETE FROM origins WHERE origin IN"
        " (SELECT origin FROM origins ORDER BY questions > 1, last_day, questions LIMIT ?)",
        (count - MAX_ORIGINS + MAX_ORIGINS // 100,),
    )
    connection.execute("DELETE FROM questions WHERE origin NOT IN (SELECT origin FROM origins)")


_COLUMNS = "origin, first_day, last_day, questions, agreed, contested, dropped"

_PAST = f"""
SELECT {_COLUMNS.replace("origin", "o.origin")}, q.outcome FROM origins o
LEFT JOIN questions q ON q.origin = o.origin AND q.question = ? WHERE o.origin IN ({{}})"""  # noqa: S608
_UPSERT = """
INSERT INTO origins VALUES (:origin, :day, :day, 0, 0, 0, 0)
ON CONFLICT (origin) DO UPDATE SET last_day = max(last_day, :day)
RETURNING questions"""

TEXTS = ("text", "content", "page_content")


class PastRetrieval(NamedTuple):
    """A past retrieval.

    Attributes:
        question: The question, or its hash in a log; None for a document without a question.
        passages: The passages as given: texts, mappings, objects.
        dropped: Positions of the passages that a defense dropped.
    """

    question: str | None
    passages: Sequence[object]
    dropped: frozenset[int] = frozenset()

    def outcomes(self, origins: Sequence[str]) -> dict[str, Outcome]:
        """The outcome of each origin: `dropped` if all its passages were, else `seen`."""
        kept = {origin for i, origin in enumerate(origins) if i not in self.dropped}
        return {origin: "seen" if origin in kept else "dropped" for origin in origins if origin}


def retrieval_of(row: object, *, documents: bool = False) -> PastRetrieval:
    """Read a retrieval from a mapping, or from an object with `query` and `passages`.

    Args:
        row: A row of a question file, of the output of `screen` or `ask`, or of an audit log.
        documents: Whether a row may be a document, with a text and no question.

    Raises:
        InputError: It has no question or no passages.
    """
    if isinstance(row, PastRetrieval):
        return row
    names = ("query", "question", "user_input", "query_hash", "passages", "contexts", "retrieved_contexts")
    held: Mapping[Any, Any] = row if isinstance(row, Mapping) else {n: getattr(row, n, None) for n in names}
    passages = next((held[name] for name in names[4:] if held.get(name) is not None), None)
    if passages is None and documents and any(isinstance(held.get(name), str) for name in TEXTS):
        return PastRetrieval(None, [row])
    question: object = next((held[name] for name in names[:4] if held.get(name) is not None), None)
    question = getattr(question, "text", question)
    if not isinstance(question, str) or not isinstance(passages, (list, tuple)):
        raise InputError(f"a row needs a question and a list of passages, got {clip(row)}")
    return PastRetrieval(question, passages, _find_drops(held, passages))


def _find_drops(row: Mapping[Any, Any], passages: Sequence[object]) -> frozenset[int]:
    """Positions of dropped passages, from a saved screening or from the passages of a log."""
    screening = row.get("screening")
    verdicts = screening.get("verdicts") if isinstance(screening, Mapping) else None
    marks: list[tuple[object, object]] = list(enumerate(passages))
    if isinstance(verdicts, list):
        marks = [(one.get("index"), one) for one in verdicts if isinstance(one, Mapping)]
    return frozenset(
        i for i, one in marks if isinstance(i, int) and isinstance(one, Mapping) and one.get("kept") is False
    )
