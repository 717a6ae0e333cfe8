"""The configuration of a test, one YAML file: what is tested, with which questions and attacks, under which bounds.

Whatever is misspelled, missing or unusable is said before anything is sent.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from unpoison.bench.evaluation.specs import check_spec, specs
from unpoison.errors import OptionError
from unpoison.io.settings import Section, Text, load_yaml, walk
from unpoison.utils.checks import MAX_NUMBER

__all__ = ["Bounds", "Config", "Wait", "as_tuple"]


class Bounds(Section):
    """The section `limits` of a configuration.

    Attributes:
        in_flight: Questions at the same time, 1 to 64; so many times `poisons` documents are planted at most.
        rate: Requests per second, above 0; None for no bound.
        budget: Requests of a run, asking and planting; removing is never refused. At least 1.
        timeout: Seconds for one request, above 0 and up to 3600.
        retries: Further tries of a request that failed for a moment, 0 to 10. A document is planted again only where
            the first try certainly did nothing.
    """

    in_flight: Annotated[int, Field(ge=1, le=64)] = 4
    rate: Annotated[float | None, Field(gt=0, le=10_000)] = None
    budget: Annotated[int, Field(ge=1, le=MAX_NUMBER)] = 100_000
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0
    retries: Annotated[int, Field(ge=0, le=10)] = 3


class Wait(Section):
    """The section `wait` of a configuration: how long a system may take to index what is planted.

    Attributes:
        seconds: The longest wait until a document is served, or is gone; 0 asks once. Up to 3600.
        every: The first pause between two looks; each is twice the last one, at most a quarter of `seconds`.
    """

    seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    every: Annotated[float, Field(gt=0, le=600)] = 0.25

    def pause(self, looks: int) -> float:
        """Seconds between look number `looks` and the next."""
        return max(self.every, min(self.every * 2.0 ** min(looks - 1, 30), self.seconds / 4))


def _read_attacks(value: Any) -> tuple[str, ...]:
    """Option strings, each once.

    Raises:
        UnknownNameError, OptionError: No such attack.
    """
    attacks = dict.fromkeys(spec for item in as_tuple(value) for spec in specs("attacks", item))
    for spec in attacks:
        if spec == "none":
            raise OptionError("attacks: none is no attack; every question is asked without one anyway")
        check_spec("attacks", spec)
    return tuple(attacks)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The members of a list, or the one thing that stands where a list may stand."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class BaseConfig(Section):
    """What the tests of a retrieval system and of an agent have in common.

    Attributes:
        limit: The first so many questions or tasks only.
        bounds: The section `limits`.
    """

    limit: Annotated[int | None, Field(ge=1, le=MAX_NUMBER)] = None
    bounds: Annotated[Bounds, Field(alias="limits")] = Bounds()
    _folder: Path = PrivateAttr(Path())

    @classmethod
    def of(cls, values: object, folder: Path = Path()) -> Self:
        """Read the fields.

        Args:
            values: The mapping that a file holds.
            folder: Where relative paths begin.

        Raises:
            UnknownNameError, OptionError: A field that is none, or a value that cannot be used.
        """
        for _ in walk(values, "the configuration"):
            pass
        config = cls.read(values, "the configuration")
        config._folder = folder
        return config

    @property
    def folder(self) -> Path:
        """Where relative paths begin."""
        return self._folder

    def with_bounds(self, *, limit: int | None = None, **bounds: float | None) -> Self:
        """The same with another `limit`, or other bounds of the section `limits`, where they are given.

        Raises:
            OptionError: One is out of its range.
        """
        values = self.model_dump(by_alias=True)
        values["limits"] |= {name: value for name, value in bounds.items() if value is not None}
        return type(self).of(values if limit is None else {**values, "limit": limit}, self.folder)


class Config(BaseConfig):
    """What a test does.

    Attributes:
        target: The description of the system, as written.
        questions: A data set for `evaluation.load`; a relative path begins at the configuration's folder.
        attacks: Option strings.
        poisons: Documents planted for each question; each number is tried.
        generator, encoder: For attacks that want a model.
        seed: Of the attacks.
        wait: The section `wait`.
        rehearse: Whether a harmless document is planted and removed first.
    """

    target: Annotated[dict[str, Any], Field(min_length=1)]
    questions: Text
    attacks: Annotated[tuple[str, ...], BeforeValidator(_read_attacks), Field(min_length=1)] = ("poisonedrag",)
    poisons: Annotated[
        tuple[Annotated[int, Field(ge=1, le=100)], ...],
        BeforeValidator(as_tuple),
        AfterValidator(lambda counts: tuple(dict.fromkeys(counts))),
        Field(min_length=1),
    ] = (1,)
    generator: Text | None = None
    encoder: Text | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_NUMBER)] = 0
    wait: Wait = Wait()
    rehearse: bool = True

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file.

        Raises:
            InputError: It cannot be read, or is no YAML.
            UnknownNameError: An unknown field; the message names the nearest.
            OptionError: A value that cannot be used.
        """
        return cls.of(load_yaml(path), Path(path).parent)

    @property
    def source(self) -> str:
        """The questions as `evaluation.load` takes them."""
        prefix, colon, rest = self.questions.partition(":")
        if self.questions in ("sample", "timeline") or prefix == "hub":
            return self.questions
        if colon and not (self.folder / self.questions).exists():
            return f"{prefix}:{self.folder / rest}"
        return str(self.folder / self.questions)

    def digest(self) -> str:
        """A hash of what is measured; the bounds do not belong to it."""
        values = self.model_dump(exclude={"bounds", "wait", "rehearse"})
        return blake2b(json.dumps(values, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
