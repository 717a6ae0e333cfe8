"""RADAR's tables over time by name: the published numbers, and the study that measures the same thing here.

A stream preset is a YAML file in `unpoison/data/stream_presets`: methods, and rows with an attack and the position of
its text among the passages of every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from unpoison.bench.evaluation.adaptations import Method
from unpoison.bench.evaluation.differences import (
    PAPER,
    REFERENCE,
    injection_difference,
    measurable,
    same_model,
    shortfalls,
    variants,
)
from unpoison.bench.evaluation.preset_data import preset_file, preset_files

__all__ = ["PublishedOverTime", "StreamPreset", "load_stream_preset", "stream_preset_names"]


YEAR = "variant: theirs tells the year of a question, as --stream dated:DATA does"

Counted = Literal["accuracy", "attack_success"]
_COUNTED: tuple[Counted, ...] = ("accuracy", "attack_success")
"""In the order of a cell."""


@dataclass(frozen=True, slots=True)
class PublishedOverTime:
    """One number of a paper.

    Attributes:
        attack: The name of the row; a key of `StreamPreset.attacks`.
        method: The paper's name of it; `StreamPreset.variants_of(method)` has the measured methods.
        measure: The measure.
        value: The published share, in [0, 1].
    """

    attack: str
    method: str
    measure: Counted
    value: float


@dataclass(frozen=True, slots=True)
class StreamPreset:
    """A paper's table over time.

    Attributes:
        name: Its name in options.
        title: The title of the table.
        source: The paper and the table.
        about: How the study follows the paper.
        used: The paper's data, generator and NLI model.
        methods: By the paper's name, and its variant if it has several, the methods that the generator can run.
        attacks: By the paper's name, option string of the attack and its place from 1; see `streams.ATTACKS`.
        published: Every number of the table, in its order.
        lacking: By method, why it is not measured.
        differs: Differences that affect every number, each `code: detail`.
        method_differs, attack_differs: The same by key of `methods` and of `attacks`.
    """

    name: str
    title: str
    source: str
    about: str
    used: Mapping[str, str]
    methods: Mapping[str, Method]
    attacks: Mapping[str, tuple[str | None, int | None]]
    published: tuple[PublishedOverTime, ...]
    lacking: Mapping[str, str]
    differs: tuple[str, ...]
    method_differs: Mapping[str, tuple[str, ...]]
    attack_differs: Mapping[str, tuple[str, ...]]

    def variants_of(self, method: str) -> list[str]:
        """The keys of `methods` for a method of the paper: itself, or its variants."""
        return [name for name in map(partial(_variant_name, method), ("", PAPER, REFERENCE)) if name in self.methods]

    def describe(self) -> list[str]:
        """A description, the paper's models and data, and the differences here, line by line."""
        used = "; ".join(f"{what} {value}" for what, value in self.used.items())
        lines = [f"{self.source}: {self.title}", self.about.strip(), f"the paper used: {used}", *self.differs]
        of_parts = [*self.method_differs.values(), *self.attack_differs.values()]
        lines += dict.fromkeys(difference for part in of_parts for difference in part)
        return [*lines, *(f"none: {method} {why}" for method, why in self.lacking.items())]


def stream_preset_names() -> list[str]:
    """Every stream preset, sorted."""
    return preset_files("stream_presets")


def load_stream_preset(name: str, *, generator: str, nli: str) -> StreamPreset:
    """Read a stream preset and fit it to the given models.

    Args:
        name: One of `stream_preset_names()`.
        generator: Option string of the generator; methods that it cannot run are left out and listed in `lacking`.
        nli: Option string of the NLI model.

    Raises:
        UnknownNameError: No such preset.
    """
    raw = preset_file("stream_presets", name)
    theirs = {label: Method(**fields) for label, fields in raw["methods"].items()}
    reasons = {
        label: measurable({"defense": method.defense, "generator": True}, generator) for label, method in theirs.items()
    }
    named = {
        (label, variant): Method(spec, method.carries)
        for label, method in theirs.items()
        if not reasons[label]
        for variant, spec in variants(method.defense).items()
    }
    return StreamPreset(
        name=name,
        title=raw["title"],
        source=raw["source"],
        about=raw["about"],
        used=raw["used"],
        methods={_variant_name(*key): method for key, method in named.items()},
        attacks={row["label"]: (row.get("attack"), row.get("position")) for row in raw["rows"]},
        published=tuple(_parse_numbers(raw, list(theirs))),
        lacking={label: why for label, why in reasons.items() if why},
        differs=tuple(_differs(raw, generator, nli)),
        method_differs={
            _variant_name(label, variant): (YEAR,) if variant == REFERENCE else shortfalls(variant, method.defense)
            for (label, variant), method in named.items()
        },
        attack_differs={row["label"]: tuple(_of_attack(raw, row)) for row in raw["rows"]},
    )


def _of_attack(raw: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """How a row's attack differs from the paper's."""
    if "attack" in row and (words := injection_difference(raw["source"], row["attack"])):
        yield words
    yield from row.get("differs", ())


def _variant_name(method: str, variant: str) -> str:
    return f"{method} ({variant})" if variant else method


def _parse_numbers(raw: Mapping[str, Any], methods: list[str]) -> list[PublishedOverTime]:
    numbers = []
    for row in raw["rows"]:
        for method, cell in zip(methods, row["values"].split(), strict=True):
            for measure, value in zip(_COUNTED, cell.split("/"), strict=False):
                numbers.append(PublishedOverTime(row["label"], method, measure, round(float(value) / 100, 6)))
    return numbers


def _differs(raw: Mapping[str, Any], generator: str, nli: str) -> list[str]:
    theirs = raw["used"]
    models = {"generator": generator, "nli": nli}
    differences = [
        f"{kind}: {ours}, theirs {theirs[kind]}" for kind, ours in models.items() if not same_model(ours, theirs[kind])
    ]
    return [*differences, "judge: accuracy by the words of the reply, theirs by an LLM grader", *raw.get("differs", ())]
