"""What a report says of guarantees: certified accuracy by the number of planted passages, as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator

from unpoison.bench.evaluation.certified import Certified, certify
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.report.figures import Lines, Series
from unpoison.bench.report.model import Report
from unpoison.bench.report.tables import Table, figure

__all__ = ["guarantee_figures", "guarantee_groups", "guarantee_tables"]

SHOWN = (0, 1, 2, 3, 5, 10, 25)
"""The numbers of planted passages that a table has columns for; the picture and the JSON export have all."""

ACCURACY = MEASURES["accuracy"]

HINT = "answered rightly, and proved to stay so whatever any m of the passages become"


def guarantee_groups(report: Report) -> list[tuple[Scenario, list[Certified]]]:
    """Clean cells that differ in the defense only, the baseline first; none where nothing is guaranteed."""
    certified = {cell.id: cell for cell in certify(report.run.cells)}
    groups = ((group, [certified[s.id] for s in cells if s.id in certified]) for group, cells in report.groups())
    return [(group, cells) for group, cells in groups if cells]


def guarantee_tables(report: Report) -> list[Table]:
    """One table for each data set and setting: a row for each defense."""
    tables = []
    for scenario, cells in guarantee_groups(report):
        proved = [m for m in SHOWN if m <= scenario.k // 2]
        planted = sorted({count for cell in cells for count in cell.attacked})
        columns = (
            "defense",
            *(f"certified, m = {m}" if m else "no attack" for m in proved),
            *(f"worst attack x {count}" for count in planted),
        )
        rows = tuple(
            (
                cell.scenario.defense,
                *(_guarantee_cell(cell, m) for m in proved),
                *(_attack_cell(cell, count) for count in planted),
            )
            for cell in cells
        )
        title = f"Certified accuracy %: {report.caption(scenario)}, k = {scenario.k}"
        tables.append(Table(title, columns, rows, ("", *[HINT] * len(proved))))
    return tables


def guarantee_figures(report: Report) -> Iterator[Lines]:
    """For each table a picture: certified accuracy over m."""
    for scenario, cells in guarantee_groups(report):
        series = tuple(
            Series(cell.scenario.defense, report.defenses[cell.scenario.defense], points)
            for cell in cells
            if (points := tuple((m, estimate) for m, estimate in enumerate(cell.certified) if estimate.count))
        )
        if series:
            title = f"{report.caption(scenario)}, k = {scenario.k}"
            yield Lines(title, "planted passages m", "right and guaranteed", series)


def _guarantee_cell(cell: Certified, m: int) -> str:
    if m == 0:
        return figure(cell.accuracy, ACCURACY)
    return figure(cell.certified[m], ACCURACY) if cell.certified else "no proof"


def _attack_cell(cell: Certified, count: int) -> str:
    worst = cell.attacked.get(count)
    return "-" if worst is None else f"{figure(worst.accuracy, ACCURACY)} {worst.attack}"
