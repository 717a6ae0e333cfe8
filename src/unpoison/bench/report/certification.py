"""Certified accuracy: how many questions are answered rightly, and provably so whatever m of the passages become.

Counted without an attack: an answer that is right and has a guarantee of m is right under every attack on m passages,
also those that nobody thought of. Beside it stands what remains under the attacks that were run, which is never less
for the same m as long as the proof holds: poisons that only join or replace passages are changes to that many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.records import Cell, Record
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.report.model import Report
from unpoison.bench.report.tables import figure
from unpoison.report.charts import Lines, Series
from unpoison.report.document import Table

__all__ = ["Attacked", "Certified", "certify", "guarantee_figures", "guarantee_groups", "guarantee_tables"]


@dataclass(frozen=True, slots=True)
class Attacked:
    """The lowest accuracy under the attacks that were run with one number of poisons, and under which."""

    attack: str
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class Certified:
    """What is proved of one defense on one data set.

    Attributes:
        id: The clean cell's.
        scenario: That cell's.
        certified: For m = 0, 1, ... to half of `k`: the share of questions that are answered rightly with a guarantee
            of m or more; m = 0 is the accuracy. Empty where the defense has no proof.
        accuracy: Without an attack.
        attacked: By the number of poisons.
    """

    id: str
    scenario: Scenario
    certified: tuple[Estimate, ...]
    accuracy: Estimate
    attacked: Mapping[int, Attacked]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values: each share with its interval."""
        return {
            "id": self.id,
            "certified": [_bounds(estimate) for estimate in self.certified],
            "accuracy": _bounds(self.accuracy),
            "attacked": {str(n): {"attack": a.attack, **_bounds(a.accuracy)} for n, a in self.attacked.items()},
        }


def certify(cells: Sequence[Cell], level: float = 0.95) -> list[Certified]:
    """The clean cells with answers, in order, if any of them has a guarantee; none else.

    Args:
        cells: Of one run, complete or not.
        level: Of the intervals (Wilson's).
    """
    clean = [cell for cell in cells if cell.scenario.clean and any(r.answer is not None for r in cell.usable)]
    if not any(record.guarantee is not None for cell in clean for record in cell.usable):
        return []
    return [_certify_cell(cell, cells, level) for cell in clean]


def _certify_cell(cell: Cell, cells: Sequence[Cell], level: float) -> Certified:
    answered = [record for record in cell.usable if _has_answer(record)]
    proved = any(record.guarantee is not None for record in answered)
    steps = range(cell.scenario.k // 2 + 1) if proved else ()
    certified = tuple(
        wilson(
            sum(_right(r) and (r.guarantee or 0) >= m for r in answered),
            len(answered),
            level,
        )
        for m in steps
    )
    return Certified(cell.id, cell.scenario, certified, _accuracy(cell, level), _worst_attacks(cell, cells, level))


def _worst_attacks(cell: Cell, cells: Sequence[Cell], level: float) -> dict[int, Attacked]:
    worst: dict[int, Attacked] = {}
    for attacked_cell in cells:
        if attacked_cell.scenario.clean or attacked_cell.scenario.twin != cell.scenario:
            continue
        attacked = Attacked(attacked_cell.scenario.attack, _accuracy(attacked_cell, level))
        worst_yet = worst.get(attacked_cell.scenario.poisons)
        if attacked.accuracy.count and (worst_yet is None or attacked.accuracy.value < worst_yet.accuracy.value):
            worst[attacked_cell.scenario.poisons] = attacked
    return dict(sorted(worst.items()))


def _accuracy(cell: Cell, level: float) -> Estimate:
    answered = [record for record in cell.usable if _has_answer(record)]
    return wilson(sum(map(_right, answered)), len(answered), level)


def _has_answer(record: Record) -> bool:
    """Whether it has an answer, and it is known what is right."""
    return MEASURES["accuracy"].parts(record)[1] > 0


def _right(record: Record) -> bool:
    return MEASURES["accuracy"].parts(record)[0] > 0


def _bounds(estimate: Estimate) -> dict[str, Any]:
    if not estimate.count:
        return {"share": None, "low": None, "high": None, "questions": 0}
    return {"share": estimate.value, "low": estimate.low, "high": estimate.high, "questions": estimate.count}


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
