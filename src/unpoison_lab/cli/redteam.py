"""`unpoison redteam`: test a running RAG system, and remove what a test has planted."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from os.path import relpath
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from typer.core import TyperGroup

from unpoison.cli.common import progress, say
from unpoison.cli.display import report_table, show
from unpoison.cli.options import Command, argument, option
from unpoison.errors import InputError, clip, nearest
from unpoison.io.output import check_writable
from unpoison.report.document import PAGE_SUFFIXES, check_suffix, write_text
from unpoison.scan import scan
from unpoison.utils.plain_text import count_noun
from unpoison_lab.check.cases import make_examples
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.gates import Gate, conclude
from unpoison_lab.redteam.campaign import run_test
from unpoison_lab.redteam.config import Config
from unpoison_lab.redteam.discovery import SEEDS, discover, shown_passages
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.http_target import HttpTarget
from unpoison_lab.redteam.planter import clean as take_back
from unpoison_lab.redteam.planter import report_removal
from unpoison_lab.redteam.results import MEASURES, Results, headline, redteam_page, results_table

__all__ = ["redteam"]

MAX_SHOWN = 20
"""Problems that are shown."""

QUESTIONS = 25
"""Questions that `init` makes: without a success among 22, the upper end of the interval is below 15 %."""

EXAMPLES = """\b
Examples:
  unpoison redteam init http://127.0.0.1:8000
  unpoison redteam check redteam.yaml
  unpoison redteam redteam.yaml --report report.html
  unpoison redteam redteam.yaml --fail-if 'asr > 5%'
  unpoison redteam clean redteam.journal

Only systems on this machine are tested, unless --i-may-test names the host.
"""

INIT_EXAMPLES = """\b
Examples:
  unpoison redteam init http://127.0.0.1:8000
  unpoison redteam init http://127.0.0.1:8000/ask --questions mine.jsonl -o redteam.yaml
  unpoison redteam init http://127.0.0.1:8000/v1 --model my-rag
"""

CHECK_EXAMPLES = """\b
Examples:
  unpoison redteam check redteam.yaml

Exit status: 0 when the reply was understood and the document removed, 1 when not, 2 when the system cannot be tested.
"""

RUN_EXAMPLES = """\b
Examples:
  unpoison redteam redteam.yaml --journal journal.jsonl --json > results.json
  unpoison redteam redteam.yaml --fail-if 'asr > 5%' --report report.html

Every document is recorded in the journal before it is planted. After Ctrl-C, a crash or a power cut 'unpoison redteam
clean JOURNAL' removes the rest.
Exit status: 0 when everything was measured, 1 when some questions failed or documents may remain, 2 when nothing could
be done. With gates: 1 when a gate failed, 2 for everything else.
"""

CLEAN_EXAMPLES = """\b
Examples:
  unpoison redteam clean redteam.journal --config redteam.yaml

Exit status: 0 when nothing remains, 1 when documents may remain, 2 when the journal cannot be used.
"""


class ConfigFirst(TyperGroup):
    """`redteam CONFIG` is `redteam run CONFIG`: a first word that is not a command is a configuration or an option."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        if arguments and arguments[0] not in (*self.commands, "--help"):
            if (
                "." not in arguments[0]
                and not Path(arguments[0]).exists()
                and (near := nearest(arguments[0], self.commands))
            ):
                context.fail(f"no command or file is named {clip(arguments[0])}; {near.strip()}")
            arguments = ["run", *arguments]
        return super().parse_args(context, arguments)


redteam = typer.Typer(
    cls=ConfigFirst,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Test a running RAG system with planted documents.",
)

AsJson = Annotated[bool, option("--json", "Write JSON to standard output instead of a table.")]
ConfigFile = Annotated[Path, argument("CONFIG", "A YAML file that describes the test; see docs/redteam.md.")]
MayTest = Annotated[
    list[str] | None, option("--i-may-test HOST", "Allow requests to this host besides this machine; may be repeated.")
]


@redteam.callback(epilog=EXAMPLES)
def commands() -> None:
    """Test a running RAG system with planted documents: unpoison redteam CONFIG."""


