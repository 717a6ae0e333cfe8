"""The configuration of a test, a YAML file: target, questions, attacks and limits.

Misspelled, missing and unusable fields are reported before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from unpoison.errors import OptionError
from unpoison.utils.checks import MAX_NUMBER
from unpoison.utils.files import load_yaml
from unpoison_lab.evaluation.grids import specs
from unpoison_lab.evaluation.scenarios import check_spec
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.http_target import HttpTarget
from unpoison_lab.redteam.pace import RequestLimits, Wait
from unpoison_lab.redteam.settings import SettingsSection, Text
from unpoison_lab.redteam.targets import RedteamTarget, load_target

__all__ = ["Config", "build_target"]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _read_attacks(value: Any) -> tuple[str, ...]:
    attacks = dict.fromkeys(spec for item in _as_tuple(value) for spec in specs("attacks", item))
    for spec in attacks:
        if spec == "none":
            raise OptionError("attacks: none is no attack; every question is asked without one anyway")
        check_spec("attacks", spec)
    return tuple(attacks)


class Config(SettingsSection):
    """The configuration of a test.

    Attributes:
        target: The description of the system, as written (`build_target`).
        questions: A data set for `evaluation.load`; a relative path begins at the configuration's folder.
        attacks: Option strings.
        poisons: Documents planted for each question; each number is tried.
        generator, encoder: For attacks that want a model.
        seed: Of the attacks.
        limit: Use only the first questions.
        limits: The section `limits`.
        wait: The section `wait`.
        rehearse: Whether a harmless document is planted and removed first.
    """

    target: Annotated[dict[str, Any], Field(min_length=1)]
    questions: Text = "questions.jsonl"
    attacks: Annotated[tuple[str, ...], BeforeValidator(_read_attacks), Field(min_length=1)] = ("poisonedrag",)
    poisons: Annotated[
        tuple[Annotated[int, Field(ge=1, le=100)], ...],
        BeforeValidator(_as_tuple),
        AfterValidator(lambda counts: tuple(dict.fromkeys(counts))),
        Field(min_length=1),
    ] = (1,)
    generator: Text | None = None
    encoder: Text | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_NUMBER)] = 0
    limit: Annotated[int | None, Field(ge=1, le=MAX_NUMBER)] = None
    limits: RequestLimits = RequestLimits()
    wait: Wait = Wait()
    rehearse: bool = True
    _folder: Path = PrivateAttr(Path())

    @classmethod
    def of(cls, values: object, folder: Path = Path()) -> Self:
        """Read the fields.

        Args:
            values: The mapping that a file holds.
            folder: Where relative paths begin.

        Raises:
            UnknownNameError: An unknown field; the message names the nearest.
            OptionError: A value that cannot be used.
        """
        config = cls.read(values, "the configuration")
        config._folder = folder
        return config

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file.

        Raises:
            InputError: It cannot be read, or is not YAML.
            UnknownNameError, OptionError: As of `of`.
        """
        return cls.of(load_yaml(path), Path(path).parent)

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self._folder

    @property
    def source(self) -> str:
        """The questions as `evaluation.load` takes them."""
        prefix, colon, rest = self.questions.partition(":")
        if self.questions in ("sample", "timeline"):
            return self.questions
        if colon and not (self.folder / self.questions).exists():
            return f"{prefix}:{self.folder / rest}"
        return str(self.folder / self.questions)


class PythonTarget(SettingsSection):
    """A target in Python: `python: module:attribute`."""

    python: Text


def build_target(
    values: Mapping[str, Any], hosts: Hosts, *, folder: Path = Path(), timeout: float = 30.0
) -> RedteamTarget:
    """The target that a section `target` describes, over HTTP or in Python.

    Args:
        values: The section.
        hosts: Where requests may go.
        folder: Where relative paths begin, and where Python modules are looked for too.
        timeout: Seconds for one request.

    Raises:
        UnknownNameError, OptionError: It describes none.
        MissingExtraError: A library is missing.
    """
    if "python" in values:
        return load_target(PythonTarget.read(values, "target").python, folder)
    return HttpTarget(values, hosts, timeout=timeout)
