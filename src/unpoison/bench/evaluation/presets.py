"""The papers' tables by name: the published numbers, and the scenarios that measure the same thing here.

A preset is a YAML file in `unpoison/data/presets`, and its tables are the paper's. Each row and column names the
fields of a `Scenario`; together they make the scenario behind a published number. A row whose defense this package
does not have is printed and not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.differences import Differences, codes
from unpoison.bench.evaluation.measures import measure
from unpoison.bench.evaluation.preset_data import DATA, PaperData, preset_file, preset_files
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import Summary

__all__ = ["DATA", "Preset", "PublishedNumber", "load_preset", "preset_names"]

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
class Preset:
    """A paper's table, ready to be measured again.

    Attributes:
        name: Its name in options.
        title: The title of the table.
        source: The paper and the table.
        about: How the scenarios follow the paper, in a sentence or two.
        used: The paper's data, encoder, retriever, generator and NLI model.
        scenarios: The scenarios; empty if none can be measured.
        published: Every number of the table, in its order.
        lacks: Missing data, one sentence each.
        seeds: With each of them everything is measured; the scenarios of `published` have the first.
    """

    name: str
    title: str
    source: str
    about: str
    used: Mapping[str, str]
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
        used = "; ".join(f"{what} {value}" for what, value in self.used.items())
        lines = [f"{self.source}: {self.title}", self.about.strip(), f"the paper used: {used}", self.stamp]
        return [*filter(None, lines), *self.differences, *(f"missing: {sentence}" for sentence in self.lacks)]


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
        name=name,
        title=raw["title"],
        source=raw["source"],
        about=raw.get("about", ""),
        used=raw["used"],
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
