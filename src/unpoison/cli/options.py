"""Options that several commands share; imports nothing that takes time.

`-d my_module:MyDefense` on a command line looks in the folder where the command runs too (`from_here`). Only names on
the command line have that right. A file, such as a manifest or a grid, names what is installed, so that nobody's file
makes the command import what lies beside it.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from unpoison.core import registry
from unpoison.errors import OptionError

__all__ = [
    "Against",
    "AsJson",
    "Carry",
    "DefenseName",
    "EncoderCache",
    "EncoderName",
    "FailIf",
    "GeneratorName",
    "Junit",
    "Learn",
    "Limit",
    "NLIName",
    "Namespace",
    "Output",
    "RowsFile",
    "Sarif",
    "SourcesFile",
    "built_data",
    "from_here",
]


T = TypeVar("T", str, list[str], None)


def from_here(value: T) -> T:
    """A callback of options that take names: lets modules of the working folder be imported where one is named.

    The folder comes last, so a file there never stands in for an installed package.
    """
    texts: list[str] = [value] if isinstance(value, str) else value or []
    if any(":" in text and _names_a_module(text) for text in texts) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return value


def _names_a_module(text: str) -> bool:
    from unpoison.bench.evaluation.specs import split_specs

    try:
        return any(":" in registry.parse(part)[0] for spec in split_specs(text) for part in spec.split("+"))
    except OptionError:
        return False  # reported where it is read


def built_data(value: str) -> str:
    """A callback of arguments that take a file: the path of an evaluation file where its name is given."""
    if value == "-" or "/" in value or os.sep in value:
        return value
    from unpoison.bench.data.store import data_path, is_name

    return str(data_path(value)) if is_name(value) else value


RowsFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        callback=built_data,
        help="A name of 'unpoison data list', or JSON Lines, CSV or Parquet with 'query' (or 'question') and "
        "'passages' in every row; - reads JSON Lines from standard input.",
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        "-e",
        metavar="ENCODER",
        help="lexical (built in), minilm, st:NAME_OR_PATH, onnx:FOLDER or openai:MODEL.",
    ),
]
EncoderCache = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep the encoder's vectors in this file, for the next run.")
]
GeneratorName = Annotated[
    str | None,
    typer.Option(
        "--generator",
        "-g",
        metavar="GENERATOR",
        help="openai:MODEL, anthropic:MODEL, hf:NAME_OR_PATH; or without a language model reader (extra 'reader'), "
        "qa:NAME_OR_PATH or extractive (built in). [default: reader where it is installed, else extractive]",
    ),
]
NLIName = Annotated[
    str | None,
    typer.Option(
        "--nli",
        metavar="NLI",
        help="lexical (built in), reader or answers, cross:NAME_OR_PATH or onnx:PATH. [default: what suits -g]",
    ),
]
InjectionModel = Annotated[
    str | None,
    typer.Option(
        "--injection-model",
        metavar="NAME_OR_PATH",
        help="A classifier that finds prompt injections in place of the built-in detector: hf:NAME_OR_PATH or "
        "onnx:FOLDER.",
    ),
]
DefenseName = Annotated[
    str,
    typer.Option(
        "--defense",
        "-d",
        metavar="NAME[:OPTIONS]",
        callback=from_here,
        help="guard, or such as grada:alpha=0.3,keep=5; see 'unpoison defenses'. One of your own: my_module:MyDefense.",
    ),
]
SourcesFile = Annotated[
    Path | None,
    typer.Option(
        "--sources",
        metavar="FILE",
        help="Who says so: a policy (YAML) or a history (SQLite) of sources; each source has one voice then. "
        "See 'unpoison sources'.",
    ),
]
Learn = Annotated[
    bool, typer.Option("--learn", help="Write which sources were retrieved, and what came of it, into the history.")
]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Read the first N rows only.")]
MaxPassages = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Passages of one row; with more it fails: time and memory grow with their square.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON Lines to standard output: every row with its fields.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON Lines to this file.")
]
Namespace = Annotated[str, typer.Option(metavar="NAME", help="Beliefs of other namespaces are not seen.")]

PIPELINES = "For pipelines"

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="GATE",
        help="Exit with 1 where this holds, such as 'asr > 5%' or 'upper(asr) > 10%'; may be repeated.",
        rich_help_panel=PIPELINES,
    ),
]
Against = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Exit with 1 where a figure is significantly worse than in the JSON of this run.",
        rich_help_panel=PIPELINES,
    ),
]
Junit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the gates as JUnit XML.", rich_help_panel=PIPELINES)
]
Sarif = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what failed as SARIF 2.1.0.", rich_help_panel=PIPELINES)
]


class Carry(StrEnum):
    """What a defense without a memory carries from one time of a stream to the next."""

    NOTHING = "nothing"
    PASSAGES = "passages"
    ANSWER = "answer"
