"""A paper's numbers beside the measured ones, each row and column with what is not as in the paper.

One measurement is printed once. Where the same scenario stands for several of the paper's rows (its language models,
its retrievers), the paper's rows come first and the measurement follows in a row of its own, one for each variant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import mean, stdev

from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.presets import Preset, PublishedNumber
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report.model import Report
from unpoison.bench.report.tables import figure, heading
from unpoison.report.document import Table

__all__ = ["SAME", "Beside", "beside", "comparison_tables", "format_measurement", "measure_meanings"]

SAME = "same setting as the paper?"
"""The heading of the column, and of the last row, that say in what a row or a column is not the paper's."""

Row = tuple[str, str]
"""A table of the paper (mostly its language model) and a row of it, with its variant."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Rows of the paper that one measured row stands for.

    Attributes:
        numbers: The paper's numbers, by row and column.
        differs: In what the measured row is not the paper's, or why none was measured; empty where in nothing.
    """

    numbers: Mapping[Row, Mapping[str, PublishedNumber]]
    differs: tuple[str, ...]

    @property
    def columns(self) -> Mapping[str, PublishedNumber]:
        """The numbers of the first row by column; all rows have the same scenarios."""
        return next(iter(self.numbers.values()))

    @property
    def firsts(self) -> tuple[PublishedNumber, ...]:
        """The first number of each row."""
        return tuple(next(iter(numbers.values())) for numbers in self.numbers.values())


def measure_meanings(preset: Preset) -> list[str]:
    """How each measure of a preset counts, one sentence each."""
    names = dict.fromkeys(number.measure for number in preset.published)
    return [f"{MEASURES[name].title}: {MEASURES[name].meaning}" for name in names]


def beside(preset: Preset) -> dict[tuple[str, tuple[str, ...]], list[Beside]]:
    """By measure and columns, the paper's rows, those that one measurement stands for together."""
    rows: dict[tuple[str, Row], dict[str, PublishedNumber]] = {}
    for number in preset.published:
        rows.setdefault((number.measure, (number.table, number.label)), {})[number.column] = number
    groups: dict[tuple[str, tuple[str, ...]], dict[object, list[Row]]] = {}
    for (measure, row), numbers in rows.items():
        scenarios = tuple(number.scenario for number in numbers.values())
        alone = row if not any(scenarios) else scenarios
        groups.setdefault((measure, tuple(numbers)), {}).setdefault(alone, []).append(row)
    return {
        key: [_together({row: rows[key[0], row] for row in members}) for members in by_scenario.values()]
        for key, by_scenario in groups.items()
    }


def _together(numbers: Mapping[Row, Mapping[str, PublishedNumber]]) -> Beside:
    every = [number for row in numbers.values() for number in row.values()]
    return Beside(numbers, tuple(dict.fromkeys(difference for number in every for difference in number.row_differs)))


def comparison_tables(report: Report) -> list[Table]:
    """The preset's tables, each published number with the one measured for it.

    Where there was no generator, an ASR has no counterpart; what the screening left of the poison stands in its place.
    """
    if report.preset is None:
        return []
    by_scenario = {summary.scenario: summary for summary in report.summaries}
    tables = []
    for (measure, columns), groups in beside(report.preset).items():
        names = dict.fromkeys(table for group in groups for table, _ in group.numbers)
        rows, printed = list[tuple[str, ...]](), set[tuple[Row, ...]]()
        for group in groups:
            theirs = tuple((number.table, number.row) for number in group.firsts)
            rows.extend(_rows(report.preset, group, columns, by_scenario, len(names) > 1, theirs in printed))
            printed.add(theirs)
        rows.append(_last(groups, columns))
        title = f"{report.preset.source}, {' / '.join(names)}: {heading(MEASURES[measure])}, published \u2192 measured"
        tables.append(Table(title, ("", *columns, SAME), tuple(rows)))
    return tables


def _rows(
    preset: Preset,
    group: Beside,
    columns: Sequence[str],
    by_scenario: Mapping[Scenario, Summary],
    named: bool,
    again: bool,
) -> Iterator[tuple[str, ...]]:
    """One row, or the paper's rows, unless they were printed for another variant, and what was measured for them."""
    figures = [format_measurement(preset, group.columns[column], by_scenario) for column in columns]
    differs = "; ".join(group.differs) or "yes"
    if len(group.numbers) == 1:
        ((table, row), numbers), *_ = group.numbers.items()
        cells = [
            numbers[column].printed + (f" \u2192 {ours}" if ours else "") for column, ours in zip(columns, figures)
        ]
        yield (f"{table}: {row}" if named else row, *cells, differs)
        return
    for numbers, first in zip(group.numbers.values(), group.firsts, strict=True):
        if not again:
            yield (f"{first.table}: {first.row}", *(numbers[column].printed for column in columns), "")
    names = dict.fromkeys(row for _, row in group.numbers)
    yield (f"\u2192 measured once: {' / '.join(names)}", *(ours or "-" for ours in figures), differs)


def _last(groups: Sequence[Beside], columns: Sequence[str]) -> tuple[str, ...]:
    """In what each column is not the paper's."""
    differences = {
        column: dict.fromkeys(
            difference
            for group in groups
            for row in group.numbers.values()
            for difference in row[column].column_differs
        )
        for column in columns
    }
    return (SAME, *("; ".join(differences[column]) or "yes" for column in columns), "")


def format_measurement(preset: Preset, number: PublishedNumber, by_scenario: Mapping[Scenario, Summary]) -> str:
    """The measured figure with its interval, with several seeds their mean and spread; "" where there is none."""
    estimates = preset.by_seed(number, by_scenario)
    if not estimates or number.scenario is None:
        return ""
    kind = MEASURES[number.measure]
    values = [estimate.value for estimate in estimates if not isnan(estimate.value)]
    if len(values) > 1:
        scale, digits = (100, 1) if kind.unit == "share" else (1, 2)
        spread = f"{scale * mean(values):.{digits}f} \u00b1 {scale * stdev(values):.{digits}f}"
        return f"{spread} ({len(values)} seeds)"
    if values:
        return figure(estimates[0], kind)
    summary = by_scenario.get(number.scenario)
    if summary is not None and number.measure.startswith("asr") and summary.applies("poisoned"):
        return f"poisoned {figure(summary['poisoned'], MEASURES['poisoned'])}"
    return ""
