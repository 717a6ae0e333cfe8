"""What a log says of documents: which were dropped, over which questions, since when; and which of them wrongly.

How remarkable a number of drops is depends on the defense: GRADA leaves out half of everything, Guard one in fifty. So
every count is held against what the same defense drops on an ordinary day of this log, by the binomial distribution.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpoison.errors import InputError
from unpoison.scan.audit_advice import next_steps
from unpoison.scan.audit_log import entry
from unpoison.scan.audit_report import AuditedDocument, AuditedQuestion, AuditReport, FalseAlarm, Origin
from unpoison.scan.audit_rows import moment, read_event
from unpoison.scan.audit_store import AGREES, MIN_DISTINCT, AuditStore, chance, onset, put_rates, timeline
from unpoison.types import Answer, Screening
from unpoison.utils.checks import at_least
from unpoison.utils.closing import Closing

__all__ = [
    "Audit", "AuditReport", "AuditedDocument", "AuditedQuestion", "FalseAlarm", "Origin", "audit_rows", "since",
    "topics",
]  # fmt: skip

CHANCE = 0.001
"""Flagged is what would be dropped so often by chance in less than one of so many cases."""

OFTEN = 0.3
"""From this share on, a defense leaves out so much that a drop is no accusation."""

WIDE = 2
"""Unrelated topics over which a document has to be dropped to be a candidate for a false alarm; and it has to agree
with kept passages (`AGREES`) on average."""

LOOKED_AT = 1000
"""Documents that are looked at as candidates, those dropped for most questions first."""


@dataclass(slots=True)
class Audit(Closing):
    """Adds up a log of any length; memory stays bounded, what does not fit goes to a temporary file.

        with Audit() as audit:
            for row in rows:
                audit.add(row)
            report = audit.report()

    Attributes:
        since: Leave out what is older, in seconds since 1970; None for nothing.
        older, timeless, newer: Rows that were left out as older, or for want of a time; and rows of a newer version.
    """

    since: float | None = None
    older: int = 0
    timeless: int = 0
    newer: int = 0
    _store: AuditStore = field(default_factory=AuditStore, init=False)

    def add(self, row: Mapping[str, Any] | Screening | Answer) -> None:
        """Count a row of a log, or a screening.

        Raises:
            InputError: It holds no screening. Nothing of it was counted, and the next can be added.
        """
        if isinstance(row, (Screening, Answer)):
            row = {**entry(row, texts=True), "time": None}
        event = read_event(row)
        if self.since is not None and (event.time is None or event.time < self.since):
            if event.time is None:
                self.timeless += 1
            else:
                self.older += 1
            return
        self.newer += event.newer
        self._store.add(event)

    def report(self, top: int = 50) -> AuditReport:
        """What was found so far.

        Args:
            top: How many documents, sources, authors, questions and candidates at most, each.
        """
        at_least("top", top, 1)
        store = self._store
        totals = {
            name: (seen, dropped) for name, seen, dropped in store.ask("SELECT defense, seen, dropped FROM defenses")
        }
        put_rates(store, totals)
        questions, attacked = _questions(store, top)
        documents, flagged = _documents(store, top)
        alarms = _false_alarms(store)
        origins = (*_origins(store, "source", top), *_origins(store, "author", top))
        points = timeline(store.ask("SELECT hour, rows, seen, dropped FROM hours ORDER BY hour"))
        (count,) = next(iter(store.ask("SELECT count(DISTINCT id) FROM documents")))
        return AuditReport(
            rows=store.rows,
            seen=sum(seen for seen, _ in totals.values()),
            dropped=sum(dropped for _, dropped in totals.values()),
            totals={"documents": count, "flagged": flagged, "attacked": attacked, "false_alarms": len(alarms)},
            documents=tuple(documents),
            origins=origins,
            questions=tuple(questions),
            false_alarms=tuple(alarms[:top]),
            timeline=points,
            onset=onset(points),
            defenses={name: dropped / max(seen, 1) for name, (seen, dropped) in totals.items()},
            notes=tuple(self._notes(totals)),
            next_steps=tuple(next_steps(store, documents, origins, flagged, attacked)),
        )

    def _notes(self, totals: Mapping[str, tuple[int, int]]) -> Iterator[str]:
        if self.older or self.timeless:
            yield f"left out as older: {self.older:,} rows; for want of a time: {self.timeless:,}"
        if self.newer:
            yield f"{self.newer:,} rows are of a newer version; what this version knows of them was read"
        for name, (seen, dropped) in totals.items():
            if dropped >= OFTEN * max(seen, 1):
                yield f"{name} drops {dropped / seen:.0%} of all that it sees: of so many, single drops say little"

    def close(self) -> None:
        """Delete the temporary file."""
        self._store.close()


_DOCUMENT = """SELECT id, max(label), max(source), max(author), sum(seen), sum(dropped), sum(seen * rate),
    sum(suspicion), sum(orders), min(first), min(first_dropped), max(last_dropped), sum(agrees), sum(compared),
    (SELECT count(*) FROM drops WHERE drops.id = documents.id),
    EXISTS (SELECT 1 FROM drops JOIN attacked USING (question) WHERE drops.id = documents.id)
    FROM documents JOIN rates USING (defense)"""


def _document(row: tuple[Any, ...]) -> AuditedDocument:
    name, label, source, author, seen, dropped, expected, suspicion, orders, first, since, last, *_ = row
    questions, attacking = row[14:]
    p = _independent(questions, dropped, seen, expected)
    flagged = bool(attacking) or (questions >= MIN_DISTINCT and p < CHANCE)
    return AuditedDocument(
        name, label, source, author, seen, dropped, expected, p, suspicion / max(seen, 1), questions, orders, first,
        since, last, flagged,
    )  # fmt: skip


def _independent(different: int, dropped: int, seen: int, expected: float) -> float:
    """`chance`, each pair of document and question taken once: asked again, a defense judges as before.

    How often the pairs that were kept came again is not stored; as often as those that were dropped, it is assumed.
    """
    share = different / max(dropped, 1)
    return chance(different, max(different, round(seen * share)), expected * share)


def _documents(store: AuditStore, top: int) -> tuple[list[AuditedDocument], int]:
    """The most remarkable, and how many are flagged in all."""
    flagged = 0

    def count_documents() -> Iterator[AuditedDocument]:
        nonlocal flagged
        for row in store.ask(f"{_DOCUMENT} GROUP BY id HAVING sum(dropped) > 0"):
            document = _document(row)
            flagged += document.flagged
            yield document

    return heapq.nsmallest(top, count_documents(), key=_remarkable), flagged


def _remarkable(entry: AuditedDocument | AuditedQuestion | Origin) -> tuple[Any, ...]:
    """Flagged first, then by how many drops there are beyond the expected, then by name."""
    return (not entry.flagged, -(entry.dropped - entry.expected), entry.name if isinstance(entry, Origin) else entry.id)


def _questions(store: AuditStore, top: int) -> tuple[list[AuditedQuestion], int]:
    """Those under attack first, and how many there are of these; they are put aside for the documents' sake."""
    for statement in (
        "CREATE INDEX IF NOT EXISTS drops_by_question ON drops (question)",
        "DROP TABLE IF EXISTS temp.attacked",
        "CREATE TEMP TABLE attacked (question TEXT PRIMARY KEY)",
    ):
        store.ask(statement)
    attacked = 0

    def count_questions() -> Iterator[AuditedQuestion]:
        nonlocal attacked
        for name, question_text, rows, hit, seen, dropped, expected, first, documents in store.ask(
            "SELECT question, max(asked), sum(rows), sum(attacked), sum(seen), sum(dropped), sum(seen * rate), "
            "min(first_attacked), (SELECT count(*) FROM drops WHERE drops.question = questions.question) "
            "FROM questions JOIN rates USING (defense) GROUP BY question HAVING sum(dropped) > 0"
        ):
            p = _independent(documents, dropped, seen, expected)
            flagged = documents >= MIN_DISTINCT and p < CHANCE
            if flagged:
                attacked += 1
                store.ask("INSERT INTO attacked VALUES (?)", (name,))
            yield AuditedQuestion(name, question_text, rows, hit, documents, seen, dropped, expected, p, first, flagged)

    return heapq.nsmallest(top, count_questions(), key=_remarkable), attacked