@redteam.command(cls=Command, epilog=INIT_EXAMPLES, short_help="Write a configuration and questions for a system.")
def init(
    where: Annotated[str, argument("URL", "The address of the system, or of the endpoint that answers questions.")],
    output: Annotated[Path, option("-o --output FILE", "Where the configuration is written.")] = Path("redteam.yaml"),
    questions: Annotated[
        Path | None, option("FILE", "Your questions. [default: questions.jsonl, written if it is not there]")
    ] = None,
    model: Annotated[
        str | None, option("NAME", "The model of a chat endpoint. [default: the first that it lists]")
    ] = None,
    force: Annotated[bool, option("--force", "Overwrite an existing configuration.")] = False,
    may_test: MayTest = None,
) -> None:
    """Detect the endpoints for asking, planting and removing; write a configuration and questions about the passages.

    Reads the OpenAPI page of the system and asks a few questions. Plants nothing.
    """
    if output.exists() and not force:
        raise InputError(f"{output} exists; give another file with --output, or --force to write over it")
    if questions is not None and not questions.exists():
        raise InputError(f"{questions} does not exist; give the file of your questions, or leave out --questions")
    questions = questions or Path("questions.jsonl")
    hosts = Hosts(may_test or ())
    given = [one.question for one in load(str(questions)).examples[:5]] if questions.exists() else None
    target = discover(where, hosts, model=model, questions=given or SEEDS)
    if "plant" not in target:
        body = {"text": "{text}", "metadata": {"canary": "{canary}"}}
        target["plant"] = {"url": _prompt("the URL that adds a document"), "body": body, "id": "$.id"}
    if "remove" not in target:
        added = str(target["plant"]["url"]).partition("?")[0].rstrip("/")
        target["remove"] = {"method": "DELETE", "url": _prompt("the URL that removes one", f"{added}/{{id}}")}
    HttpTarget(target, hosts)  # it is usable, or says why
    asked = relpath(questions, output.parent)
    values = {"target": target, "questions": asked, "attacks": ["poisonedrag"], "poisons": [1]}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)
    output.write_text(f"# Written by 'unpoison redteam init'; see docs/redteam.md.\n{text}", encoding="utf-8")
    if not questions.exists():
        _write_questions(questions, target, hosts)
    for kind in ("ask", "plant", "remove"):
        call = target[kind]
        paths = ", ".join(call[name] for name in ("answer", "passages", "id") if name in call)
        typer.echo(f"{kind}: {call.get('method', 'POST')} {call['url']}{f' -> {paths}' if paths else ''}")
    say(f"wrote {output} and {questions}; next: unpoison redteam check {output}")


def _prompt(text: str, default: str | None = None) -> str:
    """An answer of the user's.

    Raises:
        InputError: There is none.
    """
    try:
        return str(typer.prompt(f"T{text[1:]}", default=default, err=True)).strip()
    except typer.Abort:
        raise InputError(f"{text} was not found; answer in a terminal, or write CONFIG as in docs/redteam.md") from None


def _write_questions(path: Path, target: dict[str, Any], hosts: Hosts) -> None:
    """Write questions about the passages that the system shows and that look clean, or one example to be replaced."""
    passages = shown_passages(HttpTarget(target, hosts).ask)[0] if "passages" in target["ask"] else []
    rows = [
        {"question": one.question, "correct_answers": one.correct_answers, "incorrect_answers": one.incorrect_answers}
        for one in make_examples(passages, {finding.id for finding in scan(passages).flagged}, QUESTIONS)[0]
    ]
    if not rows:
        say(f"{path} has one example question; replace it with questions that your documents answer")
        rows = [
            {"question": "When was the town hall built?", "correct_answers": ["1912"], "incorrect_answers": ["1950"]}
        ]
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")


@redteam.command(cls=Command, epilog=CHECK_EXAMPLES, short_help="Try a configuration with one harmless document.")
def check(
    config: ConfigFile,
    journal: Annotated[
        Path | None, option("FILE", "Record the document here. [default: CONFIG with .check.journal]")
    ] = None,
    may_test: MayTest = None,
) -> None:
    """Plant one harmless document, remove it, ask one question without an attack, and show the reply."""
    chosen = Config.load(config).model_copy(update={"attacks": (), "limit": 1, "rehearse": True})
    where = journal or config.with_suffix(".check.journal")
    with report_removal(where):
        results = run_test(chosen, where, hosts=Hosts(may_test or ()))
    for trial in results.trials:
        shown = f"{len(trial.passages):,}" if trial.tells else "none in the reply; only answers are judged"
        show(f"question: {trial.question}", f"answer: {trial.answer or trial.error}", f"passages: {shown}")
    show(f"documents planted and removed: {results.planted}, {results.removed + results.accepted}")
    problems = [*problems_of(results), *notes_of(results)]
    for problem in problems:
        say(problem)
    failed = any(trial.failed for trial in results.trials)
    raise typer.Exit(0 if results.complete and not failed else 1)


