"""The report's tables, as plain cells for any format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Literal

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.measures import MEASURES, Measure
from unpoison.bench.evaluation.summary import COMPARED, Comparison, Summary
from unpoison.bench.report.model import Report, is_baseline

__all__ = [
    "Table",
    "cost_table",
    "difference_table",
    "figure",
    "problems",
    "status",
    "summary_tables",
]

JUDGED = ("judged_accuracy", "judged_relevance", "judged_coherence")
UNDER_ATTACK = ("poisoned", "asr", "accuracy", "graded", "exact_match", *JUDGED, "gold_kept")
ON_CLEAN = ("accuracy", "gold_kept", "clean_kept")
"""What a defense does where nothing is planted, beside every result under attack."""

DETECTION = ("precision", "recall", "f1", "auroc", "clean_kept", "gold_lost", "abstained")
WITHOUT_ATTACK = (
    "accuracy",
    "graded",
    "exact_match",
    *JUDGED,
    "gold_kept",
    "gold_lost",
    "clean_kept",
    "damaged",
    "emptied",
    "abstained",
)

COST = ("screening_median", "screening_p95", "seconds_median", "seconds_p95", "calls", "prompt_tokens")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text.

    Attributes:
        title: What stands above it.
        columns: The headings; the first column names the rows.
        rows: One text per column.
        hints: What each column means, for a reader who points at its heading; may be shorter than `columns`.
        marks: The best and the worst cells by (row, column), where rows differ and one side is good.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hints: tuple[str, ...] = ()
    marks: Mapping[tuple[int, int], Literal["best", "worst"]] = field(default_factory=dict)


def figure(estimate: Estimate | None, measure: Measure[Any]) -> str:
    """`63.2 [50.9, 74.0]` for shares in percent, seconds and numbers likewise; a hyphen where it does not apply."""
    if estimate is None or not estimate.defined:
        return "-"
    scale, digits = {"share": (100, 1), "seconds": (1000, 1), "number": (1, 1)}[measure.unit]
    value = f"{scale * estimate.value:.{digits}f}"
    return (
        value
        if isnan(estimate.low)
        else f"{value} [{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"
    )


def heading(measure: Measure[Any]) -> str:
    """A measure's title with its unit."""
    return measure.title + {"share": " %", "seconds": " ms", "number": ""}[measure.unit]


def status(report: Report) -> str:
    """One sentence: what was measured, and whether all of it was."""
    done, expected = report.questions
    sentence = f"{len(report.summaries)} scenarios, {done:,} of {expected:,} questions measured"
    failed = sum(summary.failed for summary in report.summaries)
    broken = sum(cell.error is not None for cell in report.run.cells)
    if failed:
        sentence += f", {failed:,} of them failed"
    if broken:
        sentence += f", {broken} scenario{'' if broken == 1 else 's'} could not begin"
    if report.run.manifest.get("finished") is None:
        sentence += "; the run is not finished, and the same command goes on with it"
    return sentence + "."


def summary_tables(report: Report) -> list[Table]:
    """One table for each setting: defenses by measure, the baseline first, and what each does to clean queries."""
    tables = []
    for scenario, group in report.groups():
        if not any(summary.done for summary in group):
            continue
        names = _present(group, WITHOUT_ATTACK if scenario.clean else UNDER_ATTACK)
        twins = [] if scenario.clean else [report.twin(summary) for summary in group]
        beside = _present([twin for twin in twins if twin is not None], ON_CLEAN)
        rest = [] if scenario.clean else _present(group, DETECTION)
        columns = [heading(MEASURES[name]) for name in names]
        columns += [f"no attack: {heading(MEASURES[name])}" for name in beside]
        columns += [heading(MEASURES[name]) for name in rest]
        hints = [MEASURES[name].meaning for name in (*names, *beside, *rest)]
        rows = []
        for number, summary in enumerate(group):
            twin = twins[number] if twins else None
            figures = [figure(summary[name], MEASURES[name]) for name in names]
            figures += [figure(None if twin is None else twin[name], MEASURES[name]) for name in beside]
            figures += [figure(summary[name], MEASURES[name]) for name in rest]
            rows.append((summary.scenario.defense, _questions(summary), *figures))
        first_hints = ("the option string", "questions measured without an error")
        marks = dict(_marks([(name, group) for name in names], 2))
        marks |= _marks([(name, twins) for name in beside], 2 + len(names))
        marks |= _marks([(name, group) for name in rest], 2 + len(names) + len(beside))
        title = report.caption(scenario)
        tables.append(Table(title, ("defense", "n", *columns), tuple(rows), (*first_hints, *hints), marks))
    return tables


