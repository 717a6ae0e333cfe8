"""From records to figures: each cell with its intervals, and every two defenses compared on the same questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isnan, nan
from typing import Any

import numpy as np

from unpoison.algorithms.intervals import Difference, Estimate, holm, paired_bootstrap, paired_shares
from unpoison.core.codec import JsonRecord, to_row
from unpoison_lab.evaluation.measures import MEASURES, Measure, counted, measure
from unpoison_lab.evaluation.runs import Cell, Record
from unpoison_lab.evaluation.scenarios import Scenario

__all__ = ["COMPARED", "Comparison", "Summary", "compare", "summarise"]

COMPARED = ("poisoned", "asr", "accuracy", "gold_kept", "clean_kept")
"""The measures in which defenses are compared unless others are named."""

SIGNIFICANT = 0.05
"""Two defenses differ if the corrected p-value is lower."""


@dataclass(frozen=True, slots=True)
class Summary(JsonRecord):
    """The figures of one cell.

    Attributes:
        id: The cell's.
        scenario: The scenario.
        expected: How many questions it asks.
        done: How many have a record, failed ones included.
        failed: How many of those failed.
        figures: By the name of the measure, each with its interval; nan if it does not apply.
        poison_ranks: How often poison stood on each 1-based rank of the defense's order, dropped passages last.
        gold_ranks: The same for the annotated passages.
        twin: The id of the clean cell with everything else equal, or None.
        problems: Errors and their numbers, most frequent first.
    """

    id: str
    scenario: Scenario
    expected: int
    done: int
    failed: int
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    poison_ranks: tuple[int, ...] = ()
    gold_ranks: tuple[int, ...] = ()
    twin: str | None = None
    problems: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.done == self.expected and not self.failed

    def __getitem__(self, name: str) -> Estimate:
        """A figure by the name of its measure."""
        return self.figures[name]

    def applies(self, name: str) -> bool:
        """Whether a figure has any questions."""
        return self.figures[name].defined


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two defenses on the same questions.

    Attributes:
        first, second: The ids of their cells.
        scenario: The common scenario, with the first defense.
        defenses: The option strings of the first and of the second.
        measure: The measure's name.
        difference: The second's figure minus the first's, paired by question: the mean of the per-question values. Its
            p-value is McNemar's exact one where every value is a yes or no, else the bootstrap's.
        corrected: That p-value after Holm's correction for all pairs of defenses of the scenario, in this measure.
    """

    first: str
    second: str
    scenario: Scenario
    defenses: tuple[str, str]
    measure: str
    difference: Difference
    corrected: float = nan

    @property
    def differs(self) -> bool:
        """Whether the corrected p-value is below 0.05; never if the 95 % interval contains 0."""
        return self.corrected < SIGNIFICANT

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; None stands for nan."""
        return {**to_row(self), "corrected": None if isnan(self.corrected) else self.corrected}


def summarise(cells: Sequence[Cell], *, level: float = 0.95, seed: int = 0) -> list[Summary]:
    """The figures of each cell, in the order given. Cells without any usable record have figures that are all nan.

    Args:
        cells: Of one run, complete or not.
        level: Of the intervals.
        seed: Of the bootstrap.
    """
    clean = {cell.scenario: cell.id for cell in cells if cell.scenario.clean}
    return [_summary(cell, clean.get(cell.scenario.twin), level, seed) for cell in cells]


def compare(
    cells: Sequence[Cell], names: Iterable[str] = COMPARED, *, level: float = 0.95, seed: int = 0
) -> list[Comparison]:
    """Every two defenses of the same scenario, on the questions that both have a figure for.

    A question that one of them failed on counts as no answer for accuracy, and not at all for the attack's success.

    Raises:
        UnknownNameError: No such measure.
    """
    measures = [measure(name) for name in names]
    groups: dict[Scenario, list[Cell]] = {}
    for cell in cells:
        if cell.records:
            groups.setdefault(replace(cell.scenario, defense=""), []).append(cell)
    comparisons = list[Comparison]()
    for group in groups.values():
        own = list[Comparison]()
        for first, second in combinations(group, 2):
            compared = (_comparison(first, second, kind, level, seed) for kind in measures)
            own.extend(comparison for comparison in compared if comparison.difference.count)
        comparisons.extend(_holm_correct(own))
    return comparisons


def _holm_correct(own: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one scenario; those of one measure are one family."""
    families: dict[str, list[float]] = {}
    for comparison in own:
        families.setdefault(comparison.measure, []).append(comparison.difference.probability)
    corrected = {name: iter(holm(values)) for name, values in families.items()}
    return [replace(comparison, corrected=next(corrected[comparison.measure])) for comparison in own]


def _summary(cell: Cell, twin: str | None, level: float, seed: int) -> Summary:
    usable = cell.usable
    figures = {name: measure.estimate(counted(name, cell.records), level, seed) for name, measure in MEASURES.items()}
    size = max((record.size for record in usable), default=0)
    problems = Counter(record.error or "" for record in cell.failures)
    failures = [f"{count} of {cell.expected}: {error}" for error, count in problems.most_common()]
    return Summary(
        id=cell.id,
        scenario=cell.scenario,
        expected=cell.expected,
        done=len(cell.records),
        failed=len(cell.failures),
        figures=figures,
        poison_ranks=_ranks(((record.order, record.poison) for record in usable), size),
        gold_ranks=_ranks(((record.order, record.gold) for record in usable), size),
        twin=twin,
        problems=(*([] if cell.error is None else [cell.error]), *failures),
    )


def _ranks(orders: Iterable[tuple[Sequence[int], Sequence[int]]], size: int) -> tuple[int, ...]:
    """How often some positions have the ranks 1 to `size` in an order (GRADA, Figure 4)."""
    counts = Counter(rank for order, positions in orders for rank, index in enumerate(order) if index in positions)
    return tuple(counts[rank] for rank in range(size))


def _pair_records(first: Cell, second: Cell, name: str) -> list[tuple[Record, Record]]:
    others = {record.example: record for record in counted(name, second.records)}
    own = counted(name, first.records)
    pairs = [(record, others[record.example]) for record in own if record.example in others]
    return [pair for pair in pairs if not any(map(MEASURES[name].unknown, pair))]


def _comparison(first: Cell, second: Cell, measure: Measure[Record], level: float, seed: int) -> Comparison:
    pairs = _pair_records(first, second, measure.name)
    values = np.array([(measure.value(a), measure.value(b)) for a, b in pairs], float).reshape(-1, 2)
    values = values[~np.isnan(values).any(axis=1)]
    return Comparison(
        first=first.id,
        second=second.id,
        scenario=first.scenario,
        defenses=(first.scenario.defense, second.scenario.defense),
        measure=measure.name,
        difference=paired_shares(*(values > 0).T.tolist(), level=level)
        if measure.yes_no or (measure.unit == "share" and np.isin(values, (0, 1)).all())
        else paired_bootstrap(values[:, 0], values[:, 1], shares=measure.unit == "share", level=level, seed=seed),
    )
