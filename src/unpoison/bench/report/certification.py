"""Certified accuracy: the share of questions answered correctly, provably under any change of m passages.

Counted without an attack: an answer that is right and has a guarantee of m is right under every attack on m passages.
"""

from __future__ import annotations

from collections.abc import Iterator

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.evaluation.measures import MEASURES, counted
from unpoison.bench.evaluation.records import Cell
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.report.model import Report
from unpoison.bench.report.tables import figure
from unpoison.report.document import Table

__all__ = ["certified_accuracy", "guarantee_tables"]

SHOWN = (0, 1, 2, 3, 5, 10, 25)
"""The numbers of changed passages that a table has columns for; the JSON has all."""

HINT = "answered rightly, and proved to stay so under any change of m passages"


def certified_accuracy(cell: Cell) -> tuple[Estimate, ...]:
    """For m = 0, 1, ... to half of `k`: the share of questions answered rightly with a guarantee of m or more.

    Empty for an attacked cell, and where the defense proves nothing.
    """
    if not cell.scenario.clean or not any(record.guarantee is not None for record in cell.usable):
        return ()
    parts = MEASURES["accuracy"].parts
    records = [record for record in counted("accuracy", cell.records) if parts(record)[1]]
    return tuple(
        wilson(sum(parts(r)[0] > 0 and (r.guarantee or 0) >= m for r in records), len(records))
        for m in range(cell.scenario.k // 2 + 1)
    )


def guarantee_tables(report: Report) -> list[Table]:
    """One table for each data set and setting: a row for each defense; none if nothing is guaranteed."""
    tables = []
    for scenario, rows in _groups(report):
        steps = [m for m in SHOWN if m <= scenario.k // 2]
        columns = ("defense", *(f"certified, m = {m}" if m else "no attack" for m in steps))
        cells = tuple((name, *(figure(shares[m], MEASURES["accuracy"]) for m in steps)) for name, shares in rows)
        title = f"Certified accuracy %: {report.caption(scenario)}, k = {scenario.k}"
        tables.append(Table(title, columns, cells, ("", *[HINT] * len(steps)), note=report.note(scenario)))
    return tables


def _groups(report: Report) -> Iterator[tuple[Scenario, list[tuple[str, tuple[Estimate, ...]]]]]:
    """Settings with the defenses that prove something."""
    for scenario, group in report.groups():
        shares = [(s.scenario.defense, certified_accuracy(report.cells[s.id])) for s in group]
        if rows := [row for row in shares if row[1]]:
            yield scenario, rows
