"""`unpoison audit`: the documents that were dropped over all questions.

Examples:
  unpoison audit audit.jsonl
  unpoison audit --since 7d --html week.html audit.jsonl
  unpoison audit --alert audit.jsonl || notify
  unpoison screen --json retrieved.jsonl | unpoison audit -

Exit status: 0 when all rows were read, 1 when some could not be, 2 when none could; with --alert 3 when a document is
flagged.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.common import RowCounts, say, usable_rows
from unpoison.cli.display import show, text_table
from unpoison.cli.options import argument, option
from unpoison.errors import InputError
from unpoison.io.file_rows import json_line
from unpoison.io.output import check_output
from unpoison.report.document import PAGE_SUFFIXES, check_suffix, write_text
from unpoison.scan.audit import Audit
from unpoison.scan.documents import moment
from unpoison.scan.report import AuditReport, audit_page, tables
from unpoison.sources.sources import Sources
from unpoison.utils.plain_text import count_noun

ALERT = 3
"""The exit status of an alert."""

MAX_REPORTED = 20
"""Rows without a screening that are named; the others are counted."""

_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def audit(
    logs: Annotated[list[str], argument("LOG", "Audit logs, or what 'screen' or 'ask' wrote; - reads standard input.")],
    since: Annotated[str | None, option("WHEN", "Ignore older rows: 2026-03-01, or 24h, 7d, 2w ago.")] = None,
    alert: Annotated[bool, option("--alert", "Exit with status 3 when a document is flagged.")] = False,
    sources: Annotated[
        Path | None, option("FILE", "Policy (YAML) of sources; blocking is not recommended for known ones.")
    ] = None,
    top: Annotated[int, option("N", "Show the first N rows of each table.", min=1, max=100_000)] = 20,
    as_json: Annotated[
        bool, option("--json", "Write JSON Lines: the summary, then documents, sources, questions, ...")
    ] = False,
    html: Annotated[Path | None, option("FILE", "Also write one page.")] = None,
) -> None:
    """List the documents that were dropped over all questions: how often, why, since when, and their sources.

    Counts are compared with the average of the same defense, so a document is flagged if it is dropped more often than
    by chance. Also shown: sources, questions under attack, and since when more is dropped. Memory stays
    bounded for logs of any length.
    """
    if html is not None:
        check_suffix(html, PAGE_SUFFIXES)
        for log in logs:
            check_output(html, log)
    with Audit(None if since is None else _moment(since, time.time()), Sources.of(sources)) as counted:
        counts = RowCounts("", most=MAX_REPORTED)
        for _ in usable_rows(dict.fromkeys(logs), counts, counted.add):
            pass
        report = counted.report(top)
    if as_json:
        sys.stdout.buffer.writelines(map(json_line, report.records()))
    else:
        _show(report)
    if html is not None:
        write_text(html, audit_page(report, f"{', '.join(logs)}: {count_noun(report.rows, 'answer')}"))
        say(f"wrote {html}")
    say(counts.summary("read"))
    raise typer.Exit(ALERT if alert and report.flagged["document"] else counts.exit_code)


def _moment(text: str, now: float) -> float:
    """The time of `--since`: an ISO date or time, or an age such as 24h, 7d or 2w.

    Raises:
        InputError: Neither.
    """
    number, unit = text[:-1], text[-1:]
    if unit in _SECONDS and number.isdecimal() and number.isascii() and len(number) <= 6:
        return now - int(number) * _SECONDS[unit]
    time = None if text.replace(".", "", 1).isdecimal() else moment(text)
    if time is None:
        raise InputError(f"since must be a date such as 2026-03-01, or a time ago such as 24h or 7d, got {text!r}")
    return time.timestamp()


def _show(report: AuditReport) -> None:
    """Print totals and tables; text of the log is untrusted and shown as plain text."""
    show(
        f"{count_noun(report.rows, 'answer')}: {report.dropped:,} of {count_noun(report.seen, 'document')} dropped, "
        f"{report.documents:,} different ones seen"
    )
    show(*report.notes)
    if report.next_steps:
        show("", "Next steps:", *(f"{number}. {step}" for number, step in enumerate(report.next_steps, 1)))
    for table in tables(report):
        rows = [
            ("!" if i in table.flagged else "", f"{name}  {quoted}".rstrip(), *cells)
            for i, ((name, *cells), quoted) in enumerate(zip(table.rows, table.quotes))
        ]
        if rows:
            show("", text_table(("", *table.columns), rows, title=table.title, right=table.columns[1:4], expand=True))
