"""The configuration of a test, one YAML file: what is tested, with which questions and attacks, under which bounds.

Whatever is misspelled, missing or unusable is said before anything is sent.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import yaml

from unpoison.bench.evaluation.specs import check_spec, specs
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.utils.checks import at_least, within

__all__ = ["Bounds", "Config", "Wait"]

MAX_BYTES = 1 << 20
"""Larger files are refused: a configuration is a page of YAML."""

MAX_MEMBERS = 10_000
"""Aliases of YAML can make a small file a huge one."""

FIELDS = (
    *("target", "questions", "attacks", "poisons", "generator", "encoder", "seed", "limit"),
    *("limits", "wait", "rehearse"),
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The section `limits` of a configuration.

    Attributes:
        in_flight: Questions at the same time, 1 to 64; so many times `poisons` documents are planted at most.
        rate: Requests per second, above 0; None for no bound.
        budget: Requests of a run, asking and planting; removing is never refused. At least 1.
        timeout: Seconds for one request, above 0 and up to 3600.
        retries: Further tries of a request that failed for a moment, 0 to 10. A document is planted again only where
            the first try certainly did nothing.
    """

    in_flight: int = 4
    rate: float | None = None
    budget: int = 100_000
    timeout: float = 30.0
    retries: int = 3

    def __post_init__(self) -> None:
        at_least("limits.in_flight", self.in_flight, 1, 64)
        at_least("limits.budget", self.budget, 1)
        at_least("limits.retries", self.retries, 0, 10)
        for name, high in (("timeout", 3600.0), ("rate", 10_000.0)):
            if (value := getattr(self, name)) is not None and within(f"limits.{name}", value, 0.0, high) == 0:
                raise OptionError(f"limits.{name} must be above 0")

    @classmethod
    def of(cls, values: object) -> Self:
        """Read the section.

        Raises:
            UnknownNameError, OptionError: An unknown field, or a value out of its range.
        """
        return cls(**_section(cls, "limits", values))


@dataclass(frozen=True, slots=True)
class Wait:
    """The section `wait` of a configuration: how long a system may take to index what is planted.

    Attributes:
        seconds: The longest wait until a document is served, or is gone; 0 asks once. Up to 3600.
        every: The first pause between two looks; each is twice the last one, at most a quarter of `seconds`.
    """

    seconds: float = 5.0
    every: float = 0.25

    def __post_init__(self) -> None:
        within("wait.seconds", self.seconds, 0.0, 3600.0)
        if within("wait.every", self.every, 0.0, 600.0) == 0:
            raise OptionError("wait.every must be above 0")

    @classmethod
    def of(cls, values: object) -> Self:
        """Read the section.

        Raises:
            UnknownNameError, OptionError: An unknown field, or a value out of its range.
        """
        return cls(**_section(cls, "wait", values))

    def pause(self, looks: int) -> float:
        """Seconds between look number `looks` and the next."""
        return max(self.every, min(self.every * 2.0 ** min(looks - 1, 30), self.seconds / 4))


