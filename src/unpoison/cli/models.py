"""`unpoison models`: what can be given as a model, and checkpoints made ready for machines without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.options import Command, argument, option

__all__ = ["EXAMPLES", "models"]

EXAMPLES = """\b
Examples:
  unpoison models export deepset/tinyroberta-squad2 tiny-reader
  unpoison ask -d radar -g qa:tiny-reader retrieved.jsonl
  unpoison models export --encoder sentence-transformers/all-MiniLM-L6-v2 small-minilm
  unpoison screen -d guard -e onnx:small-minilm retrieved.jsonl
"""

models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Make a model ready for use without torch.")


@models.callback()
def commands() -> None:
    """Make a model ready for use without torch."""


@models.command(cls=Command, epilog=EXAMPLES, short_help="Write a reader or an encoder as int8 ONNX.")
def export(
    checkpoint: Annotated[
        str,
        argument(
            "CHECKPOINT",
            "An extractive question-answering model, or with --encoder a sentence encoder: a folder or a name.",
        ),
    ],
    folder: Annotated[Path, argument("FOLDER", "Where the files go; new or empty.")],
    encoder: Annotated[
        bool, option("--encoder", "It is a sentence encoder of the sentence-transformers library.")
    ] = False,
) -> None:
    """Write a checkpoint as one int8 ONNX file.

    A question-answering one is for -g qa:FOLDER, an encoder (--encoder) for -e onnx:FOLDER.

    Needs torch, transformers and onnx (pip install 'unpoison[torch,export]'); what it writes needs onnxruntime only.
    """
    from unpoison.cli.common import say
    from unpoison.models.onnx import OnnxEncoder
    from unpoison.models.onnx_export import export as write
    from unpoison.models.onnx_export import export_encoder
    from unpoison.models.reader import Reader

    if encoder:
        graph = export_encoder(checkpoint, folder)
        (vector,) = OnnxEncoder(folder).encode(["The letter was written by Ada in 1843."])
        say(f"wrote {graph} ({graph.stat().st_size / 1e6:.1f} MB); its vectors have {len(vector)} dimensions")
        say(f"use it with -e onnx:{folder}")
        return
    graph = write(checkpoint, folder)
    (reading,) = Reader(folder).read("who wrote the letter", ["The letter was written by Ada in 1843."])
    say(
        f"wrote {graph} ({graph.stat().st_size / 1e6:.1f} MB); it reads, with odds of {reading.score:.1f} for an answer"
    )
    say(f"use it with -g qa:{folder}")
