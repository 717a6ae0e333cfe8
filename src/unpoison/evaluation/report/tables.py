"""The report's tables, as plain cells for any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

from unpoison.evaluation.intervals import Estimate
from unpoison.evaluation.measures import MEASURES, Measure
from unpoison.evaluation.presets import Published
from unpoison.evaluation.report.model import Report, is_baseline
from unpoison.evaluation.scenarios import Scenario
from unpoison.evaluation.summary import Summary

__all__ = [
    "Table",
    "cost_table",
    "difference_table",
    "figure",
    "problems",
    "published_tables",
    "status",
    "summary_tables",
]

QUALITY = (
    "poisoned",
    "asr",
    "accuracy",
    "exact_match",
    "precision",
    "recall",
    "f1",
    "auroc",
    "clean_kept",
    "gold_kept",
    "gold_lost",
    "abstained",
)
ON_CLEAN = ("accuracy", "clean_kept", "gold_kept", "gold_lost")
"""What a defense does where nothing is planted; printed beside every result under attack."""

COST = ("screening_median", "screening_p95", "seconds_median", "seconds_p95", "calls", "prompt_tokens")
REPLIES = ("asr", "asr_substring", "asr_exclusive", "accuracy", "exact_match")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text.

    Attributes:
        title: What stands above it.
        columns: The headings; the first column names the rows.
        rows: One text per column.
        hints: What each column means, for a reader who points at its heading; may be shorter than `columns`.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    hints: tuple[str, ...] = ()


def figure(found: Estimate | None, one: Measure) -> str:
    """`63.2 [50.9, 74.0]` for shares in percent, seconds and numbers likewise; a hyphen where it does not apply."""
    if found is None or isnan(found.value):
        return "-"
    scale, digits = {"share": (100, 1), "seconds": (1000, 1), "number": (1, 1)}[one.unit]
    value = f"{scale * found.value:.{digits}f}"
    return value if isnan(found.low) else f"{value} [{scale * found.low:.{digits}f}, {scale * found.high:.{digits}f}]"


def heading(one: Measure) -> str:
    """A measure's title with its unit."""
    return one.title + {"share": " %", "seconds": " ms", "number": ""}[one.unit]


def status(report: Report) -> str:
    """One sentence: what was measured, and whether all of it was."""
    done, expected = report.questions
    said = f"{len(report.summaries)} scenarios, {done:,} of {expected:,} questions measured"
    failed = sum(summary.failed for summary in report.summaries)
    broken = sum(cell.error is not None for cell in report.run.cells)
    if failed:
        said += f", {failed:,} of them failed"
    if broken:
        said += f", {broken} scenario{'' if broken == 1 else 's'} could not begin"
    if report.run.manifest.get("finished") is None:
        said += "; the run was interrupted and can be resumed"
    return said + "."


def summary_tables(report: Report) -> list[Table]:
    """One table for each setting: defenses by measure, the baseline first, and what each does to clean queries."""
    found = []
    for scenario, group in report.groups():
        present = [name for name in QUALITY if any(summary.applies(name) for summary in group)]
        twins = [report.twin(summary) for summary in group]
        beside = [] if scenario.clean else [n for n in ON_CLEAN if any(t is not None and t.applies(n) for t in twins)]
        columns = [heading(MEASURES[name]) for name in present]
        columns += [f"no attack: {heading(MEASURES[name])}" for name in beside]
        hints = [MEASURES[name].meaning for name in (*present, *beside)]
        rows = [
            (
                summary.scenario.defense,
                _questions(summary),
                *(figure(summary[name], MEASURES[name]) for name in present),
                *(figure(None if twin is None else twin[name], MEASURES[name]) for name in beside),
            )
            for summary, twin in zip(group, twins, strict=True)
        ]
        told = ("the option string", "questions measured without an error")
        found.append(Table(report.caption(scenario), ("defense", "n", *columns), tuple(rows), (*told, *hints)))
    return found


def _questions(summary: Summary) -> str:
    usable = summary.done - summary.failed
    return str(usable) if usable == summary.expected else f"{usable} of {summary.expected}"