def _marks(
    columns: Sequence[tuple[str, Sequence[Summary | None]]], first: int
) -> Iterator[tuple[tuple[int, int], Literal["best", "worst"]]]:
    """The best and the worst of every column, equal ones all; none where all are equal or no side is good."""
    for column, (name, cells) in enumerate(columns, first):
        better = MEASURES[name].better
        values = {row: cell[name].value for row, cell in enumerate(cells) if cell is not None and cell.applies(name)}
        low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
        if not better or low == high:
            continue
        for row, value in values.items():
            if value in (low, high):
                yield (row, column), "best" if (value == high) == (better == "higher") else "worst"


def _present(group: Iterable[Summary], names: Iterable[str]) -> list[str]:
    cells = list(group)
    return [name for name in names if any(summary.applies(name) for summary in cells)]


def _questions(summary: Summary) -> str:
    usable = summary.done - summary.failed
    return str(usable) if usable == summary.expected else f"{usable} of {summary.expected}"


def difference_table(report: Report, most: int = 200) -> Table:
    """Paired differences, those from the baseline first; p is corrected for the pairs of defenses (Holm)."""
    pairs: dict[tuple[str, str], dict[str, Comparison]] = {}
    for comparison in sorted(report.comparisons, key=lambda comparison: not is_baseline(comparison.defenses[0])):
        if not (comparison.scenario.clean and comparison.measure in ("poisoned", "asr")):
            pairs.setdefault((comparison.first, comparison.second), {})[comparison.measure] = comparison
    names = [name for name in COMPARED if any(name in comparisons for comparisons in pairs.values())]
    rows = []
    for comparisons in list(pairs.values())[:most]:
        first = next(iter(comparisons.values()))
        pair = f"{first.defenses[1]} less {first.defenses[0]}"
        cells = [_difference(comparisons[name]) if name in comparisons else "-" for name in names]
        rows.append((report.caption(first.scenario), pair, *cells))
    title = "Differences on the same questions, in percentage points; a star where p < 0.05 (Holm)" + (
        f", the first {most} of {len(pairs)} pairs" if len(pairs) > most else ""
    )
    columns = ("scenario", "defenses", *(MEASURES[name].title for name in names))
    hints = ("", "the second's figure minus the first's", *(MEASURES[name].meaning for name in names))
    return Table(title, columns, tuple(rows), hints)


def _difference(comparison: Comparison) -> str:
    difference, p = comparison.difference, comparison.corrected
    if isnan(difference.low):
        return f"{100 * difference.value:+.1f}"
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    star = " *" if comparison.differs else ""
    return f"{100 * difference.value:+.1f}{star} [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}] {chance}"


def cost_table(report: Report, most: int = 500) -> Table:
    """Time, calls, tokens and money of every cell."""
    measured = [summary for summary in report.summaries if summary.done]
    names = [name for name in COST if any(summary.applies(name) for summary in report.summaries)]
    priced = any(summary.cost is not None for summary in report.summaries)
    rows = [
        (
            report.caption(summary.scenario),
            summary.scenario.defense,
            *(figure(summary[name], MEASURES[name]).partition(" [")[0] for name in names),
            *(["-" if summary.cost is None else f"{summary.cost:.4f}"] if priced else []),
        )
        for summary in measured[:most]
    ]
    title = "Time and cost per question" + (
        f", the first {most} of {len(measured)} cells" if len(measured) > most else ""
    )
    columns = ["scenario", "defense", *(heading(MEASURES[name]) for name in names), *(["cost"] if priced else [])]
    hints = ["", "", *(MEASURES[name].meaning for name in names), "of all tokens, by the price table"]
    return Table(title, tuple(columns), tuple(rows), tuple(hints[: len(columns)]))


def problems(report: Report) -> list[str]:
    """Rows left out of the data, scenarios that could not begin, and questions that failed."""
    data = report.run.manifest.get("data", {})
    remarks = [f"{spec}: {remark}" for spec, source in data.items() for remark in source.get("left_out", ())]
    for summary in report.summaries:
        where = f"{summary.scenario.defense}, {report.caption(summary.scenario)}"
        remarks += [f"{where}: {remark}" for remark in summary.problems]
        if summary.done < summary.expected and not summary.problems:
            remarks.append(
                f"{where}: {summary.expected - summary.done} of {summary.expected} questions are not measured"
            )
    return remarks
