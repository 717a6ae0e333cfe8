"""Reports of a scan, as a page for review and as SARIF 2.1.0, and of an audit, as a page and as tables.

SARIF is for code hosts and security dashboards. On the page of a scan each document is marked as keep, quarantine, or
unsure; decisions are stored in the browser and exported as JSON.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

from unpoison import __version__
from unpoison.core.verdicts import Span
from unpoison.report.document import Table, render
from unpoison.scan.findings import Finding, Scan
from unpoison.utils.plain_text import excerpt, plain

__all__ = ["KINDS", "AuditReport", "LogCount", "audit_page", "page", "sarif", "tables"]

MAX_DOCUMENTS = 500
"""Maximum number of documents on a page, the most suspicious first."""

MAX_TEXT = 4_000
"""Maximum characters of a document on a page."""

RULE = "planted-document"

TAGS = (
    *("security", "OWASP-LLM-2026:LLM01", "OWASP-LLM-2026:LLM05", "OWASP-LLM-2026:LLM09"),
    *("MITRE-ATLAS:AML.T0051.001", "MITRE-ATLAS:AML.T0070"),
)
"""The risks that the rule falls under. OWASP counts anew in each edition, so the edition is in the tag."""

URI_CHARACTERS = "/:?=&%#@+,;~!$'()*"
"""Characters of an address that are not quoted, beside letters and digits: an address may be a whole URL."""


def page(scan: Scan, source: str) -> str:
    """The flagged documents, then the most suspicious others, at most `MAX_DOCUMENTS`, at least ten.

    Args:
        scan: The result of the scan.
        source: The name of the source for display.
    """
    shown = scan.findings[: min(max(10, 2 * len(scan.flagged)), MAX_DOCUMENTS)]
    ids = [finding.id for finding in scan.findings[:MAX_DOCUMENTS]]
    name = blake2b(f"{source} {ids}".encode("utf-8", "replace"), digest_size=8).hexdigest()
    findings = [(finding, list(_pieces(finding))) for finding in shown]
    return render("scan.html", scan=scan, source=source, name=name, findings=findings)


def _pieces(finding: Finding) -> Iterator[tuple[str, bool]]:
    """Pieces of the displayed text, and whether each is a span; spans over nearly the whole text are left out."""
    text, at = finding.text[:MAX_TEXT], 0
    for span in finding.spans:
        start, end = max(span.start, at), min(span.end, len(text))
        if start < end and span.end - span.start < 0.9 * len(finding.text):
            yield from ((text[at:start], False), (text[start:end], True))
            at = end
    yield text[at:], False
    if len(finding.text) > MAX_TEXT:
        yield f"… and {len(finding.text) - MAX_TEXT:,} characters more", False


def sarif(scan: Scan, source: str, *, folder: bool = False) -> dict[str, Any]:
    """Flagged documents as results with their spans as character regions, JSON-ready.

    Args:
        scan: The result of the scan.
        source: The name of the source for display.
        folder: Whether its sources are paths of files, which are named from the working folder on.
    """
    rule = {
        "id": RULE,
        "name": "PlantedDocument",
        "shortDescription": {"text": "A document of the index is probably planted"},
        "fullDescription": {"text": "Its content, hidden text or repetitions are typical of planted documents."},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": list(TAGS)},
    }
    run = {
        "tool": {"driver": {"name": "unpoison", "semanticVersion": __version__, "rules": [rule]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, folder) for finding in scan.flagged],
        "properties": {"source": source, "documents": scan.documents, "notes": list(scan.notes)},
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, folder: bool) -> dict[str, Any]:
    """One alert; the first location is the primary one, the others are related."""
    first, *others = [_location(finding, folder, span) for span in finding.spans or (None,)]
    return {
        "ruleId": RULE,
        "ruleIndex": 0,
        "level": "error" if finding.suspicion >= 0.9 else "warning",
        "message": {"text": "; ".join(map(plain, finding.reasons))},
        "locations": [first],
        **({"relatedLocations": [{"id": i, **place} for i, place in enumerate(others, 1)]} if others else {}),
        "rank": round(100 * finding.suspicion, 2),
        "partialFingerprints": {"unpoisonDocument/v1": finding.id},
        "properties": {"suspicion": finding.suspicion, "group": finding.group, "neighbours": list(finding.neighbours)},
    }


def _location(finding: Finding, folder: bool, span: Span | None) -> dict[str, Any]:
    """Where a result is shown: an address, or a path relative to the repository, and the region."""
    file = finding.source or finding.id
    if folder and "://" not in file:
        file = Path(os.path.relpath(file)).as_posix()
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file, safe=URI_CHARACTERS, errors="replace")}}
    location = {"physicalLocation": place, "logicalLocations": [{"name": finding.id, "kind": "resource"}]}
    if span is not None:
        line = finding.text.count("\n", 0, span.start) + 1
        place["region"] = {"startLine": line, "charOffset": span.start, "charLength": span.end - span.start}
        location["message"] = {"text": plain(span.reason)}
    return location


KINDS = ("question", "document", "source", "author")
"""The kinds of counts; questions come first, because attacked questions flag documents."""

NAMED = 3
"""Maximum number of documents or sources in a sentence."""


@dataclass(frozen=True, slots=True)
class LogCount:
    """Counts of one document, question, source or author over the whole log.

    Attributes:
        kind: One of `KINDS`.
        name: The id of a document, or # and a hash of its text; the hash of a question.
        label: The beginning of the text of a document or question, "" if the log has no texts.
        source, author: Of a document, "" if unknown.
        seen, dropped: How often its documents were retrieved, and dropped.
        expected: Expected number of drops at the ordinary rates of the same defenses.
        chance: Probability of this number of pairs by chance, in [0, 1].
        pairs: Number of different dropped pairs of document and question.
        injections: How often a prompt injection was removed, with the document or from it.
        first_dropped: The first drop or injection in seconds since 1970, None if the log has no times.
        flagged: Whether there are two pairs or more with a chance below 0.001; documents also if they were dropped for
            a question under attack, or an injection was removed.
        pages: Number of different dropped documents.
        allow: The entry of a document in a policy's list `allow`, "" if the log has no text or id.
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
    first_dropped: float | None
    flagged: bool
    pages: int = 1
    allow: str = ""

    def rank(self) -> tuple[bool, float, str]:
        """Sort key: flagged first, then by drops beyond the expected number, then by name."""
        return (not self.flagged, -round(self.dropped - self.expected, 9), self.name)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit; lists are sorted by significance, and cut to the requested length.

    Attributes:
        rows: Number of events.
        seen, dropped: Number of documents in them, with repetitions.
        documents: Number of different documents.
        flagged: Number of flagged entries by kind.
        counts: The most significant entries with a drop or an injection, by kind.
        defenses: Name -> share of dropped documents.
        notes: Warnings.
        known: Trusted or known sources of the policy.
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
        """Recommended actions, the most urgent first."""
        steps = list[str]()
        if self.flagged["document"]:
            known = [one.name for one in self.counts["document"] if one.flagged and not one.name.startswith("#")]
            ids = " ".join(f"--id {shlex.quote(excerpt(name, 200))}" for name in known[:NAMED]) or "--id ID"
            steps.append(
                f"examine the {self.flagged['document']:,} marked documents below; move planted ones away: "
                f"unpoison quarantine STORE QUARANTINE {ids}"
            )
            if fine := [one.allow for one in self.counts["document"] if one.flagged and one.allow][:NAMED]:
                steps.append(f"list harmless ones in the policy of sources, allow: [{', '.join(fine)}]")
        flagged = [one for one in self.counts["source"] if one.flagged]
        for one in [one for one in flagged if one.pages == 1 or one.name in self.known][:NAMED]:
            pages = "one page" if one.pages == 1 else f"{one.pages:,} pages"
            whose = " (known)" if one.name in self.known else ""
            steps.append(f"{excerpt(one.name, 60)}{whose}: {one.dropped:,} drops, all of {pages}: look at it")
        named = [excerpt(one.name, 60) for one in flagged if one.pages > 1 and one.name not in self.known][:NAMED]
        if named:
            steps.append(f"dropped far more often than other sources: {', '.join(named)}; block them in a policy")
        return steps

    def records(self) -> Iterator[dict[str, Any]]:
        """JSON-ready objects, each with its `kind`: first the summary, then documents and so on."""
        summary = {name: getattr(self, name) for name in ("rows", "seen", "dropped", "documents")}
        rest = {"flagged": dict(self.flagged), "defenses": dict(self.defenses), "notes": list(self.notes)}
        yield {"kind": "summary", **summary, **rest, "next_steps": self.next_steps}
        for kind in ("document", "source", "author", "question"):
            yield from map(asdict, self.counts[kind])


