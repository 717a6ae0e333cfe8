"""The result of an audit, as data and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from unpoison.report.document import Table
from unpoison.report.pages import render
from unpoison.report.rendering import excerpt

__all__ = ["KINDS", "AuditReport", "LogCount", "audit_page", "day", "tables"]

KINDS = ("question", "document", "source", "author")
"""What is counted; under attack questions are found first."""

NAMED = 3
"""Documents and sources that a sentence names."""


@dataclass(frozen=True, slots=True)
class LogCount:
    """One document, question, source or author over the whole log.

    Attributes:
        kind: One of `KINDS`.
        name: A document's id, or # and a hash of its text; a question's hash.
        label: The beginning of a document's or question's text, "" where the log has none.
        source, author: Where a document came from, "" where unknown.
        seen, dropped: How often its documents were retrieved, and kept from the model.
        expected: How often on average, with what the same defenses drop on an ordinary day.
        chance: The probability of so many pairs by chance, in [0, 1].
        pairs: Different pairs of document and question that were dropped.
        injections: How often for a prompt injection.
        first, first_dropped: Seconds since 1970, None where the log has no times.
        flagged: Whether there are two pairs or more, and so many by chance in less than one of 1,000 cases; a document
            also for being dropped for a question under attack.
        pages: Different documents that were dropped.
        allow: Of a document the entry of a policy's list `allow` that names it, "" where the log does not say.
    """

    kind: str
    name: str
    label: str
    source: str
    author: str
    seen: int
    dropped: int
    expected: float
    chance: float
    pairs: int
    injections: int
    first: float | None
    first_dropped: float | None
    flagged: bool
    pages: int = 1
    allow: str = ""

    def rank(self) -> tuple[bool, float, str]:
        """Flagged first, then by how many drops there are beyond the expected, then by name."""
        return (not self.flagged, -round(self.dropped - self.expected, 9), self.name)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit; every list has the most remarkable first, and at most the requested length.

    Attributes:
        rows: Events that were counted.
        seen, dropped: Documents in them, repetitions included.
        documents: Different ones.
        flagged: How many are flagged in all, by kind.
        counts: The most remarkable of those that were dropped at all, by kind.
        defenses: Name -> share of documents that it dropped.
        notes: What a reader has to know.
        known: Sources that the policy trusts or knows.
    """

    rows: int
    seen: int
    dropped: int
    documents: int
    flagged: Mapping[str, int]
    counts: Mapping[str, tuple[LogCount, ...]]
    defenses: Mapping[str, float]
    notes: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()

    @property
    def next_steps(self) -> list[str]:
        """What to do now, the most urgent first."""
        steps = list[str]()
        if self.flagged["document"]:
            known = [one.name for one in self.counts["document"] if one.flagged and not one.name.startswith("#")]
            ids = " ".join(f"--id {quote(excerpt(name, 200))}" for name in known[:NAMED]) or "--id ID"
            steps.append(
                f"look at what is marked below, documents: {self.flagged['document']:,}; for those that are planted: "
                f"unpoison quarantine STORE QUARANTINE {ids}"
            )
            if fine := [one.allow for one in self.counts["document"] if one.flagged and one.allow][:NAMED]:
                steps.append(f"those that are fine go into the policy of sources, allow: [{', '.join(fine)}]")
        flagged = [one for one in self.counts["source"] if one.flagged]
        for one in [one for one in flagged if one.pages == 1 or one.name in self.known][:NAMED]:
            pages = "one page" if one.pages == 1 else f"{one.pages:,} pages"
            whose = ", which you know" if one.name in self.known else ""
            steps.append(f"{excerpt(one.name, 60)}{whose}: {one.dropped:,} drops, all of {pages}: look at it")
        named = [excerpt(one.name, 60) for one in flagged if one.pages > 1 and one.name not in self.known][:NAMED]
        if named:
            steps.append(
                f"dropped far more often than others: {', '.join(named)}; block or mistrust them in a policy of sources"
            )
        return steps

    def records(self) -> Iterator[dict[str, Any]]:
        """Everything as JSON-ready objects, each with its `kind`: first the summary, then documents and so on."""
        summary = {name: getattr(self, name) for name in ("rows", "seen", "dropped", "documents")}
        rest = {"flagged": dict(self.flagged), "defenses": dict(self.defenses), "notes": list(self.notes)}
        yield {"kind": "summary", **summary, **rest, "next_steps": self.next_steps}
        for kind in ("document", "source", "author", "question"):
            yield from map(asdict, self.counts[kind])


def day(time: float | None) -> str:
    """A moment to the minute in UTC, "" for none."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def tables(report: AuditReport) -> Iterator[Table]:
    """Documents, sources and authors, questions: for the terminal and the page alike."""
    origins = tuple(sorted((*report.counts["source"], *report.counts["author"]), key=LogCount.rank))
    flagged, attacked = (f"{report.flagged[kind]:,}" for kind in ("document", "question"))
    for title, columns, counts in (
        (f"documents: {flagged} flagged", ("questions", "source, author"), report.counts["document"]),
        ("sources and authors", ("documents and questions",), origins),
        (f"questions: {attacked} under attack", ("documents",), report.counts["question"]),
    ):
        rows = tuple(
            (
                _named(one),
                f"{one.dropped:,} of {one.seen:,}" + f" [{one.injections:,} injections]" * (one.injections > 0),
                f"{one.expected:.1f}",
                f"{one.pairs:,}",
                *([excerpt(", ".join(filter(None, (one.source, one.author))), 80)] if one.kind == "document" else []),
                day(one.first_dropped),
            )
            for one in counts
        )
        yield Table(
            title,
            (title.partition(":")[0], "dropped", "expected", *columns, "since"),
            rows,
            quotes=tuple(_quote(one) if one.kind == "document" else "" for one in counts),
            flagged=frozenset(i for i, one in enumerate(counts) if one.flagged),
        )


def _quote(one: LogCount) -> str:
    """The beginning of a document, and of a flagged one the line that allows it."""
    return f"{one.label} (if it is fine, allow: {one.allow})".lstrip() if one.flagged and one.allow else one.label


def _named(one: LogCount) -> str:
    if one.kind == "question":
        return excerpt(one.label or one.name, 80)
    return excerpt(one.name, 60) if one.kind == "document" else f"{one.kind} {excerpt(one.name, 60)}"


def audit_page(report: AuditReport, remark: str = "") -> str:
    """The whole report on one page.

    Args:
        report: What `Audit.report` returned.
        remark: A sentence under the heading, such as which file was read.
    """
    totals = [
        ("answers", f"{report.rows:,}"),
        ("documents dropped, of those retrieved", f"{report.dropped:,} of {report.seen:,}"),
        ("different documents", f"{report.documents:,}"),
        ("documents flagged", f"{report.flagged['document']:,}"),
        ("questions under attack", f"{report.flagged['question']:,}"),
    ]
    pieces = [(table.title.capitalize(), replace(table, title="")) for table in tables(report)]
    return render("audit.html", report=report, remark=remark, totals=totals, tables=pieces)
