"""Counts of a log of any length in bounded memory: a private temporary SQLite file, gone when it is closed.

From the counts come the rates: what each defense drops on an ordinary day of the log, the measure for everything that
is remarkable.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scipy.special import bdtrc

from unpoison.scan.audit_rows import Event, Sighting

__all__ = ["MIN_DISTINCT", "AuditStore", "chance", "put_rates"]

HELD = 20_000
"""Documents, drops and questions together that are counted in memory before they are added to the file."""

CACHE = 64 * 1024
"""KiB of the file's pages that are held in memory."""

_TABLES = """
CREATE TABLE documents (
  id TEXT, defense TEXT, label TEXT, source TEXT, author TEXT, seen INTEGER, dropped INTEGER, suspicion REAL,
  orders INTEGER, agrees REAL, compared INTEGER, first REAL, first_dropped REAL, last_dropped REAL,
  PRIMARY KEY (id, defense)) WITHOUT ROWID;
CREATE TABLE drops (id TEXT, question TEXT, times INTEGER, PRIMARY KEY (id, question)) WITHOUT ROWID;
CREATE TABLE questions (
  question TEXT, defense TEXT, asked TEXT, terms TEXT, rows INTEGER, attacked INTEGER, seen INTEGER, dropped INTEGER,
  first REAL, first_attacked REAL, PRIMARY KEY (question, defense)) WITHOUT ROWID;
CREATE TABLE hours (hour INTEGER PRIMARY KEY, rows INTEGER, seen INTEGER, dropped INTEGER);
CREATE TABLE defenses (defense TEXT PRIMARY KEY, rows INTEGER, seen INTEGER, dropped INTEGER) WITHOUT ROWID;
"""

_ADD = {
    "documents": """INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET seen = seen + excluded.seen, dropped = dropped + excluded.dropped,
        suspicion = suspicion + excluded.suspicion, orders = orders + excluded.orders,
        agrees = agrees + excluded.agrees, compared = compared + excluded.compared,
        label = CASE WHEN label = '' THEN excluded.label ELSE label END,
        source = CASE WHEN source = '' THEN excluded.source ELSE source END,
        author = CASE WHEN author = '' THEN excluded.author ELSE author END,
        first = min(ifnull(first, excluded.first), ifnull(excluded.first, first)),
        first_dropped = min(ifnull(first_dropped, excluded.first_dropped),
                            ifnull(excluded.first_dropped, first_dropped)),
        last_dropped = max(ifnull(last_dropped, excluded.last_dropped), ifnull(excluded.last_dropped, last_dropped))""",
    "drops": "INSERT INTO drops VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times",
    "questions": """INSERT INTO questions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT DO UPDATE SET rows = rows + excluded.rows, attacked = attacked + excluded.attacked,
        seen = seen + excluded.seen, dropped = dropped + excluded.dropped,
        asked = CASE WHEN asked = '' THEN excluded.asked ELSE asked END,
        first = min(ifnull(first, excluded.first), ifnull(excluded.first, first)),
        first_attacked = min(ifnull(first_attacked, excluded.first_attacked),
                             ifnull(excluded.first_attacked, first_attacked))""",
    "hours": """INSERT INTO hours VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET rows = rows + excluded.rows,
        seen = seen + excluded.seen, dropped = dropped + excluded.dropped""",
    "defenses": """INSERT INTO defenses VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET rows = rows + excluded.rows,
        seen = seen + excluded.seen, dropped = dropped + excluded.dropped""",
}


