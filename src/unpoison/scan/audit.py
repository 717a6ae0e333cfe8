"""Audits a log: dropped documents with their questions, sources and times.

Defenses drop at different rates: GRADA half of all documents, Guard one in fifty. So each count is compared with the
ordinary drop rate of the same defense in this log, by the binomial distribution.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scipy.special import bdtrc

from unpoison.errors import InputError
from unpoison.scan.audit_log import entry
from unpoison.scan.audit_report import KINDS, AuditReport, LogCount
from unpoison.scan.audit_rows import Event, moment, read_event
from unpoison.sources.sources import Sources
from unpoison.types import Answer, Passage, Screening
from unpoison.utils.checks import at_least
from unpoison.utils.closing import Closing
from unpoison.utils.plain_text import count_noun

__all__ = ["Audit", "audit_rows", "chance", "since"]

CHANCE = 0.001
"""Maximum probability of a flagged number of drops by chance."""

MIN_DISTINCT = 2
"""Minimum number of different pairs of document and question; a single drop may be an error."""

OFTEN = 0.3
"""Drop rate of a defense from which a single drop is no evidence."""

ORDINARY = 0.05
"""Probability below which a number of drops is an outlier, and not part of the ordinary drop rate."""

ROUNDS = 3
"""Rounds in which outliers are removed before the ordinary drop rate is estimated again."""

HELD = 20_000
"""Rows buffered in memory before they are written to the file."""


class Audit(Closing):
    """Aggregates a log of any length in a temporary file, with bounded memory.

        with Audit() as audit:
            for row in rows:
                audit.add(row)
            report = audit.report()

    Args:
        since: Skip older rows, in seconds since 1970; None reads all.
        sources: Known sources, which the report never advises to block.
    """

    def __init__(self, since: float | None = None, sources: Sources | None = None) -> None:
        self._since, self._sources = since, sources
        self._left_out = {"older": 0, "timeless": 0, "newer": 0, "watched": 0, "watched_hit": 0}
        self._rows, self._held = 0, list[tuple[Any, ...]]()
        self._file = sqlite3.connect("", isolation_level=None)  # an anonymous file, deleted on closing
        self._file.create_function("chance", 3, chance, deterministic=True)
        self._file.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE sightings (answer INTEGER, time REAL, "
            "defense TEXT, question TEXT, asked TEXT, document TEXT, label TEXT, source TEXT, author TEXT, "
            "dropped INTEGER, injection INTEGER, allow TEXT)"
        )

    def add(self, row: Mapping[str, Any] | Screening | Answer) -> None:
        """Count a row of a log, or a screening.

        Raises:
            InputError: It has no screening. Nothing of it is counted, and the next row can be added.
        """
        if isinstance(row, (Screening, Answer)):
            row = {**entry(row, texts=True), "time": None}
        event = read_event(row)
        if self._since is not None and (event.time is None or event.time < self._since):
            self._left_out["timeless" if event.time is None else "older"] += 1
            return
        self._rows += 1
        self._left_out["newer"] += event.newer
        self._left_out["watched"] += event.watched
        self._left_out["watched_hit"] += event.watched and any(seen.dropped for seen in event.sightings)
        self._held += self._sightings(event)
        if len(self._held) >= HELD:
            self._flush()

    def _sightings(self, event: Event) -> Iterator[tuple[Any, ...]]:
        for seen in event.sightings:
            yield (
                *(self._rows, event.time, event.defense, event.question, event.asked),
                *(seen.document, seen.label, seen.source, seen.author, seen.dropped, seen.injection, seen.allow),
            )

    def _flush(self) -> None:
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO sightings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._held)
        self._file.execute("COMMIT")
        self._held.clear()

    def _ask(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        return self._file.execute(query, values)

    def report(self, top: int = 50) -> AuditReport:
        """The report on all rows so far.

        Args:
            top: Maximum number of documents, sources, authors and questions each.
        """
        at_least("top", top, 1)
        self._flush()
        seen_by = {
            name: (seen, dropped)
            for name, seen, dropped in self._ask("SELECT defense, count(*), sum(dropped) FROM sightings GROUP BY 1")
        }
        self._put_rates(seen_by)
        flagged, counts = dict.fromkeys(KINDS, 0), dict[str, tuple[LogCount, ...]]()
        self._ask("CREATE TEMP TABLE attacked (question TEXT PRIMARY KEY)")
        for kind in KINDS:  # questions first: documents dropped for an attacked question are flagged
            counts[kind] = tuple(heapq.nsmallest(top, self._counts(kind, flagged), key=LogCount.rank))
        self._ask("DROP TABLE attacked")
        ((documents,),) = self._ask("SELECT count(DISTINCT document) FROM sightings")
        return AuditReport(
            rows=self._rows,
            seen=sum(seen for seen, _ in seen_by.values()),
            dropped=sum(dropped for _, dropped in seen_by.values()),
            documents=documents,
            flagged=flagged,
            counts=counts,
            defenses={name: dropped / max(seen, 1) for name, (seen, dropped) in seen_by.items()},
            notes=tuple(self._notes(seen_by)),
            known=frozenset(one.name for one in counts["source"] if self._is_known(one.name)),
        )

    def _counts(self, kind: str, flagged: dict[str, int]) -> Iterator[LogCount]:
        """Everything of a kind that was dropped; updates `flagged`."""
        column = {"question": "question", "document": "document", "source": "source", "author": "author"}[kind]
        pairs = "document || char(0) || question"
        for (
            name,
            label,
            source,
            author,
            seen,
            dropped,
            expected,
            pair,
            injections,
            first,
            since,
            attacked,
            allow,
            pages,
        ) in self._ask(
            f"SELECT {column}, max({'asked' if kind == 'question' else 'label'}), max(source), max(author), count(*), "  # noqa: S608  the column is ours
            f"sum(dropped), sum(rate), count(DISTINCT CASE WHEN dropped THEN {pairs} END), sum(injection), min(time), "
            "min(CASE WHEN dropped THEN time END), max(dropped AND question IN (SELECT question FROM temp.attacked)), "
            "max(allow), count(DISTINCT CASE WHEN dropped THEN document END) "
            f"FROM sightings JOIN rates USING (defense) WHERE {column} != '' GROUP BY 1 HAVING sum(dropped) > 0"
        ):
            # Each pair of document and question counts once, because defenses are deterministic.
            share = pair / dropped
            p = chance(pair, max(pair, round(seen * share)), expected * share)
            under_attack = bool(attacked) and kind == "document"
            is_flagged = under_attack or (pair >= MIN_DISTINCT and p < CHANCE)
            flagged[kind] += is_flagged
            if kind == "question" and is_flagged:
                self._ask("INSERT INTO temp.attacked VALUES (?)", name)
            known = kind == "document"
            yield LogCount(
                kind=kind,
                name=name,
                label=label if kind in ("document", "question") else "",
                source=source if known else "",
                author=author if known else "",
                seen=seen,
                dropped=dropped,
                expected=expected,
                chance=p,
                pairs=pair,
                injections=injections,
                first=first,
                first_dropped=since,
                flagged=bool(is_flagged),
                pages=pages,
                allow=_allow(name, allow) if known and not injections else "",
            )

    def _is_known(self, source: str) -> bool:
        return self._sources is not None and self._sources.spares(Passage("", source=source))

    def _put_rates(self, seen_by: Mapping[str, tuple[int, int]]) -> None:
        """Estimate the ordinary drop rate of each defense without outliers.

        An attack on many questions would otherwise raise it. Documents, and then in `ROUNDS` rounds questions, are left
        out if the probability of their drops by chance is below `ORDINARY`; the rate is the posterior mean with
        Jeffreys' prior.
        """
        self._ask("DROP TABLE IF EXISTS temp.rates")
        self._ask("CREATE TEMP TABLE rates (defense TEXT PRIMARY KEY, rate REAL)")
        for name, (seen, dropped) in seen_by.items():
            self._ask("INSERT INTO rates VALUES (?, ?)", name, (dropped + 0.5) / (seen + 1))
        for key in ("document", *["question"] * ROUNDS):
            times = "1" if key == "document" else "count(DISTINCT answer)"
            ordinary = (
                f"SELECT defense, sum(seen), sum(dropped) FROM (SELECT defense, {times} AS times, count(*) AS seen, "  # noqa: S608  all of it is ours
                f"sum(dropped) AS dropped FROM sightings GROUP BY {key}, defense) JOIN rates USING (defense) WHERE NOT "
                "(dropped >= ? * times AND (? OR dropped * 2 > seen) AND "
                "chance(dropped / times, seen / times, seen * rate / times) < ?) GROUP BY defense"
            )
            for name, seen, dropped in list(self._ask(ordinary, MIN_DISTINCT, key == "question", ORDINARY)):
                rate = (dropped + 0.5) / (seen + 1)
                self._ask("UPDATE rates SET rate = min(rate, ?) WHERE defense = ?", rate, name)

    def _notes(self, seen_by: Mapping[str, tuple[int, int]]) -> Iterator[str]:
        left = self._left_out
        if left["older"] or left["timeless"]:
            yield f"skipped as older: {left['older']:,} rows; without a time: {left['timeless']:,}"
        if left["newer"]:
            yield f"{left['newer']:,} rows are of a newer version; unknown fields were ignored"
        if left["watched"]:
            hit = left["watched_hit"]
            yield f"in monitor mode: {count_noun(left['watched'], 'answer')}; {hit:,} would have lost a passage"
        for name, (seen, dropped) in seen_by.items():
            if dropped >= OFTEN * max(seen, 1):
                yield f"{name} drops {dropped / seen:.0%} of all documents, so a single drop is no evidence"

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()


def _allow(name: str, text: str) -> str:
    """The entry of a document in a list `allow`: the hash of its text, else its id; "" without both."""
    return text or ("" if name.startswith("#") else f"id:{name}")


def audit_rows(rows: Iterable[Mapping[str, Any] | Screening | Answer], top: int = 50) -> AuditReport:
    """The report on rows that all have a screening; use `Audit` for logs with other rows.

    Raises:
        InputError: A row has no screening.
    """
    with Audit() as audit:
        for number, row in enumerate(rows, 1):
            try:
                audit.add(row)
            except InputError as error:
                raise InputError(f"row {number}: {error}") from None
        return audit.report(top)


def chance(dropped: int, seen: int, expected: float) -> float:
    """P(at least `dropped` of `seen` documents are dropped), with `expected` drops on average; in [0, 1]."""
    if not dropped:
        return 1.0
    return float(bdtrc(dropped - 1, seen, min(expected / max(seen, 1), 1.0)))


def since(text: str, now: float) -> float:
    """The time of `--since`: an ISO date or time, or an age such as 24h, 7d or 2w.

    Raises:
        InputError: Neither.
    """
    number, unit = text[:-1], text[-1:]
    if unit in _SECONDS and number.isdecimal() and number.isascii() and len(number) <= 6:
        return now - int(number) * _SECONDS[unit]
    seconds = None if text.replace(".", "", 1).isdecimal() else moment(text)
    if seconds is None:
        raise InputError(f"since must be a date such as 2026-03-01, or a time ago such as 24h or 7d, got {text!r}")
    return seconds


_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
