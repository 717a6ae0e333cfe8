"""A study over time as a report: one HTML page with its pictures, Markdown, CSV or JSON.

Names, times and data sets are hostile: pages escape them, and nothing of them is a formula in a spreadsheet.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.stream_presets import StreamPreset
from unpoison.bench.evaluation.streams import StreamResult, StreamStudy
from unpoison.bench.evaluation.timelines import step_context
from unpoison.bench.report.exports import (
    check_format,
    csv_cells,
    csv_headings,
    csv_text,
    markdown_table,
    markdown_text,
    spreadsheet_value,
    write_text,
)
from unpoison.bench.report.paper_comparison import SAME
from unpoison.report.charts import HUES, Lines, Series
from unpoison.report.document import Section, Table, document

__all__ = [
    "BY_STEP",
    "SHARES",
    "as_csv",
    "as_json",
    "as_markdown",
    "comparison_over_time",
    "mean_bytes",
    "page",
    "select_methods",
    "static_dynamic_table",
    "step_figures",
    "study_summary",
    "study_tables",
    "write_over_time",
]

Measure = Callable[[StreamResult], Estimate]

SHARES: Mapping[str, tuple[str, Measure, str]] = {
    "accuracy": ("accuracy", StreamResult.accuracy, "answers that are right at their time"),
    "attack_success": ("ASR", StreamResult.attack_success, "answers that the attacker wanted"),
    "unneeded_changes": (
        "unneeded",
        StreamResult.spurious_changes,
        "right answers that are lost although the truth has not changed",
    ),
    "followed": ("followed", StreamResult.update_rate, "genuine changes that are answered rightly before the next one"),
}
"""Name, heading, measure and meaning."""

BY_STEP = ("accuracy", "attack_success")
FIGURES = {"lag": "mean steps until a change that is followed is answered rightly", "bytes": "kept for a question"}


def study_summary(study: StreamStudy) -> str:
    """What was measured, in one line."""
    models = ", ".join(f"{kind} {spec}" for kind, spec in study.models.items())
    counts = f"{len(study.timelines)} questions, {study.steps} steps, {study.changes} genuine changes"
    return f"{study.data}: {counts}; {models}."


def study_tables(study: StreamStudy) -> list[Table]:
    """One table for each attack: methods by measure, shares in percent with their 95 % Wilson intervals."""
    columns = ("method", *(f"{heading} %" for heading, _, _ in SHARES.values()), *FIGURES)
    hints = ("a defense and what it carries", *(meaning for _, _, meaning in SHARES.values()), *FIGURES.values())
    return [
        Table(
            f"attack: {attack}",
            columns,
            tuple((method, *_cells(result)) for method, result in results.items()),
            hints,
        )
        for attack, results in study.results.items()
    ]


def static_dynamic_table(study: StreamStudy) -> Table | None:
    """Accuracy and ASR of each defense that remembers, beside the same defense without its memory (RADAR, Table 17)."""
    kinds = {(method.defense, method.carries): name for name, method in study.methods.items()}
    pairs = [
        (kinds[defense, "nothing"], name)
        for (defense, carries), name in kinds.items()
        if carries == "beliefs" and (defense, "nothing") in kinds
    ]
    names = [name for pair in pairs for name in pair]
    if not names:
        return None
    rows = tuple(
        (attack, *(_percent(SHARES[measure][1](results[name])) for name in names for measure in BY_STEP))
        for attack, results in study.results.items()
    )
    columns = ("attack", *(f"{name}: {SHARES[measure][0]} %" for name in names for measure in BY_STEP))
    return Table("Static against dynamic, mean over all steps", columns, rows)


def comparison_over_time(preset: StreamPreset, study: StreamStudy) -> Iterator[Table]:
    """Each published number with the one measured for it, in percent; below each column whether it was measured."""
    methods = list(dict.fromkeys(number.method for number in preset.published))
    for measure in BY_STEP:
        heading, share, _ = SHARES[measure]
        theirs = {(n.method, n.attack): n.value for n in preset.published if n.measure == measure}
        attacks = [attack for attack in preset.attacks if any((method, attack) in theirs for method in methods)]
        rows = []
        for method in methods:
            printed = [f"{100 * theirs[method, attack]:.2f}" for attack in attacks]
            if why := preset.lacking.get(method):
                rows.append((method, *printed, f"not measured: it {why}"))
            for name in preset.variants_of(method):
                results = [study.results.get(attack, {}).get(name) for attack in attacks]
                ours = [_format_estimate(None if result is None else share(result)) for result in results]
                rows.append((name, *map("".join, zip(printed, ours)), "; ".join(_differs(preset, study, name))))
        last = [_of_attack(preset, study, attack) for attack in attacks]
        title = f"{preset.source}: {heading}, published \u2192 measured, %"
        yield Table(title, ("", *attacks, SAME), (*rows, (SAME, *last, "")))


def _format_estimate(estimate: Estimate | None) -> str:
    return f" \u2192 {100 * estimate.value:.1f}" if estimate is not None and estimate.defined else ""


def _differs(preset: StreamPreset, study: StreamStudy, name: str) -> list[str]:
    return [
        f"{study.data}: {len(study.timelines)} questions, {study.steps} steps",
        *preset.differs,
        *preset.method_differs[name],
    ]


def _of_attack(preset: StreamPreset, study: StreamStudy, attack: str) -> str:
    if attack not in study.results:
        return "not measured: no question can be attacked so"
    differences = list(preset.attack_differs[attack])
    asked = {record.timeline for result in study.results[attack].values() for record in result.records}
    if len(asked) < len(study.timelines):
        differences.append(f"{len(asked)} of {len(study.timelines)} questions; the others cannot be attacked so")
    position = preset.attacks[attack][1] or 0
    lengths = [len(step_context(step)) for one in study.timelines if one.id in asked for step in one.steps]
    if short := sum(length < position for length in lengths):
        differences.append(f"{short} of {len(lengths)} steps have fewer passages: behind the last one")
    return "; ".join(differences) or "yes"


def _cells(result: StreamResult) -> list[str]:
    lag, stored = result.mean_lag(), mean_bytes(result)
    return [
        *(_percent(share(result)) for _, share, _ in SHARES.values()),
        "-" if lag is None else f"{lag:.2f}",
        "-" if stored is None else f"{stored:.0f}",
    ]


def _percent(estimate: Estimate) -> str:
    if not estimate.defined:
        return "-"
    return f"{100 * estimate.value:.0f} ({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"


def mean_bytes(result: StreamResult) -> float | None:
    """What is kept for a question, on average; None where nothing was asked."""
    return statistics.mean(result.stored) if result.stored else None


def step_figures(study: StreamStudy, drawn: Collection[str] | None = None) -> Iterator[Lines]:
    """Accuracy and attack success by step, one picture for each attack.

    Args:
        study: What was measured.
        drawn: The methods with a line; see `select_methods`.
    """
    names = select_methods(study) if drawn is None else [name for name in study.methods if name in drawn]
    for measure in BY_STEP:
        heading = SHARES[measure][0]
        for attack, results in study.results.items():
            if (attack, measure) == ("none", "attack_success"):
                continue
            series = tuple(
                Series(name, hue, tuple(zip(study.moments, _by_step(results[name], measure), strict=True)))
                for hue, name in enumerate(names)
            )
            yield Lines(f"{heading} by step, attack: {attack}", "step", f"{heading}, %", series)


def select_methods(study: StreamStudy) -> list[str]:
    """At most eight methods, for more lines cannot be told apart: dynamic ones before static ones before adapted."""
    order = ("beliefs", "nothing", "answer", "passages")
    chosen = sorted(study.methods, key=lambda name: order.index(study.methods[name].carries))[:HUES]
    return [name for name in study.methods if name in chosen]


def _by_step(result: StreamResult, measure: str) -> list[Estimate]:
    share = StreamResult.accuracy if measure == "accuracy" else StreamResult.attack_success
    return [share(result, step) for step in range(result.steps)]


def page(study: StreamStudy, preset: StreamPreset | None = None, *, drawn: Collection[str] | None = None) -> str:
    """The whole report as HTML; it opens from disk, asks the network for nothing and runs no script."""
    compared = static_dynamic_table(study)
    drawn = select_methods(study) if drawn is None else drawn
    missing = "; ".join(name for name in study.methods if name not in drawn)
    note = f"Accuracy and ASR at each time.{f' Not drawn: {missing}.' if missing else ''}"
    sections = [
        *([] if preset is None else [_comparison(preset, study)]),
        Section("static-dynamic", "Static against dynamic", tables=[compared] if compared else []),
        Section("steps", "Step by step", note, figures=list(step_figures(study, drawn))),
        Section("results", "All steps together", tables=study_tables(study)),
        Section("problems", "Left out", notes=study.left_out),
    ]
    lead = [
        study_summary(study),
        "Every question is asked at each of its times, with one poisoned passage at every step or without. Shares are "
        "in percent with 95 % intervals. Point at a heading or at a mark for its meaning.",
    ]
    return document("Evaluation over time", sections, lead=lead)


def _comparison(preset: StreamPreset, study: StreamStudy) -> Section:
    notes, tables = preset.describe().splitlines(), list(comparison_over_time(preset, study))
    return Section("published", "Published and measured", notes=notes, tables=tables)


def as_markdown(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """The tables, for a repository or an issue: published ones, static against dynamic, then every method in one."""
    compared = static_dynamic_table(study)
    tables = study_tables(study)
    rows = tuple((attack, *row) for attack, table in zip(study.results, tables, strict=True) for row in table.rows)
    parts = ["# Evaluation over time", markdown_text(study_summary(study))]
    if preset is not None:
        parts.append("\n".join(f"- {markdown_text(line)}" for line in preset.describe().splitlines()))
        parts += [markdown_table(table, "##") for table in comparison_over_time(preset, study)]
    parts += [markdown_table(compared, "##")] if compared else []
    parts.append(markdown_table(Table("All methods", ("attack", *tables[0].columns), rows), "##"))
    parts += ["\n".join(f"- left out: {markdown_text(line)}" for line in study.left_out)] if study.left_out else []
    return "\n\n".join(parts) + "\n"


def as_csv(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """One row for each attack, method and step, and one with `all` for all steps together; shares as numbers."""
    headings = ["attack", "method", "defense", "carries", "step", *csv_headings(SHARES), "lag", "bytes"]
    return csv_text([headings, *_csv_rows(study)])


def _csv_rows(study: StreamStudy) -> Iterator[list[object]]:
    for attack, results in study.results.items():
        for name, result in results.items():
            method = study.methods[name]
            start = [spreadsheet_value(text) for text in (attack, name, method.defense, method.carries)]
            means = (result.mean_lag(), mean_bytes(result))
            figures = [cell for _, share, _ in SHARES.values() for cell in csv_cells(share(result))]
            yield [*start, "all", *figures, *("" if mean is None else f"{mean:.6g}" for mean in means)]
            for moment, *shares in zip(study.moments, *(_by_step(result, m) for m in BY_STEP), strict=True):
                yield [*start, spreadsheet_value(moment), *(cell for share in shares for cell in csv_cells(share))]


def as_json(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """Every figure as one object; null stands for what is undefined."""
    document = {
        "data": study.data,
        **study.models,
        "questions": len(study.timelines),
        "steps": study.steps,
        "changes": study.changes,
        "moments": study.moments,
        "left_out": study.left_out,
        **(
            {}
            if preset is None
            else {"preset": {"name": preset.name, "published": [asdict(n) for n in preset.published]}}
        ),
        "results": [
            {
                "attack": attack,
                "method": name,
                "defense": study.methods[name].defense,
                "carries": study.methods[name].carries,
                **{measure: share(result).to_dict() for measure, (_, share, _) in SHARES.items()},
                "lag": result.mean_lag(),
                "bytes": mean_bytes(result),
                "by_step": {m: [share.to_dict() for share in _by_step(result, m)] for m in BY_STEP},
            }
            for attack, results in study.results.items()
            for name, result in results.items()
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


_WRITERS: Mapping[str, Callable[[StreamStudy, StreamPreset | None], str]] = {
    ".html": page,
    ".htm": page,
    ".md": as_markdown,
    ".csv": as_csv,
    ".json": as_json,
}


def write_over_time(study: StreamStudy, path: str | Path, preset: StreamPreset | None = None) -> None:
    """Write a report in the format that the file's suffix names, with a paper's numbers beside where there is a preset.

    Raises:
        OptionError: Another suffix, or a place that cannot be written to.
    """
    write_text(path, _WRITERS[check_format(path)](study, preset))
