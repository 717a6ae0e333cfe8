"""The command line: one file per command.

`unpoison demo`, `doctor`, `screen`, `ask`, `batch`, `serve`, `keys`, `mcp`, `scan`, `quarantine`, `audit`, `trace`,
`beliefs`, `guard`, `models`, `attack`, `evaluate`, `arena`, `redteam`, `questions`, `sources`, `schema` and `defenses`.

Exit codes: 0 all went well, 1 some rows failed (each is reported), 2 nothing could be done, 130 interrupted, 141 the
reader of a pipe went away.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unpoison import __version__
from unpoison.cli.arena import arena
from unpoison.cli.ask import EXAMPLES as ASK_EXAMPLES
from unpoison.cli.ask import ask
from unpoison.cli.attack import EXAMPLES as ATTACK_EXAMPLES
from unpoison.cli.attack import attack
from unpoison.cli.audit import EXAMPLES as AUDIT_EXAMPLES
from unpoison.cli.audit import audit
from unpoison.cli.batch import EXAMPLES as BATCH_EXAMPLES
from unpoison.cli.batch import batch
from unpoison.cli.beliefs import beliefs
from unpoison.cli.defenses import defenses
from unpoison.cli.demo import demo
from unpoison.cli.doctor import EXAMPLES as DOCTOR_EXAMPLES
from unpoison.cli.doctor import doctor
from unpoison.cli.evaluate import EXAMPLES as EVALUATE_EXAMPLES
from unpoison.cli.evaluate import evaluate
from unpoison.cli.guard import guard
from unpoison.cli.help import Command
from unpoison.cli.keys import EXAMPLES as KEYS_EXAMPLES
from unpoison.cli.keys import keys
from unpoison.cli.mcp import EXAMPLES as MCP_EXAMPLES
from unpoison.cli.mcp import mcp
from unpoison.cli.models import models
from unpoison.cli.quarantine import EXAMPLES as QUARANTINE_EXAMPLES
from unpoison.cli.quarantine import quarantine
from unpoison.cli.questions import EXAMPLES as QUESTIONS_EXAMPLES
from unpoison.cli.questions import questions
from unpoison.cli.redteam import redteam
from unpoison.cli.scan import EXAMPLES as SCAN_EXAMPLES
from unpoison.cli.scan import scan
from unpoison.cli.schema import EXAMPLES as SCHEMA_EXAMPLES
from unpoison.cli.schema import schema
from unpoison.cli.screen import EXAMPLES as SCREEN_EXAMPLES
from unpoison.cli.screen import screen
from unpoison.cli.serve import EXAMPLES as SERVE_EXAMPLES
from unpoison.cli.serve import serve
from unpoison.cli.sources import sources
from unpoison.cli.trace import EXAMPLES as TRACE_EXAMPLES
from unpoison.cli.trace import trace
from unpoison.errors import UnpoisonError

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """Turns what a user can cause into one line and an exit code; everything else is a bug and shows its traceback."""

    def invoke(self, context: Any) -> Any:
        try:
            result = super().invoke(context)
            sys.stdout.flush()
        except UnpoisonError as error:
            raise _fail(str(error)) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would complain at exit
            raise typer.Exit(141) from None
        except OSError as error:
            owner = f"{error.filename}: " if error.filename is not None else ""
            raise _fail(f"{owner}{error.strerror or error}") from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        return result


def _fail(message: str) -> typer.Exit:
    from unpoison.report.rendering import plain

    typer.echo(f"error: {plain(message)}", err=True)
    return typer.Exit(2)


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
command = partial(app.command, cls=Command)
command(short_help="Attack and defend the built-in sample: no key, no download.")(demo)
command(epilog=DOCTOR_EXAMPLES, short_help="Say what works on this machine, and how to get the rest.")(doctor)
command(epilog=SCREEN_EXAMPLES)(screen)
command(epilog=ASK_EXAMPLES)(ask)
command(epilog=BATCH_EXAMPLES, short_help="Screen a whole file into another, resumable and in order.")(batch)
command(epilog=ATTACK_EXAMPLES)(attack)
command(epilog=EVALUATE_EXAMPLES, short_help="Measure defenses under attack and without one.")(evaluate)
command(
    epilog=SERVE_EXAMPLES,
    short_help="Serve defenses over HTTP, as a reranker too.",
    context_settings={"auto_envvar_prefix": "UNPOISON_SERVE"},
)(serve)
command(epilog=KEYS_EXAMPLES, short_help="Make a key for 'unpoison serve --keys'.")(keys)
command(epilog=MCP_EXAMPLES, short_help="Serve screen and explain as tools for agents (MCP).")(mcp)
command(epilog=QUESTIONS_EXAMPLES, short_help="Make questions with answers from your own documents.")(questions)
command(epilog=SCHEMA_EXAMPLES)(schema)
command(epilog=SCAN_EXAMPLES)(scan)
command(epilog=QUARANTINE_EXAMPLES)(quarantine)
command(epilog=AUDIT_EXAMPLES, short_help="Say which documents were dropped over all that was asked.")(audit)
command(epilog=TRACE_EXAMPLES)(trace)
command(short_help="List the defenses: options, needs and sources.")(defenses)
app.add_typer(arena, name="arena")
app.add_typer(beliefs, name="beliefs")
app.add_typer(guard, name="guard")
app.add_typer(models, name="models")
app.add_typer(redteam, name="redteam")
app.add_typer(sources, name="sources")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unpoison {__version__}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Keep poisoned passages out of retrieval-augmented answers.

    Start with: unpoison demo
    """


def main() -> None:
    """Run the command line."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: more threads only wait for each other
    try:
        app(prog_name="unpoison")  # `python -m unpoison` is no other program
    except SystemExit as stop:
        if stop.code == 130:  # threads may still wait for a model; the user does not want to
            sys.stdout.flush()
            os._exit(130)
        raise
