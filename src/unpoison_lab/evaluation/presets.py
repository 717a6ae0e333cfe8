"""The papers' tables by name: the published numbers, and the scenarios that measure the same thing here.

A preset is a YAML file in `unpoison_lab/data/presets`, and its tables are the paper's. Each row and column names the
fields of a `Scenario`; together they make the scenario behind a published number. A row whose defense this package
does not have is printed and not measured. RADAR's tables over time are in `unpoison_lab/data/stream_presets`: methods,
and rows with an attack and the position of its text among the passages of every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from unpoison.algorithms.intervals import Estimate
from unpoison_lab.evaluation.adaptations import Method
from unpoison_lab.evaluation.differences import (
    PAPER,
    REFERENCE,
    Differences,
    codes,
    injection_difference,
    measurable,
    same_model,
    shortfalls,
    variants,
)
from unpoison_lab.evaluation.measures import measure
from unpoison_lab.evaluation.preset_data import DATA, PaperData, preset_file, preset_files
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.summary import Summary

__all__ = [
    "Preset",
    "PublishedNumber",
    "StreamPreset",
    "load_preset",
    "load_stream_preset",
    "preset_names",
    "stream_preset_names",
]


_BOUNDS = {"": "", "<": "below ", ">": "above "}


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """One number of a paper.

    Attributes:
        table: The part of the paper's table, usually the language model.
        row: The defense as the paper calls it.
        column: Data set and attack as the paper calls them.
        measure: The name of the measure that comes closest here.
        value: The published number in the unit of the measure, a share or a score; None if the paper draws it
            without printing it.
        scenario: The scenario measured for it; None if it cannot be measured here.
        bound: "<" or ">" where the paper says only that the value is below or above; "" if it prints it.
        spread: The standard deviation over the paper's seeds, in the unit of the value; None if it prints none.
        row_differs: How the measurement of the row differs from the paper's, or why there is none, each `code: detail`.
        column_differs: The same for the column.
        variant: `paper` or `reference` if the defense is measured in two variants.
    """

    table: str
    row: str
    column: str
    measure: str
    value: float | None
    scenario: Scenario | None
    bound: str = ""
    spread: float | None = None
    row_differs: tuple[str, ...] = ()
    column_differs: tuple[str, ...] = ()
    variant: str = ""

    @property
    def label(self) -> str:
        """The row with its variant."""
        return f"{self.row} ({self.variant})" if self.variant else self.row

    @property
    def printed(self) -> str:
        """The number as tables print it, shares in percent; a bound as a bound."""
        if self.value is None:
            return "not printed"
        scale, digits = (100, 1) if measure(self.measure).unit == "share" else (1, 2)
        spread = "" if self.spread is None else f" \u00b1 {scale * self.spread:.{digits}f}"
        return f"{_BOUNDS[self.bound]}{scale * self.value:.{digits}f}{spread}"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A paper's table.

    Attributes:
        name: Its name in options.
        title: The title of the table.
        source: The paper and the table.
        about: How the measurement follows the paper, in a sentence or two.
        used: The paper's data and models.
    """

    name: str
    title: str
    source: str
    about: str
    used: Mapping[str, str]

    @property
    def introduction(self) -> list[str]:
        """The table and the paper's models and data, line by line."""
        used = "; ".join(f"{what} {value}" for what, value in self.used.items())
        return [*filter(None, (f"{self.source}: {self.title}", self.about.strip())), f"the paper used: {used}"]


