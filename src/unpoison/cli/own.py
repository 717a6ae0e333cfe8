"""`-d my_module:MyDefense` on a command line: the folder where the command runs is looked in too.

Only names on the command line have that right. A file, such as a manifest or a grid, names what is installed, so that
nobody's file makes the command import what lies beside it.
"""

from __future__ import annotations

import os
import sys
from typing import TypeVar

from unpoison.core import registry
from unpoison.errors import OptionError

__all__ = ["from_here"]

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
