"""`unpoison schema`: the formats of files, for programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from unpoison.cli.options import argument

__all__ = ["EXAMPLES", "Kind", "schema"]

EXAMPLES = """\b
Examples:
  unpoison schema rows > rows.schema.json
  check-jsonschema --schemafile rows.schema.json questions.json
"""


class Kind(StrEnum):
    """What there is a schema of; `src/unpoison/data/NAME.schema.json`."""

    ROWS = "rows"


def schema(kind: Annotated[Kind, argument("KIND", "rows: one row of a question file.")]) -> None:
    """Print the JSON Schema of a file's rows.

    JSON Lines, CSV and Parquet files hold the same rows; docs/data.md has one complete row for each command.
    """
    from importlib.resources import files

    typer.echo(files("unpoison").joinpath("data", f"{kind}.schema.json").read_text(encoding="utf-8"), nl=False)
