"""Counts of a log of any length in bounded memory: a private temporary SQLite file, gone when it is closed.

From the counts come the rates: what each defense drops on an ordinary day of the log, the measure for everything that
is remarkable; and since when more is dropped than before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, xlogy

from unpoison.scan.audit_rows import Event

__all__ = [
    "AGREES", "MIN_DISTINCT", "AuditStore", "DropTimeline", "Onset", "Point", "chance", "onset", "put_rates",
    "timeline",
]  # fmt: skip

AGREES = 0.5
"""From this share of its names and numbers in kept passages on, a dropped one may be a false alarm."""

HELD = 20_000
"""Rows that wait in memory before they are added to the file."""

CACHE = 64 * 1024
"""KiB of the file's pages that are held in memory."""

FIRST = "CASE WHEN {0} = '' THEN excluded.{0} ELSE {0} END"
ADD = "{0} + excluded.{0}"
EARLIEST = "min(ifnull({0}, excluded.{0}), ifnull(excluded.{0}, {0}))"
LATEST = "max(ifnull({0}, excluded.{0}), ifnull(excluded.{0}, {0}))"

_COUNTS = {ADD: "rows seen dropped"}

TABLES = {
    "documents": ("id defense", {FIRST: "label source author",
                                 ADD: "seen dropped suspicion orders agrees compared contested disputed",
                                 EARLIEST: "first first_dropped", LATEST: "last_dropped"}),
    "drops": ("id question", {ADD: "times"}),
    "questions": ("question defense", {FIRST: "asked terms", ADD: "rows attacked seen dropped",
                                       EARLIEST: "first first_attacked"}),
    "hours": ("hour", _COUNTS),
    "defenses": ("defense", {ADD: "rows seen dropped watched watched_hit"}),
    "margins": ("defense bin", {ADD: "agreeing others"}),
}  # fmt: skip
"""Table -> its key, and its other columns in order, by how a further row of the same key changes them."""


def _statements(table: str) -> tuple[str, str]:
    """How a table is made, and how a row is added to it."""
    key, merged = TABLES[table]
    changes = {column: change.format(column) for change, columns in merged.items() for column in columns.split()}
    columns = [*key.split(), *changes]
    named, places = ", ".join(columns), ", ".join("?" * len(columns))
    updates = ", ".join(f"{column} = {change}" for column, change in changes.items())
    return (
        f"CREATE TABLE {table} ({named}, PRIMARY KEY ({', '.join(key.split())})) WITHOUT ROWID",
        f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO UPDATE SET {updates}",  # noqa: S608  all of it is ours
    )


