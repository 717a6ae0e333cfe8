"""What an audit comes to, as data and as a page, and the rules by which it raises an alarm, such as drop-rate>0.05."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Self

from unpoison.errors import OptionError, clip
from unpoison.report.document import Table
from unpoison.report.pages import render
from unpoison.report.rendering import excerpt
from unpoison.scan.audit_store import DropTimeline, Onset

__all__ = [
    "MEASURES",
    "AlertRule",
    "AuditReport",
    "AuditedDocument",
    "AuditedQuestion",
    "FalseAlarm",
    "Origin",
    "audit_page",
    "day",
]


@dataclass(frozen=True, slots=True)
class AuditedDocument:
    """One document over the whole log.

    Attributes:
        id: Its id, or # and a hash of its text.
        label: The beginning of its text, "" where the log has none.
        source, author: Where it came from, "" where unknown.
        seen, dropped: In how many answers it was retrieved, and kept from the model.
        expected: How often a document seen so often is dropped on average.
        chance: The probability of drops for so many questions by chance, in [0, 1].
        suspicion: Its mean probability of poison, in [0, 1].
        questions: Different questions for which it was dropped.
        orders: How often it was dropped for a prompt injection.
        first, first_dropped, last_dropped: Seconds since 1970, None where the log has no times.
        flagged: Whether it was dropped for two questions or more, and for so many by chance in less than one of 1,000
            cases; or for a question under attack.
    """

    id: str
    label: str
    source: str
    author: str
    seen: int
    dropped: int
    expected: float
    chance: float
    suspicion: float
    questions: int
    orders: int
    first: float | None
    first_dropped: float | None
    last_dropped: float | None
    flagged: bool


@dataclass(frozen=True, slots=True)
class Origin:
    """One source or author over the whole log.

    Attributes:
        kind: "source" or "author".
        name: As in the log.
        documents, dropped_documents: How many of it were seen, and dropped at least once.
        seen, dropped, expected, chance: As for a document, over all of them.
        first_dropped: Seconds since 1970, or None.
        flagged: As for a document.
    """

    kind: str
    name: str
    documents: int
    dropped_documents: int
    seen: int
    dropped: int
    expected: float
    chance: float
    first_dropped: float | None
    flagged: bool


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
    """One question over the whole log.

    Attributes:
        id: A hash of its text.
        asked: The beginning of its text, "" where the log has none.
        rows, attacked: How often it was asked, and something was dropped for it.
        documents: Different documents that were dropped for it.
        seen, dropped, expected: As for a document.
        chance: The probability of so many different documents dropped by chance, in [0, 1].
        first_attacked: Seconds since 1970, or None.
        flagged: Whether it is under attack: two documents or more, by chance in less than one of 1,000 cases.
    """

    id: str
    asked: str
    rows: int
    attacked: int
    documents: int
    seen: int
    dropped: int
    expected: float
    chance: float
    first_attacked: float | None
    flagged: bool


@dataclass(frozen=True, slots=True)
class FalseAlarm:
    """A document that is dropped for unrelated questions, and says what the kept ones say.

    Attributes:
        document: Which.
        topics: Groups of questions without a word in common for which it was dropped.
        agrees: The mean share of its names and numbers that kept passages have too; None where the log does not say.
    """

    document: AuditedDocument
    topics: int
    agrees: float | None


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit comes to; every list with the most remarkable first, and no longer than was wanted.

    Attributes:
        rows: Events that were counted.
        seen, dropped: Documents in them, repetitions included.
        totals: How many there are in all: documents, flagged documents, attacked (flagged) questions, false_alarms.
        documents, origins, questions, false_alarms: The most remarkable of those that were dropped at all.
        timeline: Rows and drops over time.
        onset: Since when more is dropped; None where nothing changed, or the log has no times.
        defenses: Name -> share of documents that it dropped.
        notes: What a reader has to know.
        next_steps: What to do now, the most urgent first.
    """

    rows: int
    seen: int
    dropped: int
    totals: Mapping[str, int]
    documents: tuple[AuditedDocument, ...]
    origins: tuple[Origin, ...]
    questions: tuple[AuditedQuestion, ...]
    false_alarms: tuple[FalseAlarm, ...]
    timeline: DropTimeline
    onset: Onset | None
    defenses: Mapping[str, float]
    notes: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()

    @property
    def measures(self) -> dict[str, float]:
        """What alert rules may name."""
        return {
            "documents": self.totals["flagged"],
            "questions": self.totals["attacked"],
            "sources": sum(origin.flagged for origin in self.origins if origin.kind == "source"),
            "drop-rate": self.dropped / max(self.seen, 1),
            "rise": self.onset.rise if self.onset else 1.0,
        }

    def records(self) -> Iterator[dict[str, Any]]:
        """Everything as JSON-ready objects, each with its `kind`: first the summary, then documents and so on."""
        yield {
            "kind": "summary",
            "rows": self.rows,
            "seen": self.seen,
            "dropped": self.dropped,
            "totals": dict(self.totals),
            "measures": self.measures,
            "onset": None if self.onset is None else asdict(self.onset),
            "defenses": dict(self.defenses),
            "notes": list(self.notes),
            "next_steps": list(self.next_steps),
        }
        for document in self.documents:
            yield {"kind": "document", **asdict(document)}
        for origin in self.origins:
            yield asdict(origin)
        for question in self.questions:
            yield {"kind": "question", **asdict(question)}
        for alarm in self.false_alarms:
            counts = {"topics": alarm.topics, "agrees": alarm.agrees, "dropped": alarm.document.dropped}
            yield {"kind": "false-alarm", "id": alarm.document.id, "label": alarm.document.label, **counts}


