"""`unpoison check`: one's own documents, attacked in a copy, or a running system; and what to put in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import argument, option

if TYPE_CHECKING:
    from unpoison.bench.check import Check, CheckResult, SystemCheck
    from unpoison.scan.documents import Failure

__all__ = ["EXAMPLES", "check"]

LIVE = "A running system"
"""The heading of its options."""

MAX_NAMED = 5
"""Rows and files that are named because they could not be read; the others are counted."""

MAX_ORIGINS = 5
"""Sources in the table of a terminal."""

QUESTIONS, QUESTIONS_LIVE = 25, 10
"""Questions that are made: from documents, and where each is asked of a running system again and again."""

POLICY = "sources.yaml"
"""The policy's name in the state's folder."""

EXAMPLES = """\b
Examples:
  unpoison check docs/
  unpoison check documents.jsonl --report check.html
  unpoison check 'qdrant:http://localhost:6333#docs' --framework langchain
  unpoison check docs/ --no-reader --questions 50 --json > check.json
  unpoison check http://localhost:8000
  unpoison check http://localhost:8000/chat --ask 'How many days of leave are there?' --plant
  unpoison check redteam.yaml --plant --report check.html

Nothing is written into your documents or your store: the attacks happen in a copy in memory. A running system is only
asked; with --plant false documents are put into it, written down first, and removed again after every question.
Interrupted or killed, a check goes on where it was when it is started again, and removes first what may be left.
Exit status: 0 when everything was measured, 1 when a document could not be read, nothing could be asked, or a planted
one may remain, 2 when nothing could be done.
"""


class Framework(StrEnum):
    """Whose lines are shown."""

    PYTHON = "python"
    LANGCHAIN = "langchain"
    LLAMAINDEX = "llamaindex"
    HAYSTACK = "haystack"


def check(
    source: Annotated[
        str,
        argument(
            "DOCS",
            "A folder of text, Markdown, HTML, PDF, DOCX and XLSX files; JSON Lines, .csv, .tsv or .parquet with one "
            "document a row; chroma:FOLDER#COLLECTION; qdrant:URL#COLLECTION; postgresql://...#TABLE; - for standard "
            "input; the address of a running RAG, or a target file (.yaml) that describes one.",
        ),
    ],
    report: Annotated[Path | None, option("FILE.html", "Also write one page for who decides; works offline.")] = None,
    as_json: Annotated[bool, option("--json", "Write JSON to standard output instead of tables.")] = False,
    policy: Annotated[
        Path | None, option("FILE", f"Where the recommended policy goes. [default: {POLICY} in the state's folder]")
    ] = None,
    framework: Annotated[
        Framework | None, option("", "Whose lines of code are shown. [default: what is installed]")
    ] = None,
    questions: Annotated[
        int | None,
        option(
            "N",
            f"Questions that are made from the documents. [default: {QUESTIONS}; {QUESTIONS_LIVE} with --plant]",
            min=1,
            max=1000,
        ),
    ] = None,
    reader: Annotated[
        bool | None,
        option("--reader/--no-reader", "Whether the small reader answers. [default: where it is installed]"),
    ] = None,
    state: Annotated[str | None, option("FOLDER|off", "Where what was measured is kept. [default: DOCS.check]")] = None,
    workers: Annotated[
        int | None, option("N", "Processes of the scan; by default one for each processor.", min=1)
    ] = None,
    ignore: Annotated[
        list[str] | None, option("--ignore PATTERN", "Files of a folder that are no documents, such as '*.png'.")
    ] = None,
    plant: Annotated[
        bool,
        option("--plant", "Put false documents into the running system, and remove each again.", rich_help_panel=LIVE),
    ] = False,
    ask: Annotated[
        list[str] | None,
        option("--ask QUESTION", "What its documents answer, to see them; may be repeated.", rich_help_panel=LIVE),
    ] = None,
    model: Annotated[
        str | None, option("NAME", "The model of a chat endpoint; else the first it lists.", rich_help_panel=LIVE)
    ] = None,
    may_test: Annotated[
        list[str] | None,
        option("--i-may-test HOST", "A host other than this machine that you may test.", rich_help_panel=LIVE),
    ] = None,
) -> None:
    """Check your own documents, or a running RAG: what is planted already, and which attacks would get through."""
    from unpoison.bench.check.page import check_page
    from unpoison.bench.check.snippets import installed_framework, snippet
    from unpoison.bench.check.system import is_target_file
    from unpoison.cli.common import progress, say
    from unpoison.errors import OptionError, TargetError
    from unpoison.io.output import check_output
    from unpoison.scan.engine import describe_source, usual_folder

    live = source.startswith(("http://", "https://")) or is_target_file(source)
    if not live and (plant or ask or model or may_test):
        raise OptionError(
            "--plant, --ask, --model and --i-may-test are for a running system; give its address, such as "
            "http://localhost:8000, or a target file"
        )
    for path in filter(None, (report, policy)):
        check_output(path, source)
    folder = None if state == "off" else usual_folder(source, "check") if state is None else Path(state)
    failures: list[Failure] = []
    options = {"reader": reader, "state": folder, "workers": workers}
    checked: Check
    if live:
        count = questions or (QUESTIONS_LIVE if plant else QUESTIONS)
        checked = _open_system(source, plant, ask or (), model, may_test or (), questions=count, **options)
    else:
        checked = _read(source, failures, ignore=ignore or (), questions=questions or QUESTIONS, **options)
    if folder is not None and checked.resumed:
        say(f"going on with what is kept in {_short(folder)}")
    interrupted = broken = False
    with closing(checked):
        try:
            with progress() as advance:
                checked.run(advance)
        except KeyboardInterrupt:
            interrupted = True
            say("interrupted" if folder is None else f"interrupted; what was measured is kept in {_short(folder)}")
        except TargetError as error:
            broken = True
            say(f"{describe_source(source)}: {error}")
        result = checked.result()
    if result.system is not None and result.system.remaining:
        say(
            "planted documents may remain; start again to remove them, or: "
            f"unpoison redteam clean {folder}/plants.journal"
        )
    place = _write_policy(result, policy, None if folder is None else _short(folder))
    lines = snippet(framework or installed_framework(), str(place or POLICY), reader=result.reader)
    if report is not None:
        report.write_text(check_page(result, lines), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({**result.to_dict(), "code": lines}, indent=1, ensure_ascii=False))
    else:
        _show(result, lines, place)
    if interrupted:
        raise typer.Exit(130)
    left = result.system is not None and bool(result.system.remaining)
    raise typer.Exit(1 if broken or left or failures or not result.questions else 0)


def _read(source: str, failures: list[Failure], **options: Any) -> Check:
    """A check of documents; what cannot be read is said in any case."""
    from unpoison.bench.check import Check
    from unpoison.scan.engine import describe_source

    try:
        return Check.read(source, failed=failures.append, **options)
    finally:
        _say_failures(describe_source(source), failures)


def _open_system(
    source: str, plant: bool, ask: Sequence[str], model: str | None, may_test: Sequence[str], **options: Any
) -> SystemCheck:
    """A check of a running system, which is asked for its documents."""
    from unpoison.bench.check import SystemCheck
    from unpoison.bench.check.system import open_system
    from unpoison.bench.redteam import Hosts
    from unpoison.bench.redteam.factory import secrets_of_environment
    from unpoison.cli.common import progress
    from unpoison.cli.redteam_setup import mask_secrets

    secrets, hosts = secrets_of_environment(), Hosts(may_test)
    with mask_secrets(secrets), progress() as advance:
        system = open_system(source, hosts=hosts, secrets=secrets, model=model, questions=ask)
        return SystemCheck.ask(system, plant=plant, hosts=hosts, secrets=secrets, progress=advance, **options)


def _short(folder: Path) -> Path:
    """Below the working directory as a relative path."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _say_failures(source: str, failures: list[Failure]) -> None:
    from unpoison.cli.common import say

    for failure in failures[:MAX_NAMED]:
        say(f"{source}: {failure.location}: {failure.error}")
    if len(failures) > MAX_NAMED:
        say(f"{source}: and {len(failures) - MAX_NAMED:,} more could not be read")


