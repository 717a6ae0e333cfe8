"""Evaluation files by name, in the folder that `python -m benchmarks data get NAME` of a checkout writes.

The files come from many authors, under their licences, and are not part of this package. Any `NAME.jsonl` in the folder
is found by its name, so you can add your own files.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

from unpoison.errors import InputError

__all__ = [
    "BUILT", "FOLDER", "built_folder", "data_folder", "data_path", "fill", "has_released_texts", "is_name",
    "released_text", "set_names",
]  # fmt: skip

FOLDER = "UNPOISON_DATA"
"""The environment variable with the folder of evaluation files."""

BUILT = "evaluation-data"
"""Stands for that folder wherever a folder of data sets is expected."""

RELEASED = "replay"
"""The file with the texts that the four papers' released code plants and asks."""

_HOLE = re.compile(r"\{(question|answer|context|opening)\}")


def built_folder() -> Path:
    """`UNPOISON_DATA`, else `unpoison/data` in the user's cache folder (XDG; on Windows the local application data)."""
    if os.environ.get(FOLDER):
        return Path(os.environ[FOLDER])
    variable, fallback = ("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / fallback, "unpoison", "data")


def _built_file(name: str) -> Path:
    return built_folder() / f"{name.removesuffix('.jsonl')}.jsonl"


def is_name(spec: str) -> bool:
    """Whether a text names an evaluation file that is in the folder; a file of that name here takes precedence."""
    plain = "/" not in spec and os.sep not in spec
    return plain and not Path(spec).exists() and _built_file(spec).is_file()


def data_path(spec: str | Path) -> Path:
    """The evaluation file of a name such as `nq_poisoned`; any other text is returned as a path."""
    return _built_file(str(spec)) if is_name(str(spec)) else Path(spec)


def set_names() -> dict[str, bool]:
    """The evaluation files by name, and whether each is built; in a checkout those that can be built too."""
    catalogue = Path(__file__).parents[2] / "benchmarks" / "data" / "catalogue.json"
    known = json.loads(catalogue.read_text(encoding="utf-8"))["files"] if catalogue.is_file() else ()
    return dict.fromkeys(known, False) | {path.stem: True for path in sorted(built_folder().glob("*.jsonl"))}


def data_folder(spec: str | Path) -> Path | None:
    """A folder of data sets: `evaluation-data` for the folder of evaluation files, or a path; None for no folder.

    Raises:
        InputError: `evaluation-data` is meant and that folder does not exist; the message has the command.
    """
    if Path(spec).is_dir():
        return Path(spec)
    if str(spec) != BUILT:
        return None
    folder = built_folder()
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; in a checkout of the repository run: python -m benchmarks data get NAME"
        )
    return folder


def has_released_texts() -> bool:
    """Whether the texts of the papers' released code are there."""
    return _built_file(RELEASED).is_file()


def released_text(name: str) -> str:
    """One text of the papers' released code, word for word.

    Args:
        name: Such as `qa-radar`, an order that RADAR's code plants, or `answer-grada`, what GRADA's asks.

    Returns:
        The text, with `{question}`, `{answer}`, `{context}` or `{opening}` where theirs puts a variable.

    Raises:
        InputError: The texts are not there or not readable; the message has the command.
        KeyError: There is none of this name.
    """
    path = _built_file(RELEASED)
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        texts = {row["id"]: row["text"] for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{path} is missing or damaged; in a checkout run: python -m benchmarks data get {RELEASED}"
        ) from None
    return str(texts[name])


def fill(text: str, **values: str) -> str:
    """The text with its placeholders filled in one pass; inserted values are not expanded again."""
    return _HOLE.sub(lambda hole: values[hole[1]], text)
