"""`unpoison check`: attacks a copy of your documents, or a running system, and recommends a defense.

Examples:
  unpoison check docs/
  unpoison check documents.jsonl --report check.html --policy sources.yaml
  unpoison check 'qdrant:http://localhost:6333#docs'
  unpoison check docs/ --no-reader --questions 50 --json > check.json
  unpoison check docs/ --fail-if 'flagged > 0' --fail-if 'contradictions > 0'
  unpoison check http://localhost:8000
  unpoison check http://localhost:8000/chat --ask 'How many days of leave are there?' --plant
  unpoison check redteam.yaml --plant --report check.html

Your documents and your store are not changed: the attacks run on a copy in memory. A running system is only asked. With
--plant it gets false documents, each recorded in --journal first and removed after its question. If a check is killed,
the next one removes the rest.
Exit status: 0 when everything was measured; 1 when a document could not be read, no question could be generated or a
--fail-if holds; 2 when the check failed; with --alert 3 when a document is flagged or two contradict each other. With
--plant the error says whether a document may remain.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from unpoison.check.check import CheckResult, check_documents
from unpoison.check.page import check_page, checked, code_lines, headline, sections
from unpoison.cli.common import progress, say
from unpoison.cli.display import report_table, show
from unpoison.cli.options import argument, option
from unpoison.core.registry import from_laboratory
from unpoison.errors import OptionError
from unpoison.io.output import check_output
from unpoison.report.document import PAGE_SUFFIXES, check_suffix, write_text
from unpoison.retrieval.store import store_forms
from unpoison.scan.sources import all_documents, describe_source
from unpoison.utils.files import path_names
from unpoison.utils.plain_text import plain

live_option = partial(option, rich_help_panel="A running system")
"""The section of the help."""

QUESTIONS, QUESTIONS_LIVE = 25, 10
"""Default numbers of questions: for documents, and for a running system, which is asked each one repeatedly."""


def check(
    source: Annotated[
        str,
        argument(
            "DOCS",
            "A folder of text, HTML, PDF, Office, mail and other files; JSON Lines, .csv, .tsv or .parquet with one "
            "document a row; a vector store: " + store_forms() + "; - for standard input; the address of a running "
            "RAG, or a target file (.yaml) that describes one.",
        ),
    ],
    report: Annotated[Path | None, option("FILE.html", "Also write an HTML report that works offline.")] = None,
    as_json: Annotated[bool, option("--json", "Write JSON to standard output instead of tables.")] = False,
    policy: Annotated[
        Path | None, option("FILE", "Write the recommended source policy to this file instead of showing it.")
    ] = None,
    questions: Annotated[
        int | None,
        option("N", "Questions to generate from the documents. [default: 25; 10 with --plant]", min=1, max=1000),
    ] = None,
    alert: Annotated[
        bool, option("--alert", "Exit with status 3 if a document is flagged or two contradict each other.")
    ] = False,
    fail_if: Annotated[
        list[str] | None,
        option("--fail-if COUNT", "Exit with status 1 if it holds: 'flagged > 0', 'reached > 5%'; may be repeated."),
    ] = None,
    reader: Annotated[
        bool | None,
        option("--reader/--no-reader", "Whether the small reader answers the questions. [default: if it is installed]"),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        option("--ignore PATTERN", "Skip files of a folder that match, such as '*.png'; may be repeated."),
    ] = None,
    plant: Annotated[
        bool, live_option("--plant", "Plant false documents in the running system, and remove each one.")
    ] = False,
    journal: Annotated[Path, live_option("FILE", "Record every document here before it is planted.")] = Path(
        "check.journal"
    ),
    ask: Annotated[
        list[str] | None, live_option("--ask QUESTION", "Ask this to see the system's passages; may be repeated.")
    ] = None,
    model: Annotated[
        str | None, live_option("NAME", "The model of a chat endpoint. [default: the first that it lists]")
    ] = None,
    may_test: Annotated[
        list[str] | None,
        live_option("--i-may-test HOST", "Allow requests to this host besides this machine; repeatable."),
    ] = None,
) -> None:
    """Check documents or a running RAG: which documents look planted, and which attacks would succeed."""
    is_target_file = source.lower().endswith((".yaml", ".yml")) and Path(source).is_file()
    live = source.startswith(("http://", "https://")) or is_target_file
    if not live and (plant or ask or model or may_test):
        raise OptionError(
            "--plant, --ask, --model and --i-may-test are for a running system; give its address, such as "
            "http://localhost:8000, or a target file"
        )
    if report is not None:
        check_suffix(report, PAGE_SUFFIXES)
    for path in filter(None, (report, policy)):
        check_output(path, source)
    gates = [_gate(text) for text in fail_if or ()]
    options: dict[str, Any] = {"questions": questions or (QUESTIONS_LIVE if plant else QUESTIONS), "reader": reader}
    with progress() as advance:
        if live:
            check_system = from_laboratory("checks", "system", "checking a running system")
            given: dict[str, Any] = {"journal": journal, "plant": plant, "model": model, "ask": ask or ()}
            result: CheckResult = check_system(source, may_test or (), progress=advance, **given, **options)
        else:
            result = _check_documents(source, ignore or [], progress=advance, **options)
    if policy is not None:
        write_text(policy, result.policy)
    code = code_lines(str(policy or "sources.yaml"), reader=result.reader)
    if report is not None:
        write_text(report, check_page(result, code))
    if as_json:
        typer.echo(json.dumps({**result.to_dict(), "code": code}, indent=1, ensure_ascii=False))
    else:
        _show(result, code, policy)
    counts = _counts(result)
    failed = [text for text, name, bound in gates if counts[name] > bound]
    for text in failed:
        say(f"failed: {text}")
    found = alert and (result.flagged or result.contradictions)
    raise typer.Exit(1 if failed else 3 if found else 1 if result.unread or not result.questions else 0)


COUNTS = ("flagged", "contradictions", "unread", "reached")
"""What --fail-if bounds: documents, pairs, documents, and the share of lies behind the recommendation that are read."""


def _gate(text: str) -> tuple[str, str, float]:
    """A bound as written, its count, and the most that is allowed.

    Raises:
        OptionError: It is no bound.
    """
    form = re.fullmatch(rf"\s*({'|'.join(COUNTS)})\s*>\s*(\d{{1,9}}(?:\.\d{{1,9}})?)\s*+(%?)\s*+", text)
    if form is None:
        raise OptionError(f"--fail-if must be a count and a bound, such as 'flagged > 0', got {text!r}; counts: "
                          f"{', '.join(COUNTS)}")  # fmt: skip
    return text, form[1], float(form[2]) / (100 if form[3] else 1)


def _counts(result: CheckResult) -> dict[str, float]:
    shares = [one.guard.value for one in result.outcomes if one.guard.defined]
    counts = (len(result.flagged), len(result.contradictions), result.unread, max(shares, default=0.0))
    return dict(zip(COUNTS, map(float, counts)))


def _check_documents(source: str, ignore: list[str], **options: Any) -> CheckResult:
    """Check documents; files that cannot be read are named."""
    documents, failures = all_documents(source, say, ignore)
    roots = path_names(Path(source))
    if not any((one.passage.source or "").startswith(roots[0]) for one in documents):
        roots = ()  # rows of a file or store have sources of their own
    return check_documents(describe_source(source), documents, roots=roots, unread=len(failures), **options)


def _show(result: CheckResult, code: str, policy: Path | None) -> None:

    show(checked(result), *headline(result))
    for number, section in enumerate(sections(result, code), 1):
        show("", f"{number}. {section.title}" + (f": {section.text}" if section.text else ""), "")
        for table in section.tables:
            show(report_table(table), "")
        if section.part:
            how = "The policy, for a file sources.yaml (--policy sources.yaml writes it):"
            show(how if policy is None else f"The policy is {policy}.", "")
            if policy is None:
                typer.echo(result.policy)
            typer.echo(indent(code, "    "))  # as it is, to be copied
        for note in section.notes:
            typer.echo(plain(f"- {note}"))  # not wrapped: a command in it is to be copied