class AuditStore:
    """Adds events up: by document and question for each defense, by hour, by defense. Exact, whatever the order."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # "": on the disk, nameless, deleted on closing
        makes = "; ".join(_statements(table)[0] for table in TABLES)
        self._file.executescript(
            f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-{CACHE}; {makes}"
        )
        self._file.create_function("chance", 3, chance, deterministic=True)
        self._held: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        self.rows = 0

    def add(self, event: Event) -> None:
        """Count one event."""
        self.rows += 1
        held, time = self._held, event.time
        for seen in event.sightings:
            dropped_at = time if seen.dropped else None
            agrees = seen.agrees if seen.dropped else None
            held["documents"].append(
                (
                    *(seen.document, event.defense, seen.label, seen.source, seen.author, 1, seen.dropped),
                    *(seen.suspicion, seen.order, agrees or 0.0, agrees is not None),
                    *(seen.contested, seen.contested and not seen.dropped, time, dropped_at, dropped_at),
                )
            )
            if seen.by_threshold:
                agreeing = agrees is not None and agrees >= AGREES
                held["margins"].append((event.defense, int(seen.suspicion * 1000), agreeing, not agreeing))
            if seen.dropped:
                held["drops"].append((seen.document, event.question, 1))
        dropped = sum(seen.dropped for seen in event.sightings)
        totals, hit = (1, len(event.sightings), dropped), dropped > 0
        asked = (event.question, event.defense, event.asked, " ".join(event.terms))
        held["questions"].append((*asked, 1, hit, *totals[1:], time, time if hit else None))
        held["defenses"].append((event.defense, *totals, event.watched, event.watched and hit))
        if time is not None:
            held["hours"].append((int(time // 3600), *totals))
        if sum(map(len, held.values())) >= HELD:
            self.flush()

    def flush(self) -> None:
        """Add what is held to the file, in the order of its keys."""
        for table, rows in self._held.items():
            width = len(TABLES[table][0].split())
            rows.sort(key=lambda row: row[:width])
            self._file.execute("BEGIN")
            self._file.executemany(_statements(table)[1], rows)
            self._file.execute("COMMIT")
            rows.clear()

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


MAX_POINTS = 400
"""Points of a time line; a longer log has wider ones."""

HOURS = (1, 6, 24, 168, 720, 8760, 87_600, 876_000)
"""Widths that a point may have."""

SURE = 10.0
"""Natural logarithm of how many times likelier the counts have to be with the change than without."""

RISE = 1.5
"""A smaller rise is no onset."""


@dataclass(frozen=True, slots=True)
class Point:
    """What happened in a stretch of time.

    Attributes:
        start: Seconds since 1970.
        rows, seen, dropped: Answers, documents in them, and those dropped.
    """

    start: int
    rows: int
    seen: int
    dropped: int


@dataclass(frozen=True, slots=True)
class DropTimeline:
    """A log over time.

    Attributes:
        width: Seconds of a point.
        points: Those in which anything happened, in the order of time.
    """

    width: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Onset:
    """A rise of what is dropped.

    Attributes:
        time: Since when, seconds since 1970.
        before, after: The share of documents that was dropped.
        rise: after / before, at most 1000.
    """

    time: int
    before: float
    after: float
    rise: float


def timeline(hours: Iterable[tuple[int, int, int, int]]) -> DropTimeline:
    """Points of the smallest width of which there are at most `MAX_POINTS`.

    Args:
        hours: (hour since 1970, rows, seen, dropped), in the order of time.
    """
    counts_of: dict[int, list[int]] = {}
    level = 0
    for hour, *counts in hours:  # one pass: points are merged as soon as they become too many
        held = counts_of.setdefault(hour // HOURS[level], [0, 0, 0])
        counts_of[hour // HOURS[level]] = [a + b for a, b in zip(held, counts)]
        while len(counts_of) > MAX_POINTS and level + 1 < len(HOURS):
            level += 1
            wider: dict[int, list[int]] = {}
            for at, held in counts_of.items():
                key = at * HOURS[level - 1] // HOURS[level]
                wider[key] = [a + b for a, b in zip(wider.get(key, [0, 0, 0]), held)]
            counts_of = wider
    width = HOURS[level] * 3600
    return DropTimeline(width, tuple(Point(at * width, *counts) for at, counts in sorted(counts_of.items())))


def onset(line: DropTimeline) -> Onset | None:
    """The moment that best divides a log into one share of drops before and a higher one after.

    Both sides are binomial (a likelihood ratio for one change point; Hinkley and Hinkley, 1970). None where the rise is
    less than `RISE`, or the counts are not exp(`SURE`) times likelier with it.
    """
    if len(line.points) < 2:
        return None
    seen = np.array([point.seen for point in line.points], float)
    dropped = np.array([point.dropped for point in line.points], float)
    n, d = np.cumsum(seen)[:-1], np.cumsum(dropped)[:-1]
    rest, left = seen.sum() - n, dropped.sum() - d
    gain = (
        _likelihood(d, n) + _likelihood(left, rest) - _likelihood(dropped.sum(keepdims=True), seen.sum(keepdims=True))
    )
    before, after = d / np.maximum(n, 1), left / np.maximum(rest, 1)
    gain = np.where((after > RISE * before) & (n > 0), gain, -np.inf)
    best = int(gain.argmax())
    if gain[best] < SURE:
        return None
    rise = min(after[best] / before[best], 1000.0) if before[best] else 1000.0
    return Onset(line.points[best + 1].start, float(before[best]), float(after[best]), float(rise))


def _likelihood(dropped: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest log-likelihood of so many drops, but for the number of their orders."""
    share = dropped / np.maximum(seen, 1)
    log_likelihood = xlogy(dropped, share) + xlogy(seen - dropped, 1 - share)
    return np.asarray(log_likelihood, np.float64)
