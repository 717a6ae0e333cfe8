"""Audits a log, saved screenings, or the output of `screen` and `ask`: dropped documents with questions and sources.

Defenses drop at different rates: GRADA half of all documents, Guard one in fifty. So each count is compared with the
ordinary drop rate of the same defense in this log, by the binomial distribution.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from scipy.special import bdtrc

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages
from unpoison.core.screenings import Screening
from unpoison.errors import InputError, clip
from unpoison.io.rows import QUERY_FIELDS
from unpoison.scan.audit_log import REMOVED, VERSION, detail, entry
from unpoison.scan.documents import moment
from unpoison.scan.report import KINDS, AuditReport, LogCount
from unpoison.sources.allow import text_hash
from unpoison.sources.sources import Sources
from unpoison.utils.checks import at_least
from unpoison.utils.files import Closing
from unpoison.utils.plain_text import count_noun, digest_text, encodable, excerpt

__all__ = ["Audit", "read_event"]

CHANCE = 0.001
"""Maximum probability of a flagged number of drops by chance."""

MIN_DISTINCT = 2
"""Minimum number of different pairs of document and question of a flagged entry; a single drop may be an error."""

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
        self._left_out = {"older": 0, "timeless": 0, "watched": 0, "watched_hit": 0}
        self._rows, self._held = 0, list[tuple[Any, ...]]()
        self._file = sqlite3.connect("", isolation_level=None)  # an anonymous file, deleted on closing
        self._file.row_factory = sqlite3.Row
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
        self._left_out["watched"] += event.watched
        self._left_out["watched_hit"] += event.watched and any(seen.dropped for seen in event.sightings)
        asked = (self._rows, event.time, event.defense, event.question, event.asked)
        self._held += ((*asked, *seen) for seen in event.sightings)
        if len(self._held) >= HELD:
            self._flush()

    def _flush(self) -> None:
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO sightings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._held)
        self._file.execute("COMMIT")
        self._held.clear()

    def _ask(self, query: str, *values: object) -> Iterator[Any]:
        return self._file.execute(query, values)

    def report(self, top: int = 50) -> AuditReport:
        """The report on all rows so far.

        Args:
            top: Maximum number of documents, sources, authors and questions each.
        """
        at_least("top", top, 1)
        self._flush()
        every = self._ask("SELECT defense, count(*), sum(dropped) FROM sightings GROUP BY 1")
        seen_by = {name: (seen, dropped) for name, seen, dropped in every}
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
        """All entries of a kind with a drop or an injection; updates `flagged`."""
        shown = {"question": ("asked", "", "", ""), "document": ("label", "source", "author", "allow")}
        columns = zip(("label", "source", "author", "allow"), shown.get(kind, ("",) * 4))
        described = ", ".join(f"{f'max({column})' if column else repr('')} AS {name}" for name, column in columns)
        for row in self._ask(
            f"SELECT {kind} AS name, {described}, count(*) AS seen, sum(dropped) AS dropped, sum(rate) AS expected, "  # noqa: S608  all of it is ours
            "count(DISTINCT CASE WHEN dropped THEN document || char(0) || question END) AS pairs, "
            "sum(injection) AS injections, min(CASE WHEN dropped OR injection THEN time END) AS first_dropped, "
            "count(DISTINCT CASE WHEN dropped THEN document END) AS pages, "
            "max(dropped AND question IN (SELECT question FROM temp.attacked)) AS flagged "
            f"FROM sightings JOIN rates USING (defense) WHERE {kind} != '' GROUP BY 1 HAVING max(dropped OR injection)"
        ):
            found = dict(row)
            # Each pair of document and question counts once, because defenses are deterministic.
            share = found["pairs"] / max(found["dropped"], 1)
            p = chance(found["pairs"], max(found["pairs"], round(found["seen"] * share)), found["expected"] * share)
            # One injection suffices: it is no matter of chance.
            under_attack = bool(found["flagged"] or found["injections"]) and kind == "document"
            found["flagged"] = under_attack or (found["pairs"] >= MIN_DISTINCT and p < CHANCE)
            flagged[kind] += found["flagged"]
            if kind == "question" and found["flagged"]:
                self._ask("INSERT INTO temp.attacked VALUES (?)", found["name"])
            if kind == "document":
                found["allow"] = "" if found["injections"] else _allow(found["name"], found["allow"])
            yield LogCount(kind=kind, chance=p, **found)

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


def chance(dropped: int, seen: int, expected: float) -> float:
    """P(at least `dropped` of `seen` documents are dropped), with `expected` drops on average; in [0, 1]."""
    return 1.0 if not dropped else float(bdtrc(dropped - 1, seen, min(expected / max(seen, 1), 1.0)))


MAX_KEY = 200
"""Maximum characters of an id; a longer one is replaced by its hash."""

MAX_SOURCE = 500
"""Maximum characters of a source or an author."""

SHOWN = 160
"""Maximum characters of a text in a report."""

TIME_FIELDS = ("time", "timestamp", "date", "asked_at")


class Sighting(NamedTuple):
    """One document in one answer.

    Attributes:
        document: Its id, or # and a hash of its text.
        label: The beginning of its text, "" if the log has no texts.
        source, author: "" if unknown.
        dropped: Whether it was dropped.
        injection: Whether it was dropped for a prompt injection, or kept without it.
        allow: The entry of its text in a policy's list `allow`, "" if the log has no texts.
    """

    document: str
    label: str
    source: str
    author: str
    dropped: bool
    injection: bool = False
    allow: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One question and the verdicts on its documents.

    Attributes:
        time: Seconds since 1970, None if unknown.
        question: A hash of the question.
        asked: The beginning of the question, "" if the log has no texts.
        defense: The name of the defense.
        sightings: The documents in retrieval order.
        watched: Whether dropped documents were passed on nevertheless (`mode="monitor"`).
    """

    time: float | None
    question: str
    asked: str
    defense: str
    sightings: tuple[Sighting, ...]
    watched: bool = False


