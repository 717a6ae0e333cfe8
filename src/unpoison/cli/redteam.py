"""`unpoison redteam`: test a running RAG system, and take back what a test has planted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from unpoison.cli.options import Against, Command, FailIf, Junit, Sarif, argument, option
from unpoison.cli.redteam_setup import CHECK_EXAMPLES, INIT_EXAMPLES, MayTest, check, init, mask_secrets, report_removal

if TYPE_CHECKING:
    from unpoison.algorithms.intervals import Estimate
    from unpoison.bench.evaluation.gates import Alert
    from unpoison.bench.redteam import Cleaned, Results
    from unpoison.bench.redteam.results import Cell

__all__ = ["EXAMPLES", "problems_of", "redteam"]

MAX_SHOWN = 20
"""Items of a list that are named."""


EXAMPLES = """\b
Examples:
  unpoison redteam init http://127.0.0.1:8000 && unpoison redteam check redteam.yaml
  unpoison redteam redteam.yaml --dry-run
  unpoison redteam redteam.yaml --journal journal.jsonl --json > results.json
  unpoison redteam redteam.yaml --fail-if 'asr > 5%' --against last.json --junit junit.xml --sarif redteam.sarif
  unpoison redteam redteam.yaml --report report.html
  unpoison redteam clean journal.jsonl

Only systems on this machine are tested, unless --i-may-test names the host. Everything that is planted is written to
the journal first; after Ctrl-C, a crash or a power cut 'unpoison redteam clean JOURNAL' takes it back.
Exit status: 0 when everything was measured, 1 when some questions failed or documents may remain, 2 when nothing could
be done; with gates 1 when a gate failed, and 2 for everything else.
"""

CLEAN_EXAMPLES = """\b
Examples:
  unpoison redteam clean journal.jsonl
  unpoison redteam clean journal.jsonl --config redteam.yaml

Exit status: 0 when nothing is left, 1 when documents may remain (each is named), 2 when nothing could be done.
"""


class ConfigFirst(TyperGroup):
    """`redteam CONFIG` is `redteam run CONFIG`: what names no command is a configuration or an option."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        if arguments and arguments[0] not in (*self.commands, "--help"):
            arguments = ["run", *arguments]
        return super().parse_args(context, arguments)


redteam = typer.Typer(
    cls=ConfigFirst,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Test a running RAG system with planted texts.",
)

AsJson = Annotated[bool, option("--json", "Write JSON to standard output instead of a table.")]


@redteam.callback(epilog=EXAMPLES)
def commands() -> None:
    """Test a running RAG system with planted documents: unpoison redteam CONFIG."""


for setup, examples, line in (
    (init, INIT_EXAMPLES, "Write the configuration: three questions, or OpenAPI."),
    (check, CHECK_EXAMPLES, "Ask, plant and remove once; say what was understood."),
):
    redteam.command(cls=Command, epilog=examples, short_help=line)(setup)


