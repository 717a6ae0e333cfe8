"""The report's tables, as plain cells for any format.

Certified accuracy is the share of questions answered correctly, provably under any change of m passages. It is counted
without an attack: an answer that is right and has a guarantee of m is right under every attack on m passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from statistics import mean, stdev
from typing import Any

from unpoison.algorithms.intervals import Difference, Estimate, wilson
from unpoison.report.document import Table
from unpoison.utils.plain_text import count_noun
from unpoison_lab.evaluation.differences import codes
from unpoison_lab.evaluation.measures import MEASURES, Measure, counted
from unpoison_lab.evaluation.presets import Preset, PublishedNumber
from unpoison_lab.evaluation.runs import Cell
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.summary import COMPARED, Comparison, Summary
from unpoison_lab.report.model import Report, is_baseline

__all__ = [
    "SAME",
    "certified_accuracy",
    "comparison_tables",
    "conclusions",
    "cost_table",
    "difference_table",
    "figure",
    "format_measurement",
    "guarantee_tables",
    "problems",
    "rows_left_out",
    "status",
    "summary_tables",
]


JUDGED = ("judged_accuracy", "judged_relevance", "judged_coherence")
UNDER_ATTACK = ("poisoned", "asr", "accuracy", "graded", "exact_match", *JUDGED, "gold_kept")
SHORT = ("poisoned", "asr", "accuracy", "failed")
SHORT_CLEAN = ("gold_lost", "clean_kept", "accuracy")
"""The measures that fit a terminal, under attack and without one."""

ON_CLEAN = ("accuracy", "gold_kept", "clean_kept")
"""The measures without an attack that are shown beside every result under attack."""

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


def figure(estimate: Estimate | None, measure: Measure[Any], *, short: bool = False) -> str:
    """`63.2 [50.9, 74.0]` for shares in percent, seconds and numbers likewise; a hyphen if it does not apply."""
    if estimate is None or not estimate.defined:
        return "-"
    scale = {"share": 100, "seconds": 1000, "number": 1}[measure.unit]
    return with_interval(estimate, scale, ".0f" if short else ".1f")


def with_interval(estimate: Estimate | Difference, scale: float = 100, form: str = ".1f", after: str = "") -> str:
    """A figure times `scale`, a suffix, and its interval if it has one: `63.2 [50.9, 74.0]`."""
    value, low, high = (format(scale * x, form) for x in (estimate.value, estimate.low, estimate.high))
    return f"{value}{after}" if isnan(estimate.low) else f"{value}{after} [{low}, {high}]"


def heading(measure: Measure[Any]) -> str:
    """A measure's title with its unit."""
    return measure.title + {"share": " %", "seconds": " ms", "number": ""}[measure.unit]


def status(report: Report) -> str:
    """One sentence: what was measured, and whether it is complete."""
    done, expected = report.questions
    sentence = f"{count_noun(len(report.summaries), 'scenario')}, {done:,} of {expected:,} questions measured"
    failed = sum(summary.failed for summary in report.summaries)
    broken = sum(cell.error is not None for cell in report.run.cells)
    if failed:
        sentence += f", {failed:,} of them failed"
    if broken:
        sentence += f", {broken} scenario{'' if broken == 1 else 's'} could not begin"
    if report.run.manifest.get("finished") is None:
        sentence += "; the run is not finished, and the same command goes on with it"
    return sentence + "."


AT_WORST = {"asr": "answers are the attacker's", "poisoned": "contexts hold poison"}
"""What a conclusion is about, by the measure; the first that was measured."""

MAX_CONCLUSIONS = 8
"""Defenses with a sentence of their own."""


def conclusions(report: Report) -> list[str]:
    """A sentence for each defense: the attack that got furthest, the same without a defense, and what is lost."""
    worst = dict[str, tuple[float, str]]()
    for scenario, (base, *others) in report.groups():
        for one in others if is_baseline(base.scenario.defense) and not scenario.clean else ():
            name = next((name for name in AT_WORST if one.applies(name) and one[name].defined), None)
            defense = one.scenario.defense
            if name is None or worst.get(defense, (-1.0, ""))[0] >= one[name].value:
                continue
            found, bare, twin = one[name], base[name], report.twin(one)
            said = f"{defense}: at worst {found.hits:,} of {found.count:,} {AT_WORST[name]} "
            said += f"({report.caption(scenario)}); without a defense {bare.hits:,} of {bare.count:,}"
            if twin is not None and twin.applies("gold_lost") and (lost := twin["gold_lost"]).defined:
                said += f"; without an attack {lost.hits:,} of {lost.count:,} questions lose every right passage"
            worst[defense] = (found.value, f"{said}.")
    return [sentence for _, sentence in worst.values()][:MAX_CONCLUSIONS]


