"""The folder of evaluation files, as an argument of a benchmark."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

from unpoison.errors import InputError
from unpoison_lab.data_files import BUILT, data_folder

__all__ = ["BUILT", "evaluation_folder"]


def evaluation_folder(spec: str) -> Path:
    """The folder that an argument means: a path, or `evaluation-data` for what `python -m benchmarks data get` built.

    Raises:
        ArgumentTypeError: There is no such folder, or nothing was built yet.
    """
    try:
        folder = data_folder(spec)
    except InputError as error:
        raise ArgumentTypeError(str(error)) from None
    if folder is None:
        raise ArgumentTypeError(
            f"{spec} is no folder; {BUILT} stands for the files that 'python -m benchmarks data get' built"
        )
    return folder
