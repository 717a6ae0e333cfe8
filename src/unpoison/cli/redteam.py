"""`unpoison redteam`: test a running RAG system, and take back what a test has planted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unpoison.cli.help import Command
from unpoison.cli.options import Against, FailIf, Junit, Sarif

__all__ = ["EXAMPLES", "redteam"]

EXAMPLES = """\b
Examples:
  unpoison redteam redteam.yaml --dry-run
  unpoison redteam redteam.yaml --journal journal.jsonl --json > results.json
  unpoison redteam redteam.yaml --fail-if 'asr > 5%' --against last.json --junit junit.xml --sarif redteam.sarif
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
    help="Test a running RAG system with planted documents.",
)

MayTest = Annotated[
    list[str] | None,
    typer.Option("--i-may-test", metavar="HOST", help="A host other than this machine that you may test."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to standard output instead of a table.")]


@redteam.callback(epilog=EXAMPLES)
def commands() -> None:
    """Test a running RAG system with planted documents: unpoison redteam CONFIG."""


@redteam.command(cls=Command, epilog=EXAMPLES, short_help="Plant, ask, remove, ask again; say how often it worked.")
def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="What is tested, in YAML; see docs/redteam.md.")],
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where everything planted is written first; CONFIG.journal.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")] = False,
    may_test: MayTest = None,
    in_flight: Annotated[
        int | None, typer.Option(min=1, max=64, metavar="N", help="Questions at the same time.")
    ] = None,
    rate: Annotated[float | None, typer.Option(metavar="N", help="Requests per second at most.")] = None,
    budget: Annotated[int | None, typer.Option(min=1, metavar="N", help="Requests at most.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="The first N questions only.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write CSV, one line per attack.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write one page for who signs it; works offline.")
    ] = None,
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
    from unpoison.cli import redteaming
    from unpoison.cli.gates import Checks
    from unpoison.cli.running import say
    from unpoison.cli.runs import check_outputs, progress

    chosen = Config.load(config).with_bounds(in_flight=in_flight, rate=rate, budget=budget, limit=limit)
    secrets, hosts = secrets_of_environment(), Hosts(may_test or ())
    checks = Checks.of(MEASURES, fail_if, against, junit, sarif)
    check_outputs((), csv, report)
    where = journal or config.with_suffix(".journal")
    with redteaming.mask_secrets(secrets):
        if dry_run:
            redteaming.show_requests(rehearsal_of_requests(chosen, secrets=secrets, hosts=hosts))
            return
        with progress() as advance, redteaming.report_removal(where):
            results = run_test(chosen, where, secrets=secrets, hosts=hosts, progress=advance)
    if csv is not None:
        csv.write_text(results.to_csv(), encoding="utf-8")
    if report is not None:
        report.write_text(secrets.mask(redteam_page(results)), encoding="utf-8")
    if as_json:
        sys.stdout.write(results.to_json())
    else:
        redteaming.show_results(results)
    problems = redteaming.problems(results)
    for problem in problems[: redteaming.MAX_SHOWN]:
        say(problem)
    code = redteaming.exit_code(results)
    alerts = redteaming.alerts(results)
    raise typer.Exit(checks.conclude(results.gate_cells(), problems, code, str(config), alerts))


@redteam.command(cls=Command, epilog=CLEAN_EXAMPLES, short_help="Take back exactly what a test has planted.")
def clean(
    journal: Annotated[Path, typer.Argument(metavar="JOURNAL", help="The journal of a test.")],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The configuration, where the target is Python code or has moved."),
    ] = None,
    may_test: MayTest = None,
    as_json: AsJson = False,
) -> None:
    """Take back exactly what a test has planted, and nothing else; may be interrupted and repeated."""
    import json

    from unpoison.bench.redteam import Config, Hosts
    from unpoison.bench.redteam import clean as take_back
    from unpoison.bench.redteam.factory import secrets_of_environment
    from unpoison.cli import redteaming
    from unpoison.cli.runs import progress

    secrets = secrets_of_environment()
    with redteaming.mask_secrets(secrets), progress() as advance:
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
    redteaming.say_cleaned(cleaned, journal)
    raise typer.Exit(0 if cleaned.clean else 1)
