"""The papers' tables by name: the published numbers, and the scenarios that measure the same thing here.

A preset is a YAML file in `unpoison/data/presets`, and its tables are the paper's. Each row and column names the
fields of a `Scenario`; together they make the scenario behind a published number. A row whose defense this package
does not have is printed and not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unpoison.evaluation.crafting import stand_in
from unpoison.evaluation.differences import (
    Differences,
    available,
    has_gradient,
    in_words,
    measurable,
    needs_replies,
    same_model,
)
from unpoison.evaluation.intervals import Estimate
from unpoison.evaluation.measures import measure
from unpoison.evaluation.preset_files import preset_file, preset_files
from unpoison.evaluation.scenarios import Scenario
from unpoison.evaluation.sources import DATA, Sources
from unpoison.evaluation.summary import Summary
from unpoison.styles import Style

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
        value: The published number in the unit of the measure, a share or a score; None where the paper draws it
            without printing it.
        scenario: What is measured for it; None where this machine or package cannot.
        bound: "<" or ">" where the paper says only that the value is below or above; "" where it prints it.
        spread: The standard deviation over the paper's seeds, in the unit of the value; None where it prints none.
        row_differs: In what the row is not measured as the paper did, or why it is not measured; empty for nothing.
        column_differs: The same for the column.
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
        name: What users type.
        title: What the table shows.
        source: The paper and the table.
        about: How the scenarios follow the paper, in a sentence or two.
        used: What the paper used: data, encoder, retriever, generator, NLI model.
        scenarios: What to run; empty when something is lacking for all of it.
        published: Every number of the table, in its order.
        substitutions: What stands in for what the paper used, one sentence each.
        lacks: What cannot be measured and why, one sentence each.
        seeds: With each of them everything is measured; the scenarios of `published` have the first.
    """

    name: str
    title: str
    source: str
    about: str
    used: Mapping[str, str]
    scenarios: tuple[Scenario, ...]
    published: tuple[PublishedNumber, ...]
    substitutions: tuple[str, ...]
    lacks: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)

    @property
    def prompts(self) -> tuple[str, ...]:
        """The styles in which the generator is asked, one sentence each."""
        styles = dict.fromkeys(one.style for one in self.scenarios if one.generator is not None)
        return tuple(f"{style}: {Style.of(style).told}" for style in styles)

    def by_seed(self, one: PublishedNumber, by_scenario: Mapping[Scenario, Summary]) -> list[Estimate]:
        """What was measured for a published number with each seed, as far as it was."""
        if one.scenario is None:
            return []
        every = (replace(one.scenario, seed=seed) for seed in self.seeds)
        return [by_scenario[scenario][one.measure] for scenario in every if scenario in by_scenario]

    def describe(self) -> str:
        """What it is, what the paper used, what stands in for it and what is lacking, line by line."""
        lines = [f"{self.source}: {self.title}", self.about]
        lines += [f"the paper's {what}: {value}" for what, value in self.used.items()]
        lines += [f"prompts: {sentence}" for sentence in self.prompts]
        lines += [f"instead: {sentence}" for sentence in self.substitutions]
        lines += [f"lacking: {sentence}" for sentence in self.lacks]
        return "\n".join(line for line in lines if line)


def preset_names() -> list[str]:
    """Every preset, sorted."""
    return preset_files("presets")


def load_preset(
    name: str,
    *,
    data: str | Path | None = None,
    encoder: str = "lexical",
    generator: str | None = None,
    nli: str | None = None,
    seed: int | Sequence[int] = 0,
    limit: int | None = None,
    grader: str | None = None,
) -> Preset:
    """Read a preset and fit it to what this machine has.

    Args:
        name: One of `preset_names()`.
        data: A folder in the shared format (`nq_poisoned.jsonl`, ..., `corpus.jsonl`); or anything that `load` takes,
            which then stands in for the first data set of the table; None for the built-in sample.
        encoder: Stands in for the paper's encoder and retriever.
        generator: Stands in for the paper's language models; None measures the screening only.
        nli: Stands in for the paper's NLI model.
        seed: Of every scenario; several measure everything with each, and tables then have mean and spread.
        limit: Only the first questions of each data set.
        grader: Who grades replies as the paper's grader did, where it had one; None goes by the words of the replies.

    Raises:
        UnknownNameError: No such preset.
        InputError: A data file that cannot be read.
    """
    raw = preset_file("presets", name)
    sources = Sources(raw["data"], data, limit)
    retriever = "bm25" if encoder == "lexical" else encoder
    seeds = (seed,) if isinstance(seed, int) else tuple(dict.fromkeys(seed))
    models = {"encoder": encoder, "retriever": retriever, "generator": generator, "nli": nli, "seed": seeds[0]}
    published = tuple(_numbers(raw, sources, {**models, "limit": limit}, graded=grader is not None))
    first = dict.fromkeys(one.scenario for one in published if one.scenario is not None)
    scenarios = dict.fromkeys(replace(scenario, seed=seed) for seed in seeds for scenario in first)
    instead = dict.fromkeys((scenario.attack, stand_in(scenario)) for scenario in scenarios)
    return Preset(
        name=name,
        title=raw["title"],
        source=raw["source"],
        about=raw.get("about", ""),
        used=raw["used"],
        scenarios=tuple(dict.fromkeys([scenario.twin for scenario in scenarios] + list(scenarios))),
        published=published,
        substitutions=(
            *_substitutions(raw, sources, models),
            *(f"attack: {attack} is written by {what}, not by a language model" for attack, what in instead if what),
        ),
        lacks=tuple(_lacks(raw, sources, models)),
        seeds=seeds,
    )


