"""`unpoison audit`: which documents tried, over all that was asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import argument, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unpoison.cli.common import RowCounts
    from unpoison.io.file_rows import FileRow, Source
    from unpoison.scan.audit import Audit
    from unpoison.scan.audit_report import AlertRule, AuditedDocument, AuditReport

__all__ = ["ALERT", "EXAMPLES", "audit"]

ALERT = 3
"""The exit status of an alert."""

MAX_REPORTED = 20
"""Rows without a screening that are named; the others are counted."""

EXAMPLES = """\b
Examples:
  unpoison audit audit.jsonl
  unpoison audit --since 7d --html week.html audit.jsonl
  unpoison audit --alert 'documents>=1' --alert 'rise>2' audit.jsonl || notify
  unpoison screen --json retrieved.jsonl | unpoison audit -

Exit status: 0 when all rows were read, 1 when some could not be, 2 when none could, 3 when an alert's rule holds.
"""


def audit(
    logs: Annotated[
        list[str],
        argument(
            "LOG",
            "Audit logs, or what 'screen', 'ask' or 'batch' wrote; LOG.1, LOG.2 and so on are read too; - reads "
            "standard input.",
        ),
    ],
    since: Annotated[str | None, option("WHEN", "Leave out what is older: 2026-03-01, or 24h, 7d, 2w ago.")] = None,
    alert: Annotated[
        list[str] | None,
        option(
            "RULE",
            "Exit with status 3 where it holds: documents>=1 (flagged), questions>=1 (under attack), sources>=1, "
            "drop-rate>0.05, rise>2. Give it once for each rule.",
        ),
    ] = None,
    top: Annotated[int, option("N", "Show the N most remarkable of each.", min=1, max=100_000)] = 20,
    as_json: Annotated[
        bool, option("--json", "Write JSON Lines: the summary, then documents, sources, questions, ...")
    ] = False,
    html: Annotated[Path | None, option("FILE", "Also write one page.")] = None,
) -> None:
    """Say which documents were dropped over all that was asked: how often, for what, since when, from whom.

    Counts are held against what the same defense drops on average, so a document is flagged for being dropped more
    often than chance has it. Also shown: sources, questions under attack, since when more is dropped, and what may be a
    false alarm. Memory stays bounded whatever the length of the log.
    """
    import time

    from unpoison.cli.common import RowCounts, count_noun, say
    from unpoison.io.output import check_output
    from unpoison.scan.audit import Audit
    from unpoison.scan.audit import since as moment
    from unpoison.scan.audit_report import AlertRule

    rules = [AlertRule.of(text) for text in alert or ()]
    if html is not None:
        for log in logs:
            check_output(html, log)
    with Audit(None if since is None else moment(since, time.time())) as report_of_log:
        counts = RowCounts("", most=MAX_REPORTED)
        for log in _parts(logs):
            _count_log(log, report_of_log, counts)
        report = report_of_log.report(top)
    if as_json:
        _write(report)
    else:
        _show(report, top)
    if html is not None:
        from unpoison.scan.audit_report import audit_page

        html.write_text(audit_page(report, f"{', '.join(logs)}: {count_noun(report.rows, 'answer')}"), encoding="utf-8")
        say(f"wrote {html}")
    say(counts.summary("read"))
    raise typer.Exit(_status(rules, report, counts))


def _status(rules: list[AlertRule], report: AuditReport, counts: RowCounts) -> int:
    """An alert goes before rows that could not be read; where nothing could be, there is nothing to be alarmed by."""
    from unpoison.cli.common import say

    held = [rule for rule in rules if rule.holds(report.measures)]
    for rule in held:
        say(f"alert: {rule.describe(report.measures)}")
    return ALERT if held and counts.exit_code != 2 else counts.exit_code


def _parts(logs: list[str]) -> Iterator[str]:
    """Every file, with the older parts of a rotated log before it; none twice."""
    from unpoison.scan.audit_log import parts_of

    existing = set[str]()
    for log in logs:
        for part in [log] if log == "-" else map(str, parts_of(log)):
            if part not in existing:
                existing.add(part)
                yield part


def _count_log(log: str, audit: Audit, counts: RowCounts) -> None:
    """Count all rows of a file; those that cannot be used are reported where they stand."""
    from unpoison.cli.common import row_progress
    from unpoison.io.files import open_source

    with open_source(log) as source, row_progress(rows_on_stdout=False) as show:
        counts.source = source.name
        for number, record in enumerate(source, 1):
            _count(record, audit, counts, source)
            if number % 100 == 0:
                show(record.position, source.size, number)


def _count(record: FileRow, audit: Audit, counts: RowCounts, source: Source) -> None:
    from unpoison.cli.common import RowOutcome
    from unpoison.errors import InputError

    error = record.error
    if error is None:
        try:
            audit.add(record.fields)
        except InputError as refused:
            error = str(refused)
    counts.add(RowOutcome(record, None, error))


def _write(report: AuditReport) -> None:
    import sys

    from unpoison.io.file_rows import json_line

    for finding in report.records():
        sys.stdout.buffer.write(json_line(finding))


def _show(report: AuditReport, top: int) -> None:
    """Print totals, documents, origins, questions and possible false alarms; what a log holds is shown as text."""
    from rich.table import Table
    from rich.text import Text

    from unpoison.cli.common import count_noun
    from unpoison.cli.display import show
    from unpoison.scan.audit_report import day

    show(
        f"{count_noun(report.rows, 'answer')}: {report.dropped:,} of {count_noun(report.seen, 'document')} dropped, "
        f"{report.totals['documents']:,} different ones seen"
    )
    if report.onset is not None:
        onset = report.onset
        show(f"since {day(onset.time)} UTC {onset.after:.2%} are dropped, before it was {onset.before:.2%}")
    for note in report.notes:
        show(note)
    if report.next_steps:
        show("", "What to do next:", *(f"{number}. {step}" for number, step in enumerate(report.next_steps, 1)))
    for title, heads, rows in _tables(report, top):
        table = Table(title=Text(title, style="bold"), title_justify="left", expand=True)
        table.add_column("", no_wrap=True, width=1)
        for column, head in enumerate(heads):
            table.add_column(head, ratio=3 if column == 0 else 1, overflow="fold")
        for cells in rows:
            table.add_row(*map(Text, cells), style="red" if cells[0] else "")
        if rows:
            show("", table)


def _tables(report: AuditReport, top: int) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Title, headings and rows of each table; the first cell of a flagged row is "!", of any other empty."""
    from unpoison.report.rendering import excerpt
    from unpoison.scan.audit_report import day

    def named(document: AuditedDocument) -> str:
        return f"{excerpt(document.id, 40)}  {excerpt(document.label, 60)}".rstrip()

    def of(part: int, whole: int) -> str:
        return f"{part:,} of {whole:,}"

    documents = [
        [
            "!" if one.flagged else "",
            named(one),
            of(one.dropped, one.seen),
            f"{one.expected:.1f}",
            f"{one.questions:,}",
            excerpt(", ".join(filter(None, (one.source, one.author))), 40),
            day(one.first_dropped),
        ]
        for one in report.documents
    ]
    origins = [
        [
            "!" if one.flagged else "",
            f"{one.kind} {excerpt(one.name, 60)}",
            of(one.dropped_documents, one.documents),
            of(one.dropped, one.seen),
            f"{one.expected:.1f}",
            day(one.first_dropped),
        ]
        for one in report.origins[:top]
    ]
    questions = [
        [
            "!" if one.flagged else "",
            excerpt(one.asked or one.id, 80),
            of(one.attacked, one.rows),
            f"{one.documents:,}",
            day(one.first_attacked),
        ]
        for one in report.questions
    ]
    alarms = [
        [
            "",
            named(one.document),
            f"{one.topics:,}",
            "unknown" if one.agrees is None else f"{one.agrees:.0%}",
            of(one.document.dropped, one.document.seen),
        ]
        for one in report.false_alarms
    ]
    flagged, attacked = report.totals["flagged"], report.totals["attacked"]
    heads = ["document", "dropped", "expected", "questions", "source, author", "since"]
    yield f"documents: {flagged:,} flagged", heads, documents
    yield "sources and authors", ["", "documents", "dropped", "expected", "since"], origins
    yield f"questions: {attacked:,} under attack", ["question", "attacked", "documents", "since"], questions
    yield "perhaps false alarms", ["document", "topics", "agrees", "dropped"], alarms
