"""An audit as one self-contained page. What a log holds is escaped; the page forbids itself scripts and requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from unpoison.report.html_page import html_page, resource
from unpoison.report.rendering import excerpt
from unpoison.scan.audit_report import AuditedDocument, AuditedQuestion, AuditReport, FalseAlarm, Origin
from unpoison.scan.audit_store import DropTimeline

__all__ = ["audit_page", "day"]

WIDTH, HEIGHT = 900, 160
"""The picture's size in SVG units."""


def audit_page(report: AuditReport, remark: str = "") -> str:
    """The whole report on one page.

    Args:
        report: What `Audit.report` returned.
        remark: A sentence under the heading, such as which file was read.
    """
    notes = "".join(f"<li>{_excerpt_html(note, 400)}</li>" for note in report.notes)
    note_list = f'<ul class="notes">{notes}</ul>' if notes else ""
    body = "\n".join(
        (
            _section("Over time", _onset(report) + _chart(report.timeline)),
            _section("Documents", _table(_DOCUMENT, map(_document, report.documents)), "the most remarkable first"),
            _section("Sources and authors", _table(_ORIGIN, map(_origin, report.origins))),
            _section("Questions under attack", _table(_QUESTION, map(_question, report.questions))),
            _section(
                "Perhaps false alarms",
                _table(_ALARM, map(_alarm, report.false_alarms)),
                "dropped for unrelated questions, and saying what the kept passages say",
            ),
        )
    )
    head = (
        f"<header><h1>What was dropped</h1><p>{_excerpt_html(remark, 400)}</p></header>\n{_totals(report)}\n{note_list}"
    )
    return html_page("what was dropped", f"{head}\n<main>\n{body}\n</main>", style=resource("page.css", "audit.css"))


def day(time: float | None) -> str:
    """A moment to the minute in UTC, "" for none."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")


def _excerpt_html(text: str, limit: int = 160) -> str:
    return escape(excerpt(text, limit))


def _totals(report: AuditReport) -> str:
    totals = (
        ("answers", f"{report.rows:,}"),
        ("documents dropped, of those retrieved", f"{report.dropped:,} of {report.seen:,}"),
        ("different documents", f"{report.totals['documents']:,}"),
        ("documents flagged", f"{report.totals['flagged']:,}"),
        ("questions under attack", f"{report.totals['attacked']:,}"),
        ("perhaps false alarms", f"{report.totals['false_alarms']:,}"),
    )
    return (
        '<dl class="totals">'
        + "".join(f"<div><dt>{name}</dt><dd>{number}</dd></div>" for name, number in totals)
        + "</dl>"
    )


def _section(title: str, body: str, remark: str = "") -> str:
    heading_remark = f" <small>{remark}</small>" if remark else ""
    return f"<section><h2>{title}{heading_remark}</h2>\n{body}\n</section>"


def _table(heads: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> str:
    """A table; each row is whether it is flagged, and its cells, escaped already."""
    body = "\n".join(
        f"<tr{' class=flagged' if flagged else ''}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for flagged, cells in rows
    )
    if not body:
        return "<p>None.</p>"
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


_DOCUMENT = (
    "document",
    "dropped",
    "expected",
    "questions",
    "suspicion",
    "source, author",
    "first seen",
    "first dropped",
)
_ORIGIN = ("source or author", "documents dropped", "times dropped", "expected", "first dropped")
_QUESTION = ("question", "asked", "attacked", "documents dropped", "first attacked")
_ALARM = ("document", "topics", "agrees with the others", "dropped")


def _document(document: AuditedDocument) -> tuple[bool, Sequence[str]]:
    orders = f" <small>{document.orders:,} for prompt injection</small>" if document.orders else ""
    origin = ", ".join(filter(None, (_excerpt_html(document.source, 80), _excerpt_html(document.author, 80))))
    return document.flagged, (
        f'<b dir="auto">{_excerpt_html(document.id, 80)}</b>'
        f'<blockquote dir="auto">{_excerpt_html(document.label)}</blockquote>',
        f"{document.dropped:,} of {document.seen:,}{orders}",
        f"{document.expected:.1f}",
        f"{document.questions:,}",
        f"{document.suspicion:.2f}",
        origin,
        day(document.first),
        day(document.first_dropped),
    )


def _origin(entry: Origin) -> tuple[bool, Sequence[str]]:
    return entry.flagged, (
        f'<b dir="auto">{_excerpt_html(entry.name, 120)}</b> <small>{entry.kind}</small>',
        f"{entry.dropped_documents:,} of {entry.documents:,}",
        f"{entry.dropped:,} of {entry.seen:,}",
        f"{entry.expected:.1f}",
        day(entry.first_dropped),
    )


def _question(question: AuditedQuestion) -> tuple[bool, Sequence[str]]:
    return question.flagged, (
        f'<span dir="auto">{_excerpt_html(question.asked) or _excerpt_html(question.id)}</span>',
        f"{question.rows:,}",
        f"{question.attacked:,}",
        f"{question.documents:,}",
        day(question.first_attacked),
    )


def _alarm(alarm: FalseAlarm) -> tuple[bool, Sequence[str]]:
    document = alarm.document
    return False, (
        f'<b dir="auto">{_excerpt_html(document.id, 80)}</b>'
        f'<blockquote dir="auto">{_excerpt_html(document.label)}</blockquote>',
        f"{alarm.topics:,}",
        "unknown" if alarm.agrees is None else f"{alarm.agrees:.0%}",
        f"{document.dropped:,} of {document.seen:,}",
    )


def _onset(report: AuditReport) -> str:
    if report.onset is None:
        return "<p>No moment from which on more is dropped than before.</p>"
    onset = report.onset
    return (
        f"<p>Since <b>{day(onset.time)}</b> UTC {onset.after:.2%} of the documents are dropped; "
        f"before, it was {onset.before:.2%}.</p>"
    )


def _chart(line: DropTimeline) -> str:
    """The share of dropped documents in each stretch of time, as bars."""
    if len(line.points) < 2:
        return ""
    first, last = line.points[0].start, line.points[-1].start + line.width
    most = max(point.dropped / max(point.seen, 1) for point in line.points) or 1.0
    bars = "".join(_bars(line, first, last, most))
    caption = f"{day(first)} to {day(last)} UTC; the highest bar is {most:.1%} of the documents retrieved"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Share of documents dropped over time">{bars}</svg>'
        f"<p><small>{caption}</small></p>"
    )


def _bars(line: DropTimeline, first: int, last: int, most: float) -> Iterator[str]:
    for point in line.points:
        share = point.dropped / max(point.seen, 1)
        x, wide = (WIDTH * (point.start - first) / (last - first), max(WIDTH * line.width / (last - first) - 1, 0.5))
        high = HEIGHT * share / most
        title = f"{day(point.start)}: {point.dropped:,} of {point.seen:,} documents, {point.rows:,} answers"
        yield (
            f'<rect x="{x:.1f}" y="{HEIGHT - high:.1f}" width="{wide:.1f}" height="{high:.1f}">'
            f"<title>{title}</title></rect>"
        )