def summary_tables(report: Report, *, short: bool = False) -> list[Table]:
    """One table for each setting: defenses by measure, the baseline first, and the effect on clean queries.

    Args:
        report: What was measured.
        short: Only the most important measures, for a terminal of 80 columns.
    """
    attacked, on_clean, detection = (SHORT, SHORT_CLEAN, ()) if short else (UNDER_ATTACK, ON_CLEAN, DETECTION)
    tables = []
    for scenario, group in report.groups():
        if not any(summary.done for summary in group):
            continue
        columns = _columns("", group, (*SHORT, *SHORT_CLEAN) if short else WITHOUT_ATTACK) if scenario.clean else []
        if not scenario.clean:
            columns = _columns("", group, attacked)
            columns += _columns("clean: ", [report.twin(summary) for summary in group], on_clean)
            columns += _columns("", group, detection)
        rows = []
        for i, summary in enumerate(group):
            cells = [(MEASURES[name], of_rows[i]) for _, name, of_rows in columns]
            figures = [figure(cell[kind.name] if cell else None, kind, short=short) for kind, cell in cells]
            rows.append((summary.scenario.defense, *([] if short else [_questions(summary)]), *figures))
        names = ["defense", *([] if short else ["n"])]
        hints = ["the option string", "questions measured; failed ones stay in the denominator of answers"][
            : len(names)
        ]
        names += [prefix + heading(MEASURES[name]) for prefix, name, _ in columns]
        hints += [MEASURES[name].meaning for _, name, _ in columns]
        title = report.caption(scenario)
        tables.append(Table(title, tuple(names), tuple(rows), tuple(hints), note=report.note(scenario)))
    return tables


Column = tuple[str, str, Sequence[Summary | None]]
"""A prefix of the heading, the measure, and the cells with its figures, one a row."""


def _columns(prefix: str, cells: Sequence[Summary | None], names: Iterable[str]) -> list[Column]:
    """The measures that apply; the number of failures is shown only if there are any."""
    return [
        (prefix, name, cells)
        for name in dict.fromkeys(names)
        if any(cell and cell.applies(name) and (name != "failed" or cell.failed) for cell in cells)
    ]


def _questions(summary: Summary) -> str:
    failed = f", {summary.failed} failed" if summary.failed else ""
    of_all = "" if summary.done == summary.expected else f" of {summary.expected}"
    return f"{summary.done}{of_all}{failed}"


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
    cut = f", the first {most} of {len(pairs)} pairs" if len(pairs) > most else ""
    title = f"Differences on the same questions, in percentage points; a star where p < 0.05 (Holm){cut}"
    columns = ("scenario", "defenses", *(MEASURES[name].title for name in names))
    hints = ("", "the second's figure minus the first's", *(MEASURES[name].meaning for name in names))
    return Table(title, columns, tuple(rows), hints)


def _difference(comparison: Comparison) -> str:
    figures = with_interval(comparison.difference, form="+.1f", after=" *" if comparison.differs else "")
    if isnan(comparison.difference.low):
        return figures
    p = comparison.corrected
    return f"{figures} {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"


def cost_table(report: Report, most: int = 500) -> Table:
    """Time, calls and tokens of every cell."""
    measured = [summary for summary in report.summaries if summary.done]
    names = [name for name in COST if any(summary.applies(name) for summary in report.summaries)]
    rows = [
        (
            report.caption(summary.scenario),
            summary.scenario.defense,
            *(figure(summary[name], MEASURES[name]).partition(" [")[0] for name in names),
        )
        for summary in measured[:most]
    ]
    cut = f", the first {most} of {len(measured)} cells" if len(measured) > most else ""
    columns = ["scenario", "defense", *(heading(MEASURES[name]) for name in names)]
    hints = ("", "", *(MEASURES[name].meaning for name in names))
    return Table(f"Time and tokens per question{cut}", tuple(columns), tuple(rows), hints)


def rows_left_out(report: Report) -> list[str]:
    """Rows of the data that could not be used."""
    data = report.run.manifest.get("data", {})
    return [f"{spec}: {remark}" for spec, source in data.items() for remark in source.get("left_out", ())]


def problems(report: Report) -> list[str]:
    """Rows left out of the data, scenarios that could not begin, and questions that failed."""
    remarks = rows_left_out(report)
    for summary in report.summaries:
        where = f"{summary.scenario.defense}, {report.caption(summary.scenario)}"
        remarks += [f"{where}: {remark}" for remark in summary.problems]
        if summary.done < summary.expected and not summary.problems:
            missing = summary.expected - summary.done
            remarks.append(f"{where}: {missing} of {summary.expected} questions are not measured")
    return remarks


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
