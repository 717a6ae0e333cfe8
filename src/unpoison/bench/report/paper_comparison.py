"""A paper's numbers beside the measured ones; short codes in each row and column name the differences.

One measurement is printed once: if the same scenario serves several rows of the paper (its language models), the later
rows say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from statistics import mean, stdev

from unpoison.bench.evaluation.differences import codes
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.presets import Preset, PublishedNumber
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.report.model import Report
from unpoison.bench.report.tables import figure, heading
from unpoison.report.document import Table

__all__ = ["SAME", "comparison_tables", "format_measurement"]

SAME = "same setting as the paper?"
"""The heading of the column, and of the last row, with the codes of the differences."""

ABOVE = "above"
"""For a measurement that is printed further up."""


def comparison_tables(report: Report) -> Iterator[Table]:
    """The preset's tables, each published number with the one measured for it.

    Without a generator an ASR has no counterpart; the share of poisoned contexts takes its place.
    """
    preset = report.preset
    if preset is None:
        return
    tables: dict[tuple[str, str, tuple[str, ...]], dict[str, dict[str, PublishedNumber]]] = {}
    rows: dict[tuple[str, str, str], dict[str, PublishedNumber]] = {}
    for number in preset.published:
        rows.setdefault((number.measure, number.table, number.label), {})[number.column] = number
    for (name, table, label), numbers in rows.items():
        tables.setdefault((name, table, tuple(numbers)), {})[label] = numbers
    shown = set[tuple[Scenario, str]]()
    for (name, table, columns), by_label in tables.items():
        cells = [_row(report, preset, label, numbers, shown) for label, numbers in by_label.items()]
        last = [codes(d for row in by_label.values() for d in row[column].column_differs) for column in columns]
        title = f"{preset.source}, {table}: {heading(MEASURES[name])}, published \u2192 measured"
        notes = {report.note(n.scenario) for row in by_label.values() for n in row.values() if n.scenario}
        yield Table(title, ("", *columns, SAME), (*cells, (SAME, *last, "")), note=" ".join(sorted(notes)))


def _row(
    report: Report, preset: Preset, label: str, numbers: dict[str, PublishedNumber], shown: set[tuple[Scenario, str]]
) -> tuple[str, ...]:
    cells = []
    for number in numbers.values():
        ours = format_measurement(report, preset, number)
        if ours and number.scenario is not None:
            key = (number.scenario, number.measure)
            ours = ABOVE if key in shown else ours
            shown.add(key)
        cells.append(f"{number.printed} \u2192 {ours}" if ours else number.printed)
    return (label, *cells, codes(difference for number in numbers.values() for difference in number.row_differs))


def format_measurement(report: Report, preset: Preset, number: PublishedNumber) -> str:
    """The measured figure with its interval, with several seeds their mean and spread; "" if there is none."""
    by_scenario = report.by_scenario
    estimates = preset.by_seed(number, by_scenario)
    if not estimates or number.scenario is None:
        return ""
    kind = MEASURES[number.measure]
    values = [estimate.value for estimate in estimates if not isnan(estimate.value)]
    if len(values) > 1:
        scale, digits = (100, 1) if kind.unit == "share" else (1, 2)
        return f"{scale * mean(values):.{digits}f} \u00b1 {scale * stdev(values):.{digits}f} ({len(values)} seeds)"
    if values:
        return figure(estimates[0], kind)
    summary = by_scenario.get(number.scenario)
    if summary is not None and number.measure.startswith("asr") and summary.applies("poisoned"):
        return f"poisoned {figure(summary['poisoned'], MEASURES['poisoned'])}"
    return ""