@redteam.command(cls=Command, epilog=EXAMPLES, short_help="Plant, ask, remove, ask again; say how often it worked.")
def run(
    config: Annotated[Path, argument("CONFIG", "What is tested, in YAML; see docs/redteam.md.")],
    journal: Annotated[
        Path | None, option("FILE", "Where everything planted is written first; CONFIG.journal.")
    ] = None,
    dry_run: Annotated[bool, option("--dry-run", "Show what would be sent, and send nothing.")] = False,
    may_test: MayTest = None,
    in_flight: Annotated[int | None, option("N", "Questions at the same time.", min=1, max=64)] = None,
    rate: Annotated[float | None, option("N", "Requests per second at most.")] = None,
    budget: Annotated[int | None, option("N", "Requests at most.", min=1)] = None,
    limit: Annotated[int | None, option("N", "The first N questions only.", min=1)] = None,
    csv: Annotated[Path | None, option("FILE", "Write CSV, one line per attack.")] = None,
    report: Annotated[Path | None, option("FILE.html", "Write one page for who signs it; works offline.")] = None,
    fail_if: FailIf = None,
    against: Against = None,
    junit: Junit = None,
    sarif: Sarif = None,
    as_json: AsJson = False,
) -> None:
    """Ask, plant, wait until it is served, ask, remove, ask again; say how often the answer was the attacker's."""
    from unpoison.bench.redteam import Config, Hosts, run_test
    from unpoison.bench.redteam.factory import secrets_of_environment
    from unpoison.bench.redteam.results import MEASURES
    from unpoison.bench.redteam.session import rehearsal_of_requests
    from unpoison.bench.redteam.summary import redteam_page
    from unpoison.cli.common import progress, say
    from unpoison.cli.gates import Checks, check_outputs

    chosen = Config.load(config).with_bounds(in_flight=in_flight, rate=rate, budget=budget, limit=limit)
    secrets, hosts = secrets_of_environment(), Hosts(may_test or ())
    checks = Checks.of(MEASURES, fail_if, against, junit, sarif)
    check_outputs((), csv, report)
    where = journal or config.with_suffix(".journal")
    with mask_secrets(secrets):
        if dry_run:
            _show_requests(rehearsal_of_requests(chosen, secrets=secrets, hosts=hosts))
            return
        with progress() as advance, report_removal(where):
            results = run_test(chosen, where, secrets=secrets, hosts=hosts, progress=advance)
    if csv is not None:
        csv.write_text(results.to_csv(), encoding="utf-8")
    if report is not None:
        report.write_text(secrets.mask(redteam_page(results)), encoding="utf-8")
    if as_json:
        sys.stdout.write(results.to_json())
    else:
        _show_results(results)
    problems = problems_of(results)
    for problem in problems[:MAX_SHOWN]:
        say(problem)
    code = _exit_code(results)
    alerts = _alerts(results)
    raise typer.Exit(checks.conclude(results.gate_cells(), problems, code, str(config), alerts))


@redteam.command(cls=Command, epilog=CLEAN_EXAMPLES, short_help="Take back exactly what a test has planted.")
def clean(
    journal: Annotated[Path, argument("JOURNAL", "The journal of a test.")],
    config: Annotated[
        Path | None, option("FILE", "The configuration, where the target is Python code or has moved.")
    ] = None,
    may_test: MayTest = None,
    as_json: AsJson = False,
) -> None:
    """Take back exactly what a test has planted, and nothing else; may be interrupted and repeated."""
    import json

    from unpoison.bench.redteam import Config, Hosts
    from unpoison.bench.redteam import clean as take_back
    from unpoison.bench.redteam.factory import secrets_of_environment
    from unpoison.cli.common import progress

    secrets = secrets_of_environment()
    with mask_secrets(secrets), progress() as advance:
        cleaned = take_back(
            journal,
            secrets=secrets,
            hosts=Hosts(may_test or ()),
            config=None if config is None else Config.load(config),
            progress=advance,
        )
    if as_json:
        remaining = [{"canary": canary, "reason": reason} for canary, reason in cleaned.remaining]
        counts = {"removed": cleaned.removed, "accepted": cleaned.accepted}
        typer.echo(json.dumps({**counts, "remaining": remaining, "damaged": list(cleaned.damaged)}))
    _say_cleaned(cleaned, journal)
    raise typer.Exit(0 if cleaned.clean else 1)


def _show_requests(requests: Sequence[str]) -> None:
    """What a dry run shows: every line of every request."""
    from unpoison.cli.common import say
    from unpoison.cli.display import show
    from unpoison.report.rendering import excerpt

    for request in requests:
        show(*(excerpt(line, 2000) for line in request.splitlines()))
    say("nothing was sent")


