"""The options that `evaluate` and `redteam` share for pipelines; imports nothing that takes time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Against", "FailIf", "Junit", "Sarif"]

PANEL = "For pipelines"

FailIf = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="GATE",
        help="Exit with 1 where this holds, such as 'asr > 5%' or 'upper(asr) > 10%'; may be repeated.",
        rich_help_panel=PANEL,
    ),
]
Against = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Exit with 1 where a figure is significantly worse than in the JSON of this run.",
        rich_help_panel=PANEL,
    ),
]
Junit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the gates as JUnit XML.", rich_help_panel=PANEL)
]
Sarif = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what failed as SARIF 2.1.0.", rich_help_panel=PANEL)
]