def _numbers(
    raw: Mapping[str, Any], sources: Sources, models: Mapping[str, Any], *, graded: bool
) -> Iterator[PublishedNumber]:
    """The published numbers in the order of the paper, each with its scenario."""
    differences = Differences(raw, sources, models)
    for table in raw["tables"]:
        of_columns = [_anywhere(raw, table, column, sources, models) for column in table["columns"]]
        for row in table["rows"]:
            cells = str(row["values"]).split()
            for column, cell, anywhere in zip(table["columns"], cells, of_columns, strict=True):
                scenario = _scenario(raw.get("base", {}), row, column, sources, models)
                title = DATA[column["data"]][0]
                label = f"{title}, {column['label']}" if "label" in column else title
                measures = column.get("measures", table.get("measures"))
                for measure_of_paper, printed in zip(measures, cell.split("/"), strict=False):
                    name = (
                        "graded"
                        if graded and raw.get("graded") and measure_of_paper == "accuracy"
                        else measure_of_paper
                    )
                    value, _, spread = printed.partition("\u00b1")
                    bound = value[0] if value[0] in "<>" else ""
                    number = None if value == "-" else round(float(value.removeprefix(bound)) / raw["scale"], 6)
                    yield PublishedNumber(
                        table=table["model"],
                        row=row["label"],
                        column=label,
                        measure=measure(name).name,
                        value=number,
                        scenario=scenario,
                        bound=bound,
                        spread=round(float(spread) / raw["scale"], 6) if spread else None,
                        row_differs=differences.of_row(table, row, name),
                        column_differs=differences.of_column(column, anywhere, name),
                    )


def _anywhere(
    raw: Mapping[str, Any],
    table: Mapping[str, Any],
    column: Mapping[str, Any],
    sources: Sources,
    models: Mapping[str, Any],
) -> Scenario | None:
    """What is measured in a column, in the first row that can be."""
    scenarios = (_scenario(raw.get("base", {}), row, column, sources, models) for row in table["rows"])
    return next((one for one in scenarios if one is not None), None)


def _scenario(
    base: Mapping[str, Any],
    row: Mapping[str, Any],
    column: Mapping[str, Any],
    sources: Sources,
    models: Mapping[str, Any],
) -> Scenario | None:
    """What is measured for one cell of the table; None where something is missing."""
    if column["data"] not in sources.fields or not column.get("measured", True):
        return None
    if column.get("gradients") and not has_gradient(models["encoder"]):
        return None
    if measurable(row, models["generator"]):
        return None
    stated = {**base, **column, **row}
    own = {
        key: value for key, value in stated.items() if key in Scenario.__slots__ and key not in ("data", "generator")
    }
    return Scenario.from_dict({**models, **own, **sources.fields[column["data"]]})


def _substitutions(raw: Mapping[str, Any], sources: Sources, models: Mapping[str, Any]) -> Iterator[str]:
    yield from sources.substitutions
    for kind in ("encoder", "retriever", "generator", "nli"):
        theirs, ours = raw["used"].get(kind), models[kind] or ("lexical" if kind == "nli" else None)
        if theirs and ours and not same_model(ours, theirs):
            yield f"{kind}: {in_words(ours)} instead of {theirs}"
    yield from (one if isinstance(one, str) else one["say"] for one in raw.get("differs", ()))


def _lacks(raw: Mapping[str, Any], sources: Sources, models: Mapping[str, Any]) -> Iterator[str]:
    yield from sources.lacks
    measures = {name for table in raw["tables"] for name in table.get("measures", ())}
    rows = [row for table in raw["tables"] for row in table["rows"]]
    columns = [column for table in raw["tables"] for column in table["columns"]]
    if models["generator"] is None:
        needing = dict.fromkeys(row["label"] for row in rows if row.get("generator") and available(row))
        if any(map(needs_replies, measures)) and any(available(row) and not row.get("generator") for row in rows):
            yield "without a generator (-g) there are no replies: the screening is measured, ASR and accuracy are not"
        if needing:
            yield f"without a generator (-g) these are not measured: {', '.join(needing)}"
    elif copying := dict.fromkeys(
        row["label"] for row in rows if available(row) and measurable(row, models["generator"])
    ):
        yield f"a reader only copies; these need a generator that writes and are not measured: {', '.join(copying)}"
    if any(c.get("gradients") for c in columns) and not has_gradient(models["encoder"]):
        labels = dict.fromkeys(column["label"] for column in columns if column.get("gradients"))
        yield f"{', '.join(labels)} follows an encoder's gradient, which {models['encoder']} has not: give -e minilm"
    for label, option in dict.fromkeys((row["label"], row["needs"]) for row in rows if "needs" in row):
        yield f"printed and not measured, for it needs a checkpoint: {label}; measure it apart with {option}"
    unknown = dict.fromkeys(row["label"] for row in rows if not available(row) and "needs" not in row)
    if unknown:
        yield f"printed and not measured, for this package does not have them: {', '.join(unknown)}"
    yield from raw.get("lacks", ())
