"""Options that several commands share, and how help shows them.

Imports nothing that takes time.

`-d my_module:MyDefense` on a command line looks in the folder where the command runs too (`from_here`). Only names on
the command line may do this. A file, such as a manifest or a grid, names installed modules only, so that opening a
file never imports code beside it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from unpoison.core import registry
from unpoison.errors import OptionError, clip

__all__ = [
    "AsJson", "Command", "DefenseName", "EncoderName", "GeneratorName", "Learn", "Limit", "NLIName", "Output",
    "RowsFile", "SourcesFile", "argument", "environment_of_caller", "from_here", "limit_threads", "option",
]  # fmt: skip


T = TypeVar("T", str, list[str], None)


def from_here(value: T) -> T:
    """A callback of options that take names: allows modules of the working folder to be imported.

    The folder comes last on the path, so a file there never replaces an installed package.
    """
    texts: list[str] = [value] if isinstance(value, str) else value or []
    if any(map(_names_a_module, texts)) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return value


def _names_a_module(text: str) -> bool:
    try:
        return any(":" in registry.parse(spec)[0] for spec in registry.split_specs(text))
    except OptionError:
        return False  # reported where it is read


REST = "Options"
"""The section of options without one of their own (`rich_help_panel`)."""


LIMITS = {"OPENBLAS_NUM_THREADS": "1"}
"""The matrices are small: more threads only wait for each other."""

_added: set[str] = set()


def limit_threads() -> None:
    """Set the variables that the caller has not set."""
    _added.update(LIMITS.keys() - os.environ.keys())
    os.environ.update({name: LIMITS[name] for name in _added})


def environment_of_caller() -> dict[str, str]:
    """The environment without our additions."""
    return {name: value for name, value in os.environ.items() if name not in _added}


class Command(TyperCommand):
    """A command whose help has one section for each `rich_help_panel`, in the order in which they begin.

    Typer draws panels with rich only, which doubles the length; and it adds redundant types to arguments.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line; an error about a value says which value was given."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            value = _value_of(error.param, given)
            if value is not None and value not in error.message:
                error.message += f", got {clip(value)}"
            elif value is None and error.param is not None and ctx.auto_envvar_prefix:
                name = f"{ctx.auto_envvar_prefix}_{error.param.name}".upper()
                error.message += f", got {clip(os.environ[name])} in {name}" if name in os.environ else ""
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, sections = list[tuple[str, str]](), dict[str, list[tuple[str, str]]]()
        for parameter in self.get_params(ctx):
            if ctx.auto_envvar_prefix:  # every option has a variable of its own: one sentence says how they are called
                vars(parameter)["show_envvar"] = False
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(((parameter.metavar or parameter.name or "").upper(), record[1]))
            else:
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or REST, []).append(record)
        for title, records in {"Arguments": arguments, **sections}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _value_of(parameter: Any, args: list[str]) -> str | None:
    """The value of an option on a command line."""
    for i, argument in enumerate(args):
        name, equals, value = argument.partition("=")
        if name in getattr(parameter, "opts", ()):
            return value if equals else next(iter(args[i + 1 :]), None)
    return None


def option(usage: str, help: str, **settings: Any) -> Any:
    """An option.

    Args:
        usage: Its names, unless the parameter's, and the placeholder of its value: "--encoder -e ENCODER".
        help: Its description.
        **settings: Of `typer.Option`, such as `min`.
    """
    names = [word for word in usage.split() if word.startswith("-")]
    metavar = next((word for word in usage.split() if not word.startswith("-")), None)
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """An argument: its placeholder and description."""
    return typer.Argument(metavar=metavar, help=help, **settings)


def _not_a_question(value: str) -> str:
    """A callback of files with rows: says what to type to somebody who gives a question instead."""
    asks = value.rstrip().endswith("?") or (" " in value.strip() and not Path(value).suffix)
    if asks and not os.path.exists(value):  # of a path, a long name would be an error
        row = json.dumps({"question": value, "passages": ["...", "..."]}, ensure_ascii=False)
        raise OptionError(f"{clip(value)} is no file; write it with its passages into one and give that: {row}")
    return value


RowsFile = Annotated[
    str,
    argument(
        "FILE",
        "JSON Lines, CSV or Parquet with 'query' (or 'question') and 'passages' in every row; - reads JSON Lines from "
        "standard input.",
        callback=_not_a_question,
    ),
]
EncoderName = Annotated[
    str | None, option("--encoder -e ENCODER", "lexical (built in), minilm, st:NAME_OR_PATH or openai:MODEL.")
]
GeneratorName = Annotated[
    str | None,
    option(
        "--generator -g GENERATOR",
        "openai:MODEL, anthropic:MODEL, hf:NAME_OR_PATH; or without a language model reader (extra 'reader'), "
        "qa:NAME_OR_PATH or extractive (built in). [default: reader if installed, else extractive]",
    ),
]
NLIName = Annotated[
    str | None,
    option("--nli NLI", "lexical (built in), reader, answers or cross:NAME_OR_PATH. [default: depends on -g]"),
]
DefenseName = Annotated[
    str,
    option(
        "--defense -d NAME[:OPTIONS]",
        "guard, or such as grada:alpha=0.3,keep=5; docs/defenses/index.md lists all. Your own: my_module:MyDefense.",
        callback=from_here,
    ),
]
SourcesFile = Annotated[
    Path | None,
    option(
        "--sources FILE",
        "A policy (YAML) or a history (SQLite) of sources; each source then has one vote. See 'unpoison sources'.",
    ),
]
Learn = Annotated[bool, option("--learn", "Record the retrieved sources and the outcome in the history.")]
Limit = Annotated[int | None, option("N", "Read the first N rows only.", min=1)]
AsJson = Annotated[bool, option("--json", "Write JSON Lines to standard output: every row with its fields.")]
Output = Annotated[Path | None, option("--output -o FILE", "Write the JSON Lines to this file.")]