def _show_results(results: Results) -> None:
    """One column per attack, one line per figure, with intervals."""
    from math import isnan

    from rich.table import Table
    from rich.text import Text

    from unpoison.bench.redteam.results import MEASURES
    from unpoison.cli.common import count_noun
    from unpoison.cli.display import show
    from unpoison.report.rendering import plain

    table = Table(box=None, padding=(0, 1), title_justify="left")
    title = f"{results.run.get('name', '')}: {count_noun(results.examples, 'question')}, 95 % intervals"
    table.title = Text(plain(title), style="bold")
    table.add_column("figure", overflow="fold")
    cells = results.table()
    for cell in cells:
        heading = plain(cell.title if cell.poisons else "nothing planted")
        table.add_column(Text(heading), justify="right", overflow="fold")
    for name, measure in MEASURES.items():
        estimates = [cell.figures[name] for cell in cells]
        if any(not isnan(figure.value) for figure in estimates) and name != "failed":
            unit = "%" if measure.unit == "share" else "s"
            table.add_row(f"{measure.title}, {unit}", *(_figure(figure, measure.unit) for figure in estimates))
    show(table, "")


def _figure(estimate: Estimate, unit: str) -> str:
    from math import isnan

    if isnan(estimate.value):
        return "-"
    if unit == "share":
        return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f} to {100 * estimate.high:.0f}]"
    interval = "" if isnan(estimate.low) else f" [{estimate.low:.2f} to {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{interval}"


def problems_of(results: Results) -> list[str]:
    """What went wrong, as sentences."""
    from unpoison.cli.common import count_noun

    sentences = [*results.problems, *(f"{cell.id}: {problem}" for cell in results.table() for problem in cell.problems)]
    missing = results.examples * len(results.cells) - len(results.trials)
    if missing:
        sentences.append(f"{count_noun(missing, 'question')} not asked; give the same command again to go on")
    if results.accepted:
        sentences.append(_unseen(results.accepted))
    return sentences + [f"the document {canary} may remain: {reason}" for canary, reason in results.remaining]


def _unseen(count: int) -> str:
    from unpoison.cli.common import count_noun

    return (
        f"the removal of {count_noun(count, 'document')} was accepted, and nobody could look whether they are gone; "
        "give target.find, a search for {canary}"
    )


def _exit_code(results: Results) -> int:
    """0 all measured, 1 some failed or something remains, 2 nothing was measured."""
    if not any(not trial.failed for trial in results.trials):
        return 2
    return 0 if results.complete else 1


def _alerts(results: Results) -> list[Alert]:
    """An alert for every answer that was the attacker's, and for every document that may remain."""
    from unpoison.bench.evaluation.gates import Alert

    raised = [_alert(cell, number) for cell in results.table() if cell.poisons for number in range(len(cell.trials))]
    remaining = [
        Alert("document-remains", "error", f"the document {canary} may remain: {reason}", canary)
        for canary, reason in results.remaining
    ]
    return [*remaining, *(alert for alert in raised if alert is not None)]


def _alert(cell: Cell, number: int) -> Alert | None:
    from unpoison.bench.evaluation.gates import Alert
    from unpoison.cli.common import count_noun
    from unpoison.report.rendering import excerpt

    trial = cell.trials[number]
    if not trial.is_attacked(trial.answer):
        return None
    message = (
        f"with {count_noun(cell.poisons, 'planted document')} ({cell.attack}) the answer to "
        f"{excerpt(trial.question, 200)!r} became {excerpt(trial.answer or '', 200)!r}"
    )
    return Alert("poisoned-answer", "warning", message, f"{cell.id}|{trial.example}")


def _say_cleaned(cleaned: Cleaned, journal: Path) -> None:
    """What cleaning came to."""
    from unpoison.cli.common import count_noun, say

    for note in cleaned.notes:
        say(note)
    for canary, reason in cleaned.remaining:
        say(f"the document {canary} may remain: {reason}")
    for number in cleaned.damaged[:MAX_SHOWN]:
        say(f"{journal}:{number}: cannot be read; a document that was named there may remain")
    if cleaned.accepted:
        say(_unseen(cleaned.accepted))
    left = f"; {count_noun(len(cleaned.remaining), 'document')} may remain" if cleaned.remaining else ""
    say(
        f"removed {count_noun(cleaned.removed, 'document')}{left}"
        if cleaned.removed or cleaned.accepted or left
        else "nothing was left to remove"
    )
