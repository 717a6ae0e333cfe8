"""`unpoison audit`: which documents tried, over all that was asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unpoison.cli.running import RowCounts
    from unpoison.io.file_rows import FileRow, Source
    from unpoison.scan.audit import Audit
    from unpoison.scan.audit_report import AlertRule, AuditReport

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
        typer.Argument(
            metavar="LOG",
            help="Audit logs, or what 'screen', 'ask' or 'batch' wrote; LOG.1, LOG.2 and so on are read too; - reads "
            "standard input.",
        ),
    ],
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Leave out what is older: 2026-03-01, or 24h, 7d, 2w ago.")
    ] = None,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Exit with status 3 where it holds: documents>=1 (flagged), questions>=1 (under attack), sources>=1, "
            "drop-rate>0.05, rise>2. Give it once for each rule.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="Show the N most remarkable of each.")] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON Lines: the summary, then documents, sources, questions, ...")
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one page.")] = None,
) -> None:
    """Say which documents were dropped over all that was asked: how often, for what, since when, from whom.

    Counts are held against what the same defense drops on average, so a document is flagged for being dropped more
    often than chance has it. Also shown: sources, questions under attack, since when more is dropped, and what may be a
    false alarm. Memory stays bounded whatever the length of the log.
    """
    import time

    from unpoison.cli.running import RowCounts, count_noun, say
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
        from unpoison.cli.audit_tables import show_report

        show_report(report, top)
    if html is not None:
        from unpoison.scan.audit_page import audit_page

        html.write_text(audit_page(report, f"{', '.join(logs)}: {count_noun(report.rows, 'answer')}"), encoding="utf-8")
        say(f"wrote {html}")
    say(counts.summary("read"))
    raise typer.Exit(_status(rules, report, counts))


def _status(rules: list[AlertRule], report: AuditReport, counts: RowCounts) -> int:
    """An alert goes before rows that could not be read; where nothing could be, there is nothing to be alarmed by."""
    from unpoison.cli.running import say

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
    from unpoison.cli.running import row_progress
    from unpoison.io.files import open_source

    with open_source(log) as source, row_progress(rows_on_stdout=False) as show:
        counts.source = source.name
        for number, record in enumerate(source, 1):
            _count(record, audit, counts, source)
            if number % 100 == 0:
                show(record.position, source.size, number)


def _count(record: FileRow, audit: Audit, counts: RowCounts, source: Source) -> None:
    from unpoison.cli.running import RowOutcome
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