def _origins(store: AuditStore, kind: str, top: int) -> list[Origin]:
    """Sources or authors with a drop, the most remarkable first."""
    column = {"source": "source", "author": "author"}[kind]  # no name of a column comes from a log
    rows = store.ask(
        f"SELECT {column}, count(DISTINCT id), count(DISTINCT CASE WHEN dropped > 0 THEN id END), sum(seen), "  # noqa: S608
        f"sum(dropped), sum(seen * rate), min(first_dropped) FROM documents JOIN rates USING (defense) "
        f"WHERE {column} != '' GROUP BY {column} HAVING sum(dropped) > 0"
    )

    def count_origins() -> Iterator[Origin]:
        for name, documents, hit, seen, dropped, expected, first in rows:
            p = chance(dropped, seen, expected)
            flagged = dropped >= MIN_DISTINCT and p < CHANCE
            yield Origin(kind, name, documents, hit, seen, dropped, expected, p, first, flagged)

    return heapq.nsmallest(top, count_origins(), key=_remarkable)


def _false_alarms(store: AuditStore) -> list[FalseAlarm]:
    """Dropped for unrelated questions, for no order, and saying what the kept ones say; the widest first."""
    rows = store.ask(  # what is put together is ours
        f"{_DOCUMENT} WHERE id IN (SELECT id FROM drops GROUP BY id HAVING count(*) >= ? ORDER BY count(*) DESC, id "  # noqa: S608
        "LIMIT ?) GROUP BY id HAVING sum(orders) = 0",
        (WIDE, LOOKED_AT),
    )
    alarms = []
    for row in list(rows):
        agrees = row[12] / row[13] if row[13] else None
        if agrees is not None and agrees < AGREES:
            continue
        words = _terms(store, row[0])
        spread = topics(words)
        if spread >= WIDE:
            alarms.append(FalseAlarm(_document(row), spread, agrees))
    return sorted(alarms, key=lambda alarm: (-alarm.topics, -(alarm.agrees or 0.0), alarm.document.id))