def day(time: float | None) -> str:
    """A time to the minute in UTC, "" for None."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def tables(report: AuditReport) -> Iterator[Table]:
    """Tables of documents, sources and authors, and questions, for the terminal and the page."""
    origins = tuple(sorted((*report.counts["source"], *report.counts["author"]), key=LogCount.rank))
    flagged, attacked = (f"{report.flagged[kind]:,}" for kind in ("document", "question"))
    none = "; none was dropped for more questions than by chance" * (not report.flagged["document"])
    for title, columns, counts in (
        (f"documents: {flagged} flagged{none}", ("questions", "source, author"), report.counts["document"]),
        ("sources and authors", ("documents and questions",), origins),
        (f"questions: {attacked} under attack", ("documents",), report.counts["question"]),
    ):
        rows = tuple(
            (
                _named(one),
                f"{one.dropped:,} of {one.seen:,}" + f" [injections: {one.injections:,}]" * (one.injections > 0),
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
    """The beginning of a document and, if it is flagged, its `allow` entry."""
    return f"{one.label} (if it is fine, allow: {one.allow})".lstrip() if one.flagged and one.allow else one.label


def _named(one: LogCount) -> str:
    if one.kind == "question":
        return excerpt(one.label or one.name, 80)
    return excerpt(one.name, 60) if one.kind == "document" else f"{one.kind} {excerpt(one.name, 60)}"


def audit_page(report: AuditReport, remark: str = "") -> str:
    """The report as an HTML page.

    Args:
        report: The result of `Audit.report`.
        remark: A sentence under the heading, such as the name of the file.
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