MEASURES = ("documents", "questions", "sources", "drop-rate", "rise")
"""What a rule may name; see `AuditReport.measures`."""

_COMPARE = {">=": operator.ge, ">": operator.gt}
_RULE = re.compile(r"([a-z-]{1,20})(>=|>)([0-9.]{1,20})")


@dataclass(frozen=True, slots=True)
class AlertRule:
    """A measure and what it must not reach.

    Attributes:
        measure: One of `MEASURES`.
        comparison: ">=" or ">".
        limit: Finite, 0 or more.
    """

    measure: str
    comparison: str
    limit: float

    @classmethod
    def of(cls, text: str) -> Self:
        """Read "documents>=1".

        Raises:
            OptionError: No such rule.
        """
        match = _RULE.fullmatch("".join(text.split()))
        try:
            if match is not None and match[1] in MEASURES and isfinite(limit := float(match[3])):
                return cls(match[1], match[2], limit)
        except ValueError:  # two points
            pass
        raise OptionError(
            f"alert must be a measure, > or >=, and a number, such as documents>=1, got {clip(text)}; "
            f"measures: {', '.join(MEASURES)}"
        )

    def holds(self, measures: Mapping[str, float]) -> bool:
        """Whether the rule raises an alarm."""
        return bool(_COMPARE[self.comparison](measures[self.measure], self.limit))

    def describe(self, measures: Mapping[str, float]) -> str:
        """Such as "documents is 5, and the rule is documents >= 1"."""
        return f"{self.measure} is {measures[self.measure]:g}, and the rule is {self}"

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.limit:g}"


WIDTH, HEIGHT = 900, 160
"""The size of the picture over time, in SVG units."""


def audit_page(report: AuditReport, remark: str = "") -> str:
    """The whole report on one page.

    Args:
        report: What `Audit.report` returned.
        remark: A sentence under the heading, such as which file was read.
    """
    times = report.timeline.points
    return render(
        "audit.html",
        report=report,
        remark=remark,
        totals=[
            ("answers", f"{report.rows:,}"),
            ("documents dropped, of those retrieved", _share(report.dropped, report.seen)),
            ("different documents", f"{report.totals['documents']:,}"),
            ("documents flagged", f"{report.totals['flagged']:,}"),
            ("questions under attack", f"{report.totals['attacked']:,}"),
            ("perhaps false alarms", f"{report.totals['false_alarms']:,}"),
        ],
        onset_time=day(report.onset.time) if report.onset else "",
        bars=list(_bars(report.timeline)) if len(times) > 1 else [],
        caption=_caption(report.timeline) if len(times) > 1 else "",
        tables=[
            ("Documents", "the most remarkable first", _documents(report.documents)),
            ("Sources and authors", "", _origins(report.origins)),
            ("Questions under attack", "", _questions(report.questions)),
            (
                "Perhaps false alarms",
                "dropped for unrelated questions, and saying what the kept passages say",
                _alarms(report.false_alarms),
            ),
        ],
    )


