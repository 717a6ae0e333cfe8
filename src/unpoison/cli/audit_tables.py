"""An audit as tables for a terminal; whatever a log holds is shown as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from unpoison.cli.display import show
from unpoison.cli.running import count_noun
from unpoison.report.rendering import excerpt
from unpoison.scan.audit_page import day
from unpoison.scan.audit_report import AuditedDocument, AuditedQuestion, AuditReport, FalseAlarm, Origin

__all__ = ["show_report"]


def show_report(report: AuditReport, top: int) -> None:
    """Print the report: totals, documents, origins, questions, candidates for false alarms."""
    show(
        f"{count_noun(report.rows, 'answer')}: {report.dropped:,} of {count_noun(report.seen, 'document')} dropped, "
        f"{report.totals['documents']:,} different ones seen"
    )
    if report.onset is not None:
        onset = report.onset
        show(f"since {day(onset.time)} UTC {onset.after:.2%} are dropped, before it was {onset.before:.2%}")
    for note in report.notes:
        show(note)
    flagged, attacked = report.totals["flagged"], report.totals["attacked"]
    _show(f"documents: {flagged:,} flagged", _DOCUMENT, map(_document, report.documents))
    _show("sources and authors", _ORIGIN, map(_origin, report.origins[:top]))
    _show(f"questions: {attacked:,} under attack", _QUESTION, map(_question, report.questions))
    _show("perhaps false alarms", _ALARM, map(_alarm, report.false_alarms))


_DOCUMENT = ("document", "dropped", "expected", "questions", "source, author", "since")
_ORIGIN = ("", "documents", "dropped", "expected", "since")
_QUESTION = ("question", "attacked", "documents", "since")
_ALARM = ("document", "topics", "agrees", "dropped")

Row = tuple[bool, Sequence[str]]
"""Whether it is flagged, and its cells."""


def _document(document: AuditedDocument) -> Row:
    return document.flagged, (
        _name_and_label(document.id, document.label),
        f"{document.dropped:,} of {document.seen:,}",
        f"{document.expected:.1f}",
        f"{document.questions:,}",
        excerpt(", ".join(filter(None, (document.source, document.author))), 40),
        day(document.first_dropped),
    )


def _origin(origin: Origin) -> Row:
    return origin.flagged, (
        f"{origin.kind} {excerpt(origin.name, 60)}",
        f"{origin.dropped_documents:,} of {origin.documents:,}",
        f"{origin.dropped:,} of {origin.seen:,}",
        f"{origin.expected:.1f}",
        day(origin.first_dropped),
    )


def _question(question: AuditedQuestion) -> Row:
    return question.flagged, (
        excerpt(question.asked or question.id, 80),
        f"{question.attacked:,} of {question.rows:,}",
        f"{question.documents:,}",
        day(question.first_attacked),
    )


def _alarm(alarm: FalseAlarm) -> Row:
    return False, (
        _name_and_label(alarm.document.id, alarm.document.label),
        f"{alarm.topics:,}",
        "unknown" if alarm.agrees is None else f"{alarm.agrees:.0%}",
        f"{alarm.document.dropped:,} of {alarm.document.seen:,}",
    )


def _name_and_label(name: str, label: str) -> str:
    return f"{excerpt(name, 40)}  {excerpt(label, 60)}".rstrip()


def _show(title: str, heads: Sequence[str], rows: Iterable[Row]) -> None:
    """A table, flagged rows in red and with a mark; nothing without rows."""
    table = Table(title=Text(title, style="bold"), title_justify="left", expand=True)
    table.add_column("", no_wrap=True, width=1)
    for column, head in enumerate(heads):
        table.add_column(head, ratio=3 if column == 0 else 1, overflow="fold")
    for flagged, cells in rows:
        table.add_row("!" if flagged else "", *map(Text, cells), style="red" if flagged else "")
    if table.row_count:
        show("", table)
