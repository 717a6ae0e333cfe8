"""`unpoison scan`: find planted documents in an index, without questions.

Examples:
  unpoison scan documents.jsonl
  unpoison scan --json documents.parquet > suspicious.jsonl
  unpoison scan wiki/ --html work.html --sarif scan.sarif
  unpoison scan 'qdrant:http://localhost:6333#docs' --seen docs.seen

Exit status: 0 when every document was read, 1 when some could not be, 2 when nothing could be done; with --alert 3 when
a document is flagged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.common import progress, say, say_unmatched
from unpoison.cli.display import show, text_table
from unpoison.cli.options import argument, option
from unpoison.io.output import Writer, check_output
from unpoison.report.document import PAGE_SUFFIXES, check_suffix, write_text
from unpoison.retrieval.store import store_forms
from unpoison.scan.documents import UnreadDocument
from unpoison.scan.engine import Engine as ScanEngine
from unpoison.scan.engine import read_seen, write_seen
from unpoison.scan.findings import Finding, Scan
from unpoison.scan.report import page, sarif
from unpoison.scan.scanner import scan as scanned
from unpoison.scan.sources import all_documents, describe_source
from unpoison.sources.sources import Sources
from unpoison.utils.plain_text import count_noun, excerpt, plain

MAX_NAMED = 1000
"""Unreadable rows and files that are named; the others are counted."""

MAX_SHOWN = 20
"""Documents in the table of a terminal, if fewer are flagged."""


def scan(
    source: Annotated[
        str,
        argument(
            "SOURCE",
            "JSON Lines, .csv, .tsv or .parquet with one document a row; a folder of text, Markdown, HTML, PDF, "
            "Office, mail, notebook and subtitle files; a vector store: " + store_forms() + "; - for standard input.",
        ),
    ],
    as_json: Annotated[bool, option("--json", "Write one object for each document, most suspicious first.")] = False,
    output: Annotated[Path | None, option("--output -o FILE", "Write the JSON Lines to this file.")] = None,
    sarif: Annotated[Path | None, option("FILE", "Also write the flagged documents as SARIF 2.1.0.")] = None,
    html: Annotated[
        Path | None, option("FILE", "Also write an HTML page for review: keep, quarantine, unsure.")
    ] = None,
    seen: Annotated[
        Path | None,
        option(
            "FILE",
            "Judge only documents that are not in FILE, compared with all; add those that are not flagged. A killed "
            "scan goes on where it was.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, option("PATTERN", "Skip files of a folder that match, such as '*.png'; may be repeated.")
    ] = None,
    threshold: Annotated[float, option("P", "The suspicion from which a document is flagged.")] = 0.5,
    alert: Annotated[bool, option("--alert", "Exit with status 3 if a document is flagged.")] = False,
    defense: Annotated[
        str, option("--defense -d NAME[:OPTIONS]", "Screens each document beside its neighbours.")
    ] = "guard:prompt_injection=keep",
    sources: Annotated[
        Path | None,
        option("FILE", "Policy (YAML) or history (SQLite) of sources: which near-copy is right, which texts to allow."),
    ] = None,
    workers: Annotated[int | None, option("N", "Processes; by default one for each processor.", min=1)] = None,
) -> None:
    """List the documents of an index that are probably planted, with reasons. Needs no questions."""
    for path, suffixes in ((sarif, (".sarif", ".json")), (html, PAGE_SUFFIXES)):
        if path is not None:
            check_suffix(path, suffixes)
    for path in (output, sarif, html, seen):
        if path is not None:
            check_output(path, source)
    known = Sources.of(sources)
    before = frozenset[str]() if seen is None else read_seen(seen)
    documents, failures = all_documents(source, say, ignore or (), named=MAX_NAMED)
    unfinished = None if seen is None else seen.with_name(f"{seen.name}.unfinished")
    if known is not None:
        for document in documents:
            known.blocks(document.passage)  # meets its source
        say_unmatched(known, [source])
    try:
        with progress() as advance:
            advance(0, None, "comparing")

            def show_step(step: str, done: int, total: int) -> None:
                advance(done, total, step)

            engine = ScanEngine(defense, workers, unfinished)
            scan_result = scanned(
                documents, threshold=threshold, seen=before, engine=engine, sources=known, progress=show_step
            )
    except KeyboardInterrupt:
        how = "with --seen FILE a scan" if seen is None else "the same command"
        raise KeyboardInterrupt(f"{how} goes on where it was") from None
    if failures:
        scan_result = replace(scan_result, notes=(_unread(source, failures, len(documents)), *scan_result.notes))
    _write(scan_result, source, as_json, output, sarif, html)
    if seen is not None:  # what is flagged stays unseen until it is removed or allowed, so that a gate stays red
        flagged = {finding.id for finding in scan_result.flagged}
        write_seen(seen, before.union(document.key for document in documents if document.id not in flagged))
    if unfinished is not None:
        unfinished.unlink(missing_ok=True)
    say(_summary(scan_result))
    raise typer.Exit(3 if alert and scan_result.flagged else 1 if failures else 0)


def _unread(source: str, failures: Sequence[UnreadDocument], read: int) -> str:
    """How many of all documents were not read, by type."""
    said = f"{len(failures):,} of {count_noun(len(failures) + read, 'document')} were not read"
    if not Path(source).is_dir():
        return said
    kinds = Counter(Path(failure.location).suffix.lower() or "without a suffix" for failure in failures)
    return f"{said} ({', '.join(f'{kind}: {count}' for kind, count in kinds.most_common(10))})"


def _write(
    scan_result: Scan, source: str, as_json: bool, output: Path | None, report: Path | None, html: Path | None
) -> None:

    with Writer(output, "", to_stdout=as_json) as writer:
        for finding in scan_result.findings:
            writer.write(finding.to_dict())
        active = writer.active
    if report is not None:
        log = sarif(scan_result, describe_source(source), folder=Path(source).is_dir())
        write_text(report, json.dumps(log, indent=1) + "\n")
    if html is not None:
        write_text(html, page(scan_result, describe_source(source)))
    if not active and scan_result.findings:
        flagged = scan_result.flagged
        title = "flagged" if flagged else "nothing is flagged; the most suspicious"
        show(_table(title, flagged or scan_result.findings[:5]), "")


def _table(title: str, findings: Sequence[Finding]) -> Any:
    """Suspicion, name, text, reasons, and notes on reading the document."""
    rows = [
        (
            f"{finding.suspicion:.2f}",
            f"{finding.id} ({finding.group})" if finding.group else finding.id,
            excerpt(finding.text, 160),
            excerpt("; ".join(map(plain, (*finding.reasons, *finding.notes))), 400)
            + (f"; if it is fine, allow: {finding.allow}" if finding.flagged else ""),
        )
        for finding in findings[:MAX_SHOWN]
    ]
    table = text_table(
        ("suspicion", "document", "text", "reasons"), rows, title=title, right=("suspicion",), expand=True
    )
    for column, ratio in zip(table.columns, (None, 2, 3, 3)):
        column.ratio = ratio
    if len(findings) > MAX_SHOWN:
        table.caption = f"and {len(findings) - MAX_SHOWN:,} more; --json or --html shows all"
    return table


def _summary(scan_result: Scan) -> str:

    notes = "".join(f"; {note}" for note in scan_result.notes)
    groups = len({finding.group for finding in scan_result.flagged if finding.group})
    together = f", some in {count_noun(groups, 'group')}" if groups else ""
    return (
        f"judged {count_noun(len(scan_result.findings), 'document')} of {scan_result.documents:,}; "
        f"flagged {len(scan_result.flagged):,}{together}{notes}"
    )