@dataclass(frozen=True, slots=True)
class Config:
    """What a test does.

    Attributes:
        target: The description of the system, as written.
        questions: A data set for `evaluation.load`; a relative path begins at the configuration's folder.
        attacks: Option strings.
        poisons: Documents planted for each question; each number is tried.
        generator, encoder: For attacks that want a model.
        seed: Of the attacks.
        limit: The first so many questions only.
        bounds: The section `limits`.
        wait: The section `wait`.
        rehearse: Whether a harmless document is planted and removed first.
        folder: Where relative paths begin.
    """

    target: Mapping[str, Any]
    questions: str
    attacks: tuple[str, ...] = ("poisonedrag",)
    poisons: tuple[int, ...] = (1,)
    generator: str | None = None
    encoder: str | None = None
    seed: int = 0
    limit: int | None = None
    bounds: Bounds = field(default_factory=Bounds)
    wait: Wait = field(default_factory=Wait)
    rehearse: bool = True
    folder: Path = Path()

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file.

        Raises:
            InputError: It cannot be read, or is no YAML mapping.
            UnknownNameError: An unknown field; the message names the nearest.
            OptionError: A value that cannot be used.
        """
        source = Path(path)
        try:
            with source.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}; give a YAML file") from None
        if len(content) > MAX_BYTES:
            raise InputError(f"{path} is larger than {MAX_BYTES:,} bytes; a configuration is a page of YAML")
        try:
            values = yaml.load(content, _Loader)  # noqa: S506  it is a SafeLoader that refuses a key given twice
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise InputError(f"{path} is no YAML: {' '.join(str(error).split())}") from None
        return cls.of(values, source.parent)

    @classmethod
    def of(cls, values: object, folder: Path = Path()) -> Self:
        """Read the fields.

        Raises:
            InputError, UnknownNameError, OptionError: As for `load`.
        """
        if not isinstance(values, dict):
            raise InputError(f"a configuration must be a mapping with target and questions, got {clip(values)}")
        _check_size(values)
        for name in values:
            if name not in FIELDS:
                raise UnknownNameError("field of the configuration", str(name), FIELDS)
        for name in ("target", "questions"):
            if not values.get(name):
                raise OptionError(f"the configuration needs {name}; see docs/redteam.md")
        if not isinstance(values["target"], dict):
            raise OptionError(f"target must be a mapping, got {clip(values['target'])}")
        return cls(
            target=values["target"],
            questions=_text("questions", values["questions"]),
            attacks=_attacks(values.get("attacks", ["poisonedrag"])),
            poisons=_counts(values.get("poisons", [1])),
            generator=None if values.get("generator") is None else _text("generator", values["generator"]),
            encoder=None if values.get("encoder") is None else _text("encoder", values["encoder"]),
            seed=at_least("seed", values.get("seed", 0), 0),
            limit=None if values.get("limit") is None else at_least("limit", values["limit"], 1),
            bounds=Bounds.of(values.get("limits")),
            wait=Wait.of(values.get("wait")),
            rehearse=_switch("rehearse", values.get("rehearse", True)),
            folder=folder,
        )

    def with_bounds(
        self,
        *,
        in_flight: int | None = None,
        rate: float | None = None,
        budget: int | None = None,
        limit: int | None = None,
    ) -> Self:
        """The same with other bounds, where they are given.

        Raises:
            OptionError: One is out of its range.
        """
        given: dict[str, Any] = {"in_flight": in_flight, "rate": rate, "budget": budget}
        bounds = replace(self.bounds, **{name: value for name, value in given.items() if value is not None})
        return replace(self, bounds=bounds, limit=self.limit if limit is None else at_least("limit", limit, 1))

    @property
    def source(self) -> str:
        """The questions as `evaluation.load` takes them."""
        prefix, colon, rest = self.questions.partition(":")
        if self.questions in ("sample", "timeline") or prefix == "hub":
            return self.questions
        if colon and (self.folder / self.questions).exists() is False:
            return f"{prefix}:{self.folder / rest}"
        return str(self.folder / self.questions)

    def digest(self) -> str:
        """A hash of what is measured; the bounds do not belong to it."""
        names = ("target", "questions", "attacks", "poisons", "generator", "encoder", "seed", "limit")
        text = json.dumps({name: getattr(self, name) for name in names}, sort_keys=True, default=str)
        return blake2b(text.encode(), digest_size=8).hexdigest()


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice: YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(problem=f"{clip(key.value)} is given twice; give it once")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _section(kind: Any, name: str, values: object) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise OptionError(f"{name} must be a mapping, got {clip(values)}")
    allowed = [field.name for field in fields(kind)]
    for key in values:
        if key not in allowed:
            raise UnknownNameError(f"field of {name}", str(key), allowed)
    return values


def _check_size(values: object) -> None:
    waiting, members = [values], 0
    while waiting:
        value = waiting.pop()
        members += 1
        if members > MAX_MEMBERS:
            raise InputError(f"the configuration has more than {MAX_MEMBERS:,} members; it is a page of YAML")
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise OptionError(f"{name} must be a text, got {clip(value)}")
    return value


def _switch(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{name} must be true or false, got {clip(value)}")
    return value


def _attacks(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    attacks = tuple(dict.fromkeys(spec for item in items for spec in specs("attacks", item)))
    if not attacks:
        raise OptionError("attacks is empty; name at least one, 'unpoison attack --list' lists them")
    for spec in attacks:
        if spec == "none":
            raise OptionError("attacks: none is no attack; every question is asked without one anyway")
        check_spec("attacks", spec)
    return attacks


def _counts(value: object) -> tuple[int, ...]:
    items: list[Any] = value if isinstance(value, list) else [value]
    counts = tuple(dict.fromkeys(at_least("poisons", item, 1, 100) for item in items))
    if not counts:
        raise OptionError("poisons is empty; give how many documents are planted for each question, such as [1, 3]")
    return counts