def _of_file(name: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `PaperTable` in its file."""
    return {"name": name, "about": raw.get("about", ""), **{field: raw[field] for field in ("title", "source", "used")}}


@dataclass(frozen=True, slots=True)
class Preset(PaperTable):
    """A paper's table, ready to be measured again.

    Attributes:
        scenarios: The scenarios; empty if none can be measured.
        published: Every number of the table, in its order.
        lacks: Missing data, one sentence each.
        seeds: With each of them everything is measured; the scenarios of `published` have the first.
    """

    scenarios: tuple[Scenario, ...]
    published: tuple[PublishedNumber, ...]
    lacks: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)

    @property
    def differences(self) -> tuple[str, ...]:
        """All differences from the paper's measurement, each once, and what is not measured."""
        every = (text for number in self.published for text in (*number.row_differs, *number.column_differs))
        return tuple(dict.fromkeys(every))

    @property
    def same_setting(self) -> bool:
        """Whether every number is measured in the paper's own setting: data, poison, prompts, models, order, seeds."""
        return bool(self.published) and not self.differences and all(n.scenario is not None for n in self.published)

    @property
    def stamp(self) -> str:
        """`same setting as the paper`, or how many differences keep the table from it."""
        if self.same_setting:
            return "same setting as the paper"
        return f"not the paper's setting: {codes(self.differences)}"

    def by_seed(self, number: PublishedNumber, by_scenario: Mapping[Scenario, Summary]) -> list[Estimate]:
        """The measured figures for a published number, one for each seed that was measured."""
        if number.scenario is None:
            return []
        every = (replace(number.scenario, seed=seed) for seed in self.seeds)
        return [by_scenario[scenario][number.measure] for scenario in every if scenario in by_scenario]

    def describe(self) -> list[str]:
        """A description, the paper's models and data, and the differences here, line by line."""
        missing = (f"missing: {sentence}" for sentence in self.lacks)
        return [*self.introduction, self.stamp, *self.differences, *missing]


def preset_names() -> list[str]:
    """Every preset, sorted."""
    return preset_files("presets")


def load_preset(
    name: str,
    *,
    data: str | Path | None = None,
    encoder: str = "lexical",
    retriever: str | None = None,
    generator: str | None = None,
    nli: str | None = None,
    seed: int | Sequence[int] = 0,
    limit: int | None = None,
    grader: str | None = None,
) -> Preset:
    """Read a preset and fit it to the local data and models.

    Args:
        name: One of `preset_names()`.
        data: A folder in the shared format (`nq_poisoned.jsonl`, ..., `corpus.jsonl`); or anything that `load` takes,
            which then stands in for the first data set of the table; None for the built-in sample.
        encoder: Stands in for the paper's encoder, and for its retriever where none is given.
        retriever: Stands in for the paper's retriever.
        generator: Stands in for the paper's language models; None measures the screening only.
        nli: Stands in for the paper's NLI model.
        seed: Of every scenario; several measure everything with each, and tables then have mean and spread.
        limit: Only the first questions of each data set.
        grader: The model that grades replies if the paper used a grader; None matches words.

    Raises:
        UnknownNameError: No such preset.
        InputError: A data file that cannot be read.
    """
    raw = preset_file("presets", name)
    sources = PaperData(raw["data"], data, limit)
    retriever = retriever or ("bm25" if encoder == "lexical" else encoder)
    seeds = (seed,) if isinstance(seed, int) else tuple(dict.fromkeys(seed))
    models = {"encoder": encoder, "retriever": retriever, "generator": generator, "nli": nli, "seed": seeds[0]}
    fit = Differences(raw, sources, {**models, "limit": limit})
    published = tuple(_numbers(raw, fit, graded=grader is not None))
    first = dict.fromkeys(entry.scenario for entry in published if entry.scenario is not None)
    scenarios = dict.fromkeys(replace(scenario, seed=seed) for seed in seeds for scenario in first)
    return Preset(
        **_of_file(name, raw),
        scenarios=tuple(dict.fromkeys([scenario.twin for scenario in scenarios] + list(scenarios))),
        published=published,
        lacks=(*sources.lacks, *raw.get("lacks", ())),
        seeds=seeds,
    )


def _numbers(raw: Mapping[str, Any], fit: Differences, *, graded: bool) -> Iterator[PublishedNumber]:
    """The published numbers in the order of the paper, each with its scenario."""
    for table in raw["tables"]:
        of_columns = [fit.any_scenario(table, column) for column in table["columns"]]
        for row in chain.from_iterable(map(fit.variants, table["rows"])):
            cells = str(row["values"]).split()
            for column, cell, anywhere in zip(table["columns"], cells, of_columns, strict=True):
                title = DATA[column["data"]][0]
                label = f"{title}, {column['label']}" if "label" in column else title
                for name, printed in zip(column.get("measures", table.get("measures")), cell.split("/"), strict=False):
                    counted = "graded" if graded and raw.get("graded") and name == "accuracy" else name
                    yield PublishedNumber(
                        table=table["model"],
                        row=row["label"],
                        variant=row.get("variant", ""),
                        column=label,
                        measure=measure(counted).name,
                        scenario=fit.scenario(row, column),
                        **_parse_number(printed, raw["scale"]),
                        row_differs=fit.of_row(table, row, counted),
                        column_differs=fit.of_column(column, anywhere, counted),
                    )


def _parse_number(text: str, scale: float) -> dict[str, Any]:
    """A number as a file has it: `68.5`, `<5`, `12.1\u00b10.4`, or `-` for one that is drawn and not printed."""
    value, _, spread = text.partition("\u00b1")
    bound = value[0] if value[0] in "<>" else ""
    return {
        "value": None if value == "-" else round(float(value.removeprefix(bound)) / scale, 6),
        "bound": bound,
        "spread": round(float(spread) / scale, 6) if spread else None,
    }


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
class StreamPreset(PaperTable):
    """A paper's table over time.

    Attributes:
        methods: By the paper's name, and its variant if it has several, the methods that the generator can run.
        attacks: By the paper's name, option string of the attack and its place from 1; see `streams.ATTACKS`.
        published: Every number of the table, in its order.
        lacking: By method, why it is not measured.
        differs: Differences that affect every number, each `code: detail`.
        method_differs, attack_differs: The same by key of `methods` and of `attacks`.
    """

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
        of_parts = chain.from_iterable([*self.method_differs.values(), *self.attack_differs.values()])
        none = (f"none: {method} {why}" for method, why in self.lacking.items())
        return [*self.introduction, *self.differs, *dict.fromkeys(of_parts), *none]


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
        **_of_file(name, raw),
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
            for counted, value in zip(_COUNTED, cell.split("/"), strict=False):
                numbers.append(PublishedOverTime(row["label"], method, counted, round(float(value) / 100, 6)))
    return numbers


def _differs(raw: Mapping[str, Any], generator: str, nli: str) -> list[str]:
    theirs = raw["used"]
    models = {"generator": generator, "nli": nli}
    differences = [
        f"{kind}: {ours}, theirs {theirs[kind]}" for kind, ours in models.items() if not same_model(ours, theirs[kind])
    ]
    return [*differences, "judge: accuracy by the reply's words, theirs by an LLM", *raw.get("differs", ())]