class AuditStore:
    """Adds events up: by document and question for each defense, by hour, by defense. Exact, whatever the order."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # "": on the disk, nameless, deleted on closing
        self._file.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{CACHE}; {_TABLES}"
        )
        self._file.create_function("chance", 3, chance, deterministic=True)
        self._held: dict[str, dict[Any, list[Any]]] = {table: {} for table in _ADD}
        self.rows = 0

    def add(self, event: Event) -> None:
        """Count one event."""
        self.rows += 1
        dropped = sum(sighting.dropped for sighting in event.sightings)
        totals = [1, len(event.sightings), dropped]
        for sighting in event.sightings:
            self._add_sighting(event, sighting)
        counts = self._held["questions"].setdefault(
            (event.question, event.defense), [event.asked, " ".join(event.terms), 0, 0, 0, 0, None, None]
        )
        counts[0] = counts[0] or event.asked
        _count(counts, 2, [1, int(dropped > 0), len(event.sightings), dropped])
        counts[6] = _earlier(counts[6], event.time)
        counts[7] = _earlier(counts[7], event.time if dropped else None)
        _count(self._held["defenses"].setdefault(event.defense, [0, 0, 0]), 0, totals)
        if event.time is not None:
            _count(self._held["hours"].setdefault(int(event.time // 3600), [0, 0, 0]), 0, totals)
        if sum(map(len, self._held.values())) >= HELD:
            self.flush()

    def _add_sighting(self, event: Event, sighting: Sighting) -> None:
        fresh = [sighting.label, sighting.source, sighting.author, 0, 0, 0.0, 0, 0.0, 0, None, None, None]
        held = self._held["documents"].setdefault((sighting.document, event.defense), fresh)
        for column in range(3):
            held[column] = held[column] or fresh[column]
        compared = sighting.dropped and sighting.agrees is not None
        agrees = (sighting.agrees or 0.0) if compared else 0.0
        _count(held, 3, [1, int(sighting.dropped), sighting.suspicion, int(sighting.order), agrees, int(compared)])
        held[9] = _earlier(held[9], event.time)
        if sighting.dropped:
            held[10] = _earlier(held[10], event.time)
            held[11] = event.time if held[11] is None else max(held[11], event.time or held[11])
            _count(self._held["drops"].setdefault((sighting.document, event.question), [0]), 0, [1])

    def flush(self) -> None:
        """Add what is held to the file, in the order of its keys."""
        for table, held in self._held.items():
            if not held:
                continue
            rows = (((*key,) if isinstance(key, tuple) else (key,)) + tuple(held[key]) for key in sorted(held))
            self._file.execute("BEGIN")
            self._file.executemany(_ADD[table], rows)
            self._file.execute("COMMIT")
            held.clear()

    def ask(self, query: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, all events counted."""
        self.flush()
        return self._file.execute(query, values)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def chance(dropped: int, seen: int, expected: float) -> float:
    """P(`dropped` or more of the documents seen are dropped), where `expected` are dropped on average; in [0, 1]."""
    if not dropped:
        return 1.0
    return float(bdtrc(dropped - 1, seen, min(expected / max(seen, 1), 1.0)))


def _count(held: list[Any], start: int, more: Sequence[float]) -> None:
    for column, number in enumerate(more, start):
        held[column] += number


def _earlier(left: float | None, right: float | None) -> float | None:
    return right if left is None else left if right is None else min(left, right)


MIN_DISTINCT = 2
"""From so many different questions, or documents, something is flagged; one drop may always be a false alarm."""

ORDINARY = 0.05
"""What is dropped so often by chance in less than one of so many cases says nothing of an ordinary day."""

ROUNDS = 3
"""So often what is remarkable is looked for again, beside what is ordinary without it."""


def put_rates(store: AuditStore, totals: Mapping[str, tuple[int, int]]) -> None:
    """What each defense drops on an ordinary day, without what it drops remarkably often.

    Otherwise an attack on many questions would raise what passes for ordinary. Left out are documents, and then in
    `ROUNDS` rounds questions, of which so many drops would happen by chance in less than `ORDINARY`; then it is the
    posterior mean with Jeffreys' prior.
    """
    store.ask("DROP TABLE IF EXISTS temp.rates")
    store.ask("CREATE TEMP TABLE rates (defense TEXT PRIMARY KEY, rate REAL)")
    for name, (seen, dropped) in totals.items():
        store.ask("INSERT INTO rates VALUES (?, ?)", (name, (dropped + 0.5) / (seen + 1)))
    _lower(
        store,
        "SELECT defense, sum(seen), sum(dropped) FROM documents JOIN rates USING (defense) WHERE NOT (dropped >= ? AND "
        "dropped * 2 > seen AND chance(dropped, seen, seen * rate) < ?) GROUP BY defense",
    )
    for _ in range(ROUNDS):
        _lower(
            store,
            "SELECT defense, sum(seen), sum(dropped) FROM questions JOIN rates USING (defense) WHERE NOT (dropped >= ? "
            "* rows AND chance(dropped / rows, seen / rows, seen * rate / rows) < ?) GROUP BY defense",
        )


def _lower(store: AuditStore, ordinary: str) -> None:
    """Set the rates to those of what is ordinary, where these are lower."""
    for name, seen, dropped in list(store.ask(ordinary, (MIN_DISTINCT, ORDINARY))):
        store.ask("UPDATE rates SET rate = min(rate, ?) WHERE defense = ?", ((dropped + 0.5) / (seen + 1), name))
