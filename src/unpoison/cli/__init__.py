"""The command line: one file a command, 14 commands in three groups.

Exit codes: 0 success, 1 some rows failed (each is reported), 2 nothing could be done, 130 interrupted, 141 the
reader of a pipe closed it.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from unpoison import __version__
from unpoison.cli.options import Command, limit_threads, option
from unpoison.core.registry import from_laboratory
from unpoison.errors import UnpoisonError
from unpoison.utils.extras import installed_extras

__all__ = ["COMMANDS", "app", "main"]


COMMANDS = {
    "Start here": {"demo": "How do an attack and a defense work?"},
    "Protect": {
        "screen": "Which of these passages may a model read?",
        "ask": "What is the answer, and which sources support it?",
        "serve": "How does my application ask over HTTP, or as a reranker?",
        "mcp-proxy": "How do I screen the results of my agent's tools?",
        "sources": "Which sources are in my data, and which do I trust?",
    },
    "Find out": {
        "check": "Are my documents or my service poisoned, or easy to poison?",
        "scan": "Which of my documents look planted?",
        "audit": "Which documents were dropped over all questions?",
        "incident": "Which documents are behind this wrong answer?",
        "quarantine": "How do I remove documents from an index, and restore them?",
    },
    "Measure": {
        "evaluate": "How well do defenses work, against which attacks?",
        "attack": "What would an attacker write against my questions?",
        "redteam": "How often do attacks succeed against my running system?",
    },
}
"""Group -> command -> the question that it answers.

`unpoison.cli.NAME` defines the command NAME; those of the laboratory are entry points in the group `unpoison.commands`.
"""

FIXES = {
    errno.ENOENT: "check the path, and that its folder exists",
    errno.ENOTDIR: "check the path; each part before a slash must be a folder",
    errno.EISDIR: "give a file",
    errno.EACCES: "change its permissions, or give another path",
    errno.EROFS: "give a path on a disk that can be written",
    errno.ENOSPC: "make room on the disk, or give another path",
}
"""Fixes for files that cannot be opened, read or written."""


SETTINGS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}


class Modules(Mapping[str, Any]):
    """The commands by name; a command's module is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        for questions in COMMANDS.values():
            if name in questions:
                return _load(name, questions[name])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(COMMANDS.values())

    def __len__(self) -> int:
        return sum(map(len, COMMANDS.values()))


@cache
def _load(name: str, question: str) -> Any:
    command = _command(name)
    if isinstance(command, typer.Typer):
        return get_command(command)
    holder = typer.Typer(**SETTINGS)
    settings = {"auto_envvar_prefix": "UNPOISON_SERVE"} if name == "serve" else None
    _, _, examples = (sys.modules[command.__module__].__doc__ or "").partition("\n\n")
    epilog = examples.replace("Examples:", "\b\nExamples:", 1)  # line by line
    holder.command(name, cls=Command, epilog=epilog, short_help=question, context_settings=settings)(command)
    return get_command(holder)


def _command(name: str) -> Any:
    """The function or group behind a name."""
    plain = name.replace("-", "_")
    if find_spec(f"unpoison.cli.{plain}") is not None:
        return getattr(import_module(f"unpoison.cli.{plain}"), plain)
    return from_laboratory("commands", name, f"unpoison {name}")


class Commands(TyperGroup):
    """Lists commands by group, and turns user errors into one line and an exit code.

    Every other exception is a bug and shows its traceback.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Modules()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

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
            owner = "standard output: " if error.errno == errno.ENOSPC else ""
            owner = f"{error.filename}: " if error.filename is not None else owner
            fix = f"; {FIXES[error.errno]}" if owner and error.errno in FIXES else ""
            raise _fail(f"{owner}{error.strerror or error}{fix}") from None
        except KeyboardInterrupt as stop:
            typer.echo(f"interrupted; {stop}" if str(stop) else "interrupted", err=True)
            raise typer.Exit(130) from None
        return result


def _fail(message: str) -> typer.Exit:
    from unpoison.utils.plain_text import plain

    typer.echo(f"error: {plain(message)}", err=True)
    return typer.Exit(2)


app = typer.Typer(cls=Commands, no_args_is_help=True, **SETTINGS)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unpoison {__version__}, Python {platform.python_version()}, {platform.system()}")
        typer.echo(f"extras installed: {', '.join(installed_extras()) or 'none'}")
        raise typer.Exit


@app.callback()
def commands(
    version: Annotated[
        bool, option("--version", "Show the version and the installed extras.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Keep poisoned passages out of retrieval-augmented answers.

    Start with: unpoison demo
    """


def main() -> None:
    """Run the command line."""
    limit_threads()
    for stream in (sys.stdout, sys.stderr):  # a pipe of another encoding, as on Windows, loses letters and no result
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="unpoison")  # the same name for `python -m unpoison`
    except SystemExit as stop:
        if stop.code == 130:  # threads may still wait for a model; the user does not want to
            sys.stdout.flush()
            os._exit(130)
        raise