def day(time: float | None) -> str:
    """A moment to the minute in UTC, "" for none."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}"


def _flags(entries: Sequence[AuditedDocument | Origin | AuditedQuestion]) -> frozenset[int]:
    return frozenset(i for i, entry in enumerate(entries) if entry.flagged)


def _documents(documents: Sequence[AuditedDocument]) -> Table:
    figures = ("dropped", "expected", "questions", "suspicion", "source, author", "first seen", "first dropped")
    rows = tuple(
        (
            one.id,
            _share(one.dropped, one.seen) + (f" [{one.orders:,} for prompt injection]" if one.orders else ""),
            f"{one.expected:.1f}",
            f"{one.questions:,}",
            f"{one.suspicion:.2f}",
            ", ".join(filter(None, (excerpt(one.source, 80), excerpt(one.author, 80)))),
            day(one.first),
            day(one.first_dropped),
        )
        for one in documents
    )
    labels = tuple(one.label for one in documents)
    return Table("", ("document", *figures), rows, quotes=labels, flagged=_flags(documents), breadth=len(figures))


def _origins(origins: Sequence[Origin]) -> Table:
    columns = ("source or author", "kind", "documents dropped", "times dropped", "expected", "first dropped")
    rows = tuple(
        (
            one.name,
            one.kind,
            _share(one.dropped_documents, one.documents),
            _share(one.dropped, one.seen),
            f"{one.expected:.1f}",
            day(one.first_dropped),
        )
        for one in origins
    )
    return Table("", columns, rows, flagged=_flags(origins))


def _questions(questions: Sequence[AuditedQuestion]) -> Table:
    columns = ("question", "asked", "attacked", "documents dropped", "first attacked")
    rows = tuple(
        (one.asked or one.id, f"{one.rows:,}", f"{one.attacked:,}", f"{one.documents:,}", day(one.first_attacked))
        for one in questions
    )
    return Table("", columns, rows, flagged=_flags(questions))


def _alarms(alarms: Sequence[FalseAlarm]) -> Table:
    columns = ("document", "topics", "agrees with the others", "dropped")
    rows = tuple(
        (
            one.document.id,
            f"{one.topics:,}",
            "unknown" if one.agrees is None else f"{one.agrees:.0%}",
            _share(one.document.dropped, one.document.seen),
        )
        for one in alarms
    )
    return Table("", columns, rows, quotes=tuple(one.document.label for one in alarms))


def _ends(line: DropTimeline) -> tuple[int, int, float]:
    """The first and the last moment, and the highest share."""
    highest = max(point.dropped / max(point.seen, 1) for point in line.points) or 1.0
    return line.points[0].start, line.points[-1].start + line.width, highest


def _caption(line: DropTimeline) -> str:
    first, last, highest = _ends(line)
    return f"{day(first)} to {day(last)} UTC; the highest bar is {highest:.1%} of the documents retrieved"


def _bars(line: DropTimeline) -> Iterator[tuple[float, float, float, float, str]]:
    """The share of dropped documents in each stretch of time: x, y, width, height and what it says."""
    first, last, highest = _ends(line)
    scale = WIDTH / (last - first)
    for point in line.points:
        height = HEIGHT * point.dropped / max(point.seen, 1) / highest
        title = f"{day(point.start)}: {_share(point.dropped, point.seen)} documents, {point.rows:,} answers"
        x, width = scale * (point.start - first), max(scale * line.width - 1, 0.5)
        yield round(x, 1), round(HEIGHT - height, 1), round(width, 1), round(height, 1), title
