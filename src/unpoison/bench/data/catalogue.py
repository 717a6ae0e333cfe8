"""The evaluation files that can be rebuilt: what they are, under which licences, and with which hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from unpoison.bench.data.recipes import Recipe, decode
from unpoison.errors import InputError, UnknownNameError

__all__ = ["DataFile", "Licence", "catalogue", "data_file", "licences", "name_of", "recipe"]


@dataclass(frozen=True, slots=True)
class Licence:
    """Terms of some source.

    Attributes:
        slug: What `--accept-licence` takes.
        title: Its usual name.
        accept: Whether it must be accepted before anything is downloaded.
        note: What a user must know.
    """

    slug: str
    title: str
    accept: bool
    note: str

    def __str__(self) -> str:
        return f"{self.title}: {self.note}" if self.note else self.title


@dataclass(frozen=True, slots=True)
class DataFile:
    """One evaluation file.

    Attributes:
        name: Such as `nq_poisoned`; the file is `nq_poisoned.jsonl`.
        what: One phrase.
        bytes, sha256: Of the file that the documented tables were measured on.
        rows: How many it has.
        licences: Slugs of the terms of its sources.
        repositories: The public repositories that it is made of.
        files, download: How many source files, and their bytes.
        companions: Files that belong to it, such as `corpus`, which fills contexts.
        unavailable: Why it cannot be rebuilt; "" where it can.
    """

    name: str
    what: str
    bytes: int
    sha256: str
    rows: int = 0
    licences: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    files: int = 0
    download: int = 0
    companions: tuple[str, ...] = ()
    unavailable: str = ""


RECIPES = files("unpoison").joinpath("data", "recipes")
"""The folder of `catalogue.json` and the recipes."""


def _content() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return json.loads(RECIPES.joinpath("catalogue.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]  # our own file


def licences() -> dict[str, Licence]:
    """All terms by slug."""
    return {slug: Licence(slug, **fields) for slug, fields in _content()["licences"].items()}


def catalogue() -> dict[str, DataFile]:
    """All evaluation files by name, in the order of the documentation."""
    return {name: _data_file(name, fields) for name, fields in _content()["files"].items()}


def _data_file(name: str, fields: Mapping[str, Any]) -> DataFile:
    lists: dict[str, Any] = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return DataFile(name, **{**fields, **lists})


def name_of(text: str) -> str:
    """The name of an evaluation file, written with or without `.jsonl`."""
    return text.removesuffix(".jsonl")


def data_file(name: str) -> DataFile:
    """An evaluation file by its name.

    Raises:
        UnknownNameError: There is none; the message names the nearest.
    """
    known = catalogue()
    if name_of(name) not in known:
        raise UnknownNameError("evaluation file", name, known)
    return known[name_of(name)]


def recipe(file: DataFile) -> Recipe:
    """The recipe of a file.

    Raises:
        InputError: The file cannot be rebuilt; the message says why.
    """
    if file.unavailable:
        raise InputError(
            f"{file.name} cannot be rebuilt: {file.unavailable}; where you have the file, "
            f"'unpoison data get {file.name} --from FOLDER' takes it"
        )
    return decode(RECIPES.joinpath(f"{file.name}.json.xz").read_bytes())
