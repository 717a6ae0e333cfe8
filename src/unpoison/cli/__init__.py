"""The command line: one file per command.

`unpoison demo`, `doctor`, `check`, `screen`, `ask`, `batch`, `serve`, `play`, `keys`, `mcp`, `mcp-proxy`, `scan`,
`quarantine`, `audit`, `trace`, `incident`, `beliefs`, `guard`, `models`, `attack`, `evaluate`,
`redteam`, `questions`, `sources`, `schema` and `defenses`.

Exit codes: 0 all went well, 1 some rows failed (each is reported), 2 nothing could be done, 130 interrupted, 141 the
reader of a pipe went away.
"""

from __future__ import annotations

import errno
import os
import sys
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unpoison import __version__
from unpoison.cli import (
    ask,
    attack,
    audit,
    batch,
    beliefs,
    check,
    defenses,
    demo,
    doctor,
    evaluate,
    guard,
    incident,
    keys,
    mcp,
    mcp_proxy,
    models,
    play,
    quarantine,
    questions,
    redteam,
    scan,
    schema,
    screen,
    serve,
    sources,
    trace,
)
from unpoison.cli.environment import limit_threads
from unpoison.cli.options import Command, option
from unpoison.errors import UnpoisonError

__all__ = ["app", "main"]


FIXES = {
    errno.ENOENT: "check the path; folders on it must exist",
    errno.ENOTDIR: "check the path; what stands before a slash must be a folder",
    errno.EISDIR: "give a file",
    errno.EACCES: "change its permissions, or give another path",
    errno.EROFS: "give a path on a disk that can be written",
    errno.ENOSPC: "make room on the disk, or give another path",
}
"""What to do about a file that cannot be opened, read or written."""


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
            fix = f"; {FIXES[error.errno]}" if owner and error.errno in FIXES else ""
            raise _fail(f"{owner}{error.strerror or error}{fix}") from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        return result


def _fail(message: str) -> typer.Exit:
    from unpoison.report.rendering import plain

    typer.echo(f"error: {plain(message)}", err=True)
    return typer.Exit(2)


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

COMMANDS: dict[ModuleType, str | None] = {
    demo: "Attack and defend the built-in sample: no key, no download.",
    doctor: "Say what works on this machine, and how to get the rest.",
    check: "Check your own documents: poison, sources, attacks.",
    screen: None,
    ask: None,
    batch: "Screen a whole file into another, resumable and in order.",
    attack: None,
    evaluate: "Measure defenses under attack and without one.",
    serve: "Serve defenses over HTTP, as a reranker too.",
    play: "Try texts, sources and defenses on a page.",
    keys: "Make a key for 'unpoison serve --keys'.",
    mcp: "Serve screen and explain as tools for agents (MCP).",
    mcp_proxy: "Screen what any MCP server returns.",
    questions: "Make questions with answers from your own documents.",
    schema: None,
    scan: None,
    quarantine: None,
    audit: "Say which documents were dropped over all that was asked.",
    trace: None,
    incident: "Prove which documents are behind a wrong answer, take them out.",
    defenses: "List the defenses: options, needs and sources.",
    beliefs: None,
    guard: None,
    models: None,
    redteam: None,
    sources: None,
}
"""Modules with a command, or a group of them, of the same name, in the order of the help; its line there, where the
first of the docstring is too long."""

for module, short_help in COMMANDS.items():
    name = module.__name__.rpartition(".")[2]
    command = getattr(module, name)
    name = name.replace("_", "-")
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        settings = {"auto_envvar_prefix": "UNPOISON_SERVE"} if module is serve else None
        examples = getattr(module, "EXAMPLES", None)
        app.command(name, cls=Command, epilog=examples, short_help=short_help, context_settings=settings)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unpoison {__version__}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool, option("--version", "Show the version and leave.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Keep poisoned passages out of retrieval-augmented answers.

    Start with: unpoison demo
    """


def main() -> None:
    """Run the command line."""
    limit_threads()
    try:
        app(prog_name="unpoison")  # `python -m unpoison` is no other program
    except SystemExit as stop:
        if stop.code == 130:  # threads may still wait for a model; the user does not want to
            sys.stdout.flush()
            os._exit(130)
        raise