def _write_policy(result: CheckResult, policy: Path | None, folder: Path | None) -> Path | None:
    """Where the policy lies. In the state's folder one that somebody has changed is left as it is."""
    from unpoison.cli.common import say

    place = policy or (None if folder is None else folder / POLICY)
    if place is None or result.flagged is None:
        return place
    if policy is None and place.exists() and place.read_text(encoding="utf-8", errors="replace") != result.policy:
        say(f"{place} differs from what is recommended now and was left as it is; --policy FILE writes it elsewhere")
        return place
    place.write_text(result.policy, encoding="utf-8")
    return place


def _show(result: CheckResult, code: str, policy: Path | None) -> None:
    from unpoison.bench.check.page import answer_table, count_table, findings_table, origins_table, planted_words
    from unpoison.bench.check.results import of
    from unpoison.cli.common import count_noun
    from unpoison.cli.display import report_table, show, text_table

    unread = f", {result.unread:,} could not be read" if result.unread else ""
    if result.system is None:
        show(f"Checked {result.source}: {count_noun(result.documents, 'document')}{unread}.")
    else:
        asked, planted = count_noun(result.system.asked, "question"), planted_words(result.system)
        show(f"Checked {result.source}: {result.documents:,} passages that it showed for {asked}; planted: {planted}.")
    show(*filter(None, (result.headline, result.outside)), "")
    if result.flagged is not None:
        show(f"1. What lies there already: {result.flagged:,} of {result.documents:,} documents look planted.", "")
        found = findings_table(result)
        show(text_table(found.columns, found.rows, right=("suspicion",), box=None, padding=(0, 1)), "")
    show(f"2. Who is in it: {count_noun(len(result.origins), 'source')}.", "")
    show(report_table(origins_table(result, MAX_ORIGINS)), "")
    if result.outcomes:
        made, without = count_noun(result.questions, "question"), "your system" if result.live else "without a defense"
        show(f"3. What an attacker reaches, on {made} made from them; {without} → behind the recommendation:", "")
        show(report_table(count_table(result, "plain", "guard", "the model reads the lie")), "")
        if result.live:
            show(report_table(answer_table(result, "your system answers with the lie")), "")
        elif result.reader:
            title = "the small reader answers with the lie"
            show(report_table(count_table(result, "wrong_plain", "wrong_guard", title)), "")
        if result.clean_lost is not None:
            show(f"Where nobody attacks, {of(result.clean_lost, 'passages')} are dropped.", "")
    if result.flagged is not None:
        show("4. What to put in:" if policy is None else f"4. What to put in; the policy is {policy}:", "")
        if policy is None:
            show(*result.policy.splitlines(), "")
        typer.echo(f"{indent(code, '    ')}\n")  # as it is, to be copied
    show("5. What remains open:", "", *(f"- {point}" for point in result.open))