def difference_table(report: Report, most: int = 200) -> Table:
    """Paired differences, those from the baseline first."""
    ordered = sorted(report.comparisons, key=lambda one: not is_baseline(one.defenses[0]))
    rows = []
    for one in ordered[:most]:
        share = Estimate(one.difference.value, one.difference.low, one.difference.high, one.difference.count)
        p = one.difference.probability if isnan(one.mcnemar) else one.mcnemar
        rows.append(
            (
                report.caption(one.scenario),
                f"{one.defenses[1]} less {one.defenses[0]}",
                MEASURES[one.measure].title,
                figure(share, MEASURES[one.measure]),
                f"{p:.3f}",
                "yes" if one.differs else "no",
                str(one.difference.count),
            )
        )
    left = len(ordered) - len(rows)
    title = "Differences on the same questions" + (f", the first {most} of {len(ordered)}" if left > 0 else "")
    hints = (
        "data and attack",
        "the second defense's figure minus the first's",
        "what is compared",
        "in percentage points, with a bootstrap interval over questions",
        "McNemar's exact test for yes or no, otherwise the bootstrap's",
        "whether the interval leaves out zero",
        "pairs of questions",
    )
    columns = ("scenario", "defenses", "measure", "difference", "p", "differs", "n")
    return Table(title, columns, tuple(rows), hints)


def cost_table(report: Report) -> Table:
    """Time, calls, tokens and money of every cell."""
    names = [name for name in COST if any(summary.applies(name) for summary in report.summaries)]
    priced = any(summary.cost is not None for summary in report.summaries)
    rows = [
        (
            report.caption(summary.scenario),
            summary.scenario.defense,
            *(figure(summary[name], MEASURES[name]).partition(" [")[0] for name in names),
            *(["-" if summary.cost is None else f"{summary.cost:.4f}"] if priced else []),
        )
        for summary in report.summaries
        if summary.done
    ]
    columns = ["scenario", "defense", *(heading(MEASURES[name]) for name in names), *(["cost"] if priced else [])]
    hints = ["", "", *(MEASURES[name].meaning for name in names), "of all tokens, by the price table"]
    return Table("Time and cost per question", tuple(columns), tuple(rows), tuple(hints[: len(columns)]))


def problems(report: Report) -> list[str]:
    """Rows left out of the data, scenarios that could not begin, and questions that failed."""
    data = report.run.manifest.get("data", {})
    found = [f"{spec}: {told}" for spec, source in data.items() for told in source.get("left_out", ())]
    for summary in report.summaries:
        where = f"{summary.scenario.defense}, {report.caption(summary.scenario)}"
        found += [f"{where}: {told}" for told in summary.problems]
        if summary.done < summary.expected and not summary.problems:
            found.append(f"{where}: {summary.expected - summary.done} of {summary.expected} questions are not measured")
    return found


def published_tables(report: Report) -> list[Table]:
    """The preset's tables, each published number with the one measured for it.

    Where there was no generator, an ASR has no counterpart; what the screening left of the poison stands in its place.
    """
    if report.preset is None:
        return []
    parts: dict[tuple[str, str], list[tuple[Published, Estimate | None]]] = {}
    for one, measured in report.preset.beside(report.summaries):
        parts.setdefault((one.table, one.measure), []).append((one, measured))
    by_scenario = {summary.scenario: summary for summary in report.summaries}
    found = []
    for (name, measure), numbers in parts.items():
        columns = list(dict.fromkeys(one.column for one, _ in numbers))
        cells: dict[str, dict[str, str]] = {}
        for one, measured in numbers:
            text = _beside(one, measured, by_scenario)
            cells.setdefault(one.row, {})[one.column] = text
        rows = tuple((row, *(texts.get(column, "-") for column in columns)) for row, texts in cells.items())
        title = f"{report.preset.source}, {name}: {heading(MEASURES[measure])}, published → measured"
        found.append(Table(title, ("", *columns), rows))
    return found


def _beside(one: Published, measured: Estimate | None, by_scenario: Mapping[Scenario, Summary]) -> str:
    paper = "not printed" if one.value is None else f"{100 * one.value:.1f}"
    if measured is not None and not isnan(measured.value):
        return f"{paper} → {figure(measured, MEASURES[one.measure])}"
    summary = None if one.scenario is None else by_scenario.get(one.scenario)
    if summary is not None and one.measure in REPLIES[:3] and summary.applies("poisoned"):
        return f"{paper} → poisoned {figure(summary['poisoned'], MEASURES['poisoned'])}"
    return paper
