"""`unpoison models`: what can be given as a model, and checkpoints made ready for machines without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.help import Command

__all__ = ["EXAMPLES", "models"]

EXAMPLES = """\b
Examples:
  unpoison models export deepset/tinyroberta-squad2 tiny-reader
  unpoison ask -d radar -g qa:tiny-reader retrieved.jsonl
"""

models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make a model ready for use without torch.")


@models.callback()
def commands() -> None:
    """Make a model ready for use without torch."""


@models.command(cls=Command, epilog=EXAMPLES, short_help="Write a question-answering checkpoint as int8 ONNX.")
def export(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="An extractive question-answering model: a folder or a name.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the files go; new or empty.")],
) -> None:
    """Write a question-answering checkpoint as one int8 ONNX file, for -g qa:FOLDER.

    Needs torch, transformers and onnx (pip install 'unpoison[torch,export]'); what it writes needs onnxruntime only.
    """
    from unpoison.cli.running import say
    from unpoison.models.exporting import export as write
    from unpoison.models.reader import Reader

    graph = write(checkpoint, folder)
    (reading,) = Reader(folder).read("who wrote the letter", ["The letter was written by Ada in 1843."])
    say(
        f"wrote {graph} ({graph.stat().st_size / 1e6:.1f} MB); it reads, with odds of {reading.score:.1f} for an answer"
    )
    say(f"use it with -g qa:{folder}")
