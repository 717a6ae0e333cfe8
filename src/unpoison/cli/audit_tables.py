"""An audit as tables for a terminal; whatever a log holds is shown as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from unpoison.at_rest.audit_page import day
from unpoison.at_rest.audit_report import Report
from unpoison.cli.display import show
from unpoison.cli.running import counted
from unpoison.rendering import excerpt

__all__ = ["show_report"]


def show_report(report: Report, top: int) -> None:
    """Print the report: totals, documents, origins, questions, candidates for false alarms."""
    show(
        f"{counted(report.rows, 'answer')}: {report.dropped:,} of {counted(report.seen, 'document')} dropped, "
        f"{report.totals['documents']:,} different ones seen"
    )
    if report.onset is not None:
        onset = report.onset
        show(f"since {day(onset.time)} UTC {onset.after:.2%} are dropped, before it was {onset.before:.2%}")
    for note in report.notes:
        show(note)
    rows = [
        (
            entry.flagged,
            (
                _named(entry.id, entry.label),
                f"{entry.dropped:,} of {entry.seen:,}",
                f"{entry.expected:.1f}",
                f"{entry.questions:,}",
                excerpt(", ".join(filter(None, (entry.source, entry.author))), 40),
                day(entry.first_dropped),
            ),
        )
        for entry in report.documents
    ]
    title = f"documents: {report.totals['flagged']:,} flagged"
    _show(title, ("document", "dropped", "expected", "questions", "source, author", "since"), rows)
    origins = [
        (
            entry.flagged,
            (
                f"{entry.kind} {excerpt(entry.name, 60)}",
                f"{entry.dropped_documents:,} of {entry.documents:,}",
                f"{entry.dropped:,} of {entry.seen:,}",
                f"{entry.expected:.1f}",
                day(entry.first_dropped),
            ),
        )
        for entry in report.origins[:top]
    ]
    _show("sources and authors", ("", "documents", "dropped", "expected", "since"), origins)
    questions = [
        (
            entry.flagged,
            (excerpt(entry.asked or entry.id, 80), f"{entry.attacked:,} of {entry.rows:,}", f"{entry.documents:,}",
             day(entry.first_attacked)),
        )
        for entry in report.questions
    ]  # fmt: skip
    title = f"questions: {report.totals['attacked']:,} under attack"
    _show(title, ("question", "attacked", "documents", "since"), questions)
    alarms = [
        (
            False,
            (
                _named(entry.document.id, entry.document.label),
                f"{entry.topics:,}",
                "unknown" if entry.agrees is None else f"{entry.agrees:.0%}",
                f"{entry.document.dropped:,} of {entry.document.seen:,}",
            ),
        )
        for entry in report.false_alarms
    ]
    _show("perhaps false alarms", ("document", "topics", "agrees", "dropped"), alarms)


def _named(name: str, label: str) -> str:
    return f"{excerpt(name, 40)}  {excerpt(label, 60)}".rstrip()


def _show(title: str, heads: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]) -> None:
    """A table, flagged rows in red and with a mark; nothing without rows."""
    table = Table(title=Text(title, style="bold"), title_justify="left", expand=True)
    table.add_column("", no_wrap=True, width=1)
    for column, head in enumerate(heads):
        table.add_column(head, ratio=3 if column == 0 else 1, overflow="fold")
    for flagged, cells in rows:
        table.add_row("!" if flagged else "", *map(Text, cells), style="red" if flagged else "")
    if table.row_count:
        show("", table)