def read_event(fields: Mapping[str, Any]) -> Event:
    """Read one row.

    Raises:
        InputError: It has no screening; the message says what is missing.
    """
    try:
        if "audit" in fields:
            return _read_log_line(fields)
        if isinstance(fields.get("screening"), Mapping):
            return _read_saved_row(fields, fields["screening"])
        if "verdicts" in fields and "passages" in fields:
            return _read_saved_row(fields, fields)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"the screening cannot be read: {type(error).__name__}: {clip(str(error))}") from None
    if isinstance(fields.get("error"), str):
        raise InputError(f"was not screened: {fields['error'][:SHOWN]}")
    raise InputError(
        f"no screening: a row needs 'audit', or 'screening' with 'passages', got the fields "
        f"{clip(sorted(map(str, fields)))}"
    )


def _read_log_line(fields: Mapping[str, Any]) -> Event:
    """Read a line of the audit log; unknown fields of newer versions are ignored."""
    version = fields["audit"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"audit must be the version of the row, 1 or more, got {clip(version)}")
    passages = fields["passages"]
    if not isinstance(passages, list) or not all(isinstance(p, Mapping) for p in passages):
        raise InputError(f"passages must be a list of objects, got {clip(passages)}")
    query, defense = _text(fields, "query"), _text(fields, "defense")[:MAX_KEY] or "unnamed"
    question = _text(fields, "query_hash")[:MAX_KEY] or _question(query)
    seen, watched = tuple(map(_read_sighting, passages)), fields.get("action") == "monitor"
    return Event(_time(fields), question, excerpt(query, SHOWN), defense, seen, watched)


def _read_sighting(fields: Mapping[str, Any]) -> Sighting:
    kept, text = fields["kept"], _text(fields, "text")
    if not isinstance(kept, bool):
        raise InputError(f"kept must be true or false, got {clip(kept)}")
    name = _text(fields, "id") or f"#{_text(fields, 'hash') or digest_text('passage', Passage(text).reading)}"
    source, author = (_text(fields, field)[:MAX_SOURCE] for field in ("source", "author"))
    injection, allow = fields.get("injection") is True, text_hash(text) if text else ""
    return Sighting(_key(name), excerpt(text, SHOWN), source, author, not kept, injection, allow)


def _read_saved_row(fields: Mapping[str, Any], screening: Mapping[str, Any]) -> Event:
    """Convert a row with passages and a screening to a line of the audit log; the verdicts may be missing."""
    query = next((fields[name] for name in QUERY_FIELDS if isinstance(fields.get(name), str)), None)
    if query is None or fields.get("passages") is None:
        raise InputError("a saved screening needs 'query' and 'passages'; audit the output of screen")
    passages = as_passages(fields["passages"])
    kept = _kept_positions(screening, len(passages))
    injections = {verdict["index"] for verdict in screening.get("verdicts") or () if _is_injection(verdict)}
    line = {name: fields.get(name) for name in TIME_FIELDS}
    line |= {"audit": VERSION, "query": query, "defense": screening.get("defense")}
    line["passages"] = [
        {
            **{name: getattr(passage, name) for name in ("id", "text", "source")},
            "hash": digest_text("passage", passage.reading),
            "author": detail(passage, "author"),
            "kept": i in kept,
            "injection": i in injections,
        }
        for i, passage in enumerate(passages)
    ]
    return _read_log_line(line)


def _kept_positions(screening: Mapping[str, Any], k: int) -> list[int]:
    """The kept positions, from their list or from the verdicts."""
    if isinstance(screening.get("kept"), list):
        kept = screening["kept"]
    else:
        kept = [verdict["index"] for verdict in screening["verdicts"] if verdict["kept"]]
    if not all(type(i) is int and 0 <= i < k for i in kept):
        raise InputError(f"the screening keeps {clip(kept)}, but the row has {k} passages")
    return list(kept)


def _is_injection(verdict: Mapping[str, Any]) -> bool:
    """Whether a saved verdict, or a clause of it, has such a code; older versions wrote clauses as pairs."""
    clauses = (verdict.get("parameters") or {}).get("clauses") or ()
    codes = (clause.get("code") if isinstance(clause, Mapping) else clause[0] for clause in clauses)
    return not REMOVED.isdisjoint((verdict.get("code"), *codes))


def _time(fields: Mapping[str, Any]) -> float | None:
    times = (moment(fields.get(name)) for name in TIME_FIELDS)
    return next((time.timestamp() for time in times if time is not None and time.year >= 1970), None)


def _question(text: str) -> str:
    return digest_text("query", Query(text).reading)


def _key(name: str) -> str:
    name = encodable(name)
    return name if len(name) <= MAX_KEY else f"{name[:40]}…{digest_text('id', name)}"


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return encodable(value) if isinstance(value, str) else ""