def _terms(store: AuditStore, document: str) -> list[frozenset[str]]:
    rows = store.ask(
        "SELECT max(terms) FROM drops JOIN questions USING (question) WHERE id = ? GROUP BY question LIMIT 100",
        (document,),
    )
    return [frozenset(terms.split()) for (terms,) in rows]


def since(text: str, now: float) -> float:
    """The moment that `--since` names: a date or time in ISO form, or how long ago, such as 24h, 7d or 2w.

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


def audit_rows(rows: Iterable[Mapping[str, Any] | Screening | Answer], top: int = 50) -> AuditReport:
    """The report on rows that all hold a screening; for logs with other rows use `Audit`.

    Raises:
        InputError: A row holds none.
    """
    with Audit() as audit:
        for number, row in enumerate(rows, 1):
            try:
                audit.add(row)
            except InputError as error:
                raise InputError(f"row {number}: {error}") from None
        return audit.report(top)


RELATED = 0.3
"""Questions are about one thing when the shorter one shares this part of its words with the other."""


def topics(questions: Sequence[Set[str]]) -> int:
    """Groups of questions that share words, by their words or hashes of these.

    Single linkage: who is related to one of a group belongs to it. O(n^2) time and memory in the questions.

    Returns:
        At least 1 where there is a question; one without words is a topic of its own.
    """
    from scipy.sparse.csgraph import connected_components

    related = [
        [min(len(one), len(two)) > 0 and len(one & two) >= RELATED * min(len(one), len(two)) for two in questions]
        for one in questions
    ]
    return int(connected_components(np.array(related, float), directed=False)[0]) if questions else 0