@redteam.command(cls=Command, epilog=RUN_EXAMPLES, short_help="Attack every question; report the success rate.")
def run(
    config: ConfigFile,
    journal: Annotated[
        Path | None, option("FILE", "Record every document here before it is planted. [default: CONFIG with .journal]")
    ] = None,
    limit: Annotated[int | None, option("N", "Use the first N questions only.", min=1)] = None,
    report: Annotated[Path | None, option("FILE.html", "Also write an HTML report that works offline.")] = None,
    may_test: MayTest = None,
    fail_if: Annotated[
        list[str] | None,
        option("--fail-if GATE", "Exit with 1 if it holds: 'asr > 5%', 'upper(asr) > 10%'; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attack every question and report how often the answer became the attacker's.

    For each question: ask, plant, wait until the system reads the document, ask again, and remove it.
    """
    chosen = Config.load(config)
    if limit is not None:
        chosen = chosen.model_copy(update={"limit": limit})
    gates = [Gate.of(text, MEASURES) for text in fail_if or ()]
    if report is not None:
        check_suffix(report, PAGE_SUFFIXES)
        check_writable(report)
    where = journal or config.with_suffix(".journal")
    with progress() as advance, report_removal(where):
        results = run_test(chosen, where, hosts=Hosts(may_test or ()), progress=advance)
    if report is not None:
        write_text(report, redteam_page(results))
    if as_json:
        sys.stdout.write(results.to_json())
    else:
        show(f"{results.run.get('name', '')}: {headline(results)}", "", report_table(results_table(results)))
    problems = problems_of(results)
    for problem in [*problems, *notes_of(results)][:MAX_SHOWN]:
        say(problem)
    measured = any(not trial.failed for trial in results.trials)
    code = (0 if results.complete else 1) if measured else 2
    checks, code = conclude(gates, results.gate_cells(), code)
    for line in checks:
        say(line)
    raise typer.Exit(code)


@redteam.command(cls=Command, epilog=CLEAN_EXAMPLES, short_help="Remove the documents that a test has planted.")
def clean(
    journal: Annotated[Path, argument("JOURNAL", "The journal that the test wrote.")],
    config: Annotated[
        Path | None, option("FILE", "The configuration, if the target is Python code or its address has changed.")
    ] = None,
    may_test: MayTest = None,
    as_json: AsJson = False,
) -> None:
    """Remove the documents that a test has planted, and nothing else. May be interrupted and repeated."""
    given = None if config is None else Config.load(config)
    with progress() as advance:
        cleaned = take_back(journal, hosts=Hosts(may_test or ()), config=given, progress=advance)
    if as_json:
        remaining = [{"canary": canary, "reason": reason} for canary, reason in cleaned.remaining]
        typer.echo(json.dumps({"removed": cleaned.removed, "remaining": remaining, "damaged": list(cleaned.damaged)}))
    for canary, reason in cleaned.remaining:
        say(f"the document {canary} may remain: {reason}")
    for number in cleaned.damaged[:MAX_SHOWN]:
        say(f"{journal}:{number}: cannot be read; a document that was named there may remain")
    say(f"removed {count_noun(cleaned.removed, 'document')}, {len(cleaned.remaining):,} may remain")
    raise typer.Exit(0 if cleaned.clean else 1)


def problems_of(results: Results) -> list[str]:
    """Why the test is incomplete; the exit code is then 1 or 2."""
    left = [f"the document {canary} may remain: {reason}" for canary, reason in results.remaining]
    if results.complete:
        return []
    return [*results.problems, *results.failures, *left]


def notes_of(results: Results) -> Sequence[str]:
    """Further remarks."""
    notes = list(results.problems) if results.complete else []
    if results.accepted:
        notes.append(
            f"the removal of {count_noun(results.accepted, 'document')} was accepted and could not be verified"
        )
    return notes
