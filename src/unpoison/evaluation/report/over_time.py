"""A study over time as a report: one HTML page with its pictures, Markdown, CSV or JSON.

Names, times and data sets are hostile: pages escape them, and nothing of them is a formula in a spreadsheet.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from unpoison.errors import OptionError, shown
from unpoison.evaluation.intervals import Estimate
from unpoison.evaluation.report.charts import HUES, label
from unpoison.evaluation.report.document import Section, document, figure_markup, table_markup
from unpoison.evaluation.report.exports import markdown_table, markdown_text, spreadsheet_value
from unpoison.evaluation.report.figures import Lines, Point, Series
from unpoison.evaluation.report.published_streams import published_over_time
from unpoison.evaluation.report.tables import Table
from unpoison.evaluation.stream_presets import StreamPreset
from unpoison.evaluation.streams import StreamResult, StreamStudy

__all__ = [
    "FORMATS",
    "as_csv",
    "as_json",
    "as_markdown",
    "check_format",
    "described",
    "drawn_methods",
    "page",
    "static_dynamic_table",
    "step_figures",
    "study_tables",
    "write_over_time",
]

Measure = Callable[[StreamResult], Estimate]

SHARES: Mapping[str, tuple[str, Measure, str]] = {
    "accuracy": ("accuracy", StreamResult.accuracy, "answers that are right at their time"),
    "attack_success": ("ASR", StreamResult.attack_success, "answers that the attacker wanted"),
    "unneeded_changes": (
        "unneeded",
        StreamResult.unneeded_changes,
        "right answers that are lost although the truth has not changed",
    ),
    "followed": ("followed", StreamResult.followed, "genuine changes that are answered rightly before the next one"),
}
"""Name, heading, measure and meaning."""

BY_STEP = ("accuracy", "attack_success")
FIGURES = {"lag": "mean steps until a change that is followed is answered rightly", "bytes": "kept for a question"}


def described(study: StreamStudy) -> str:
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


def step_figures(study: StreamStudy, drawn: Collection[str] | None = None) -> Iterator[Lines]:
    """Accuracy and attack success by step, one picture for each attack.

    Args:
        study: What was measured.
        drawn: The methods with a line; see `drawn_methods`.
    """
    names = drawn_methods(study) if drawn is None else [name for name in study.methods if name in drawn]
    for measure in BY_STEP:
        heading = SHARES[measure][0]
        for attack, results in study.results.items():
            if (attack, measure) == ("none", "attack_success"):
                continue
            series = tuple(Series(name, hue, _points(study, results[name], measure)) for hue, name in enumerate(names))
            yield Lines(f"{heading} by step, attack: {attack}", "step", f"{heading}, %", series)


def drawn_methods(study: StreamStudy) -> list[str]:
    """At most eight methods, for more lines cannot be told apart: dynamic ones before static ones before adapted."""
    order = ("beliefs", "nothing", "answer", "passages")
    chosen = sorted(study.methods, key=lambda name: order.index(study.methods[name].carries))[:HUES]
    return [name for name in study.methods if name in chosen]


def _points(study: StreamStudy, result: StreamResult, measure: str) -> tuple[Point, ...]:
    return tuple(
        Point(moment, estimate.value, estimate.low, estimate.high, estimate.count)
        for moment, estimate in zip(study.moments, _by_step(result, measure), strict=True)
    )


def _by_step(result: StreamResult, measure: str) -> list[Estimate]:
    share = StreamResult.accuracy if measure == "accuracy" else StreamResult.attack_success
    return [share(result, step) for step in range(result.steps)]


def page(study: StreamStudy, preset: StreamPreset | None = None, *, drawn: Collection[str] | None = None) -> str:
    """The whole report as HTML; it opens from disk, asks the network for nothing and runs no script."""
    compared = static_dynamic_table(study)
    drawn = drawn_methods(study) if drawn is None else drawn
    pictures = "\n".join(map(figure_markup, step_figures(study, drawn)))
    missing = "; ".join(label(name) for name in study.methods if name not in drawn)
    note = f" Not drawn: {missing}." if missing else ""
    lead = (
        f"<p>{label(described(study), 400)}</p>"
        "<p>Every question is asked at each of its times, with one poisoned passage at every step or without. Shares "
        "are in percent with 95 % intervals. Point at a heading or at a mark for its meaning.</p>"
    )
    sections: list[Section | None] = [
        None if preset is None else ("published", "Published and measured", _published(preset, study)),
        None if compared is None else ("static-dynamic", "Static against dynamic", table_markup(compared)),
        (
            "steps",
            "Step by step",
            f'<p>Accuracy and ASR at each time.{note}</p>\n<div class="figures">\n{pictures}\n</div>',
        ),
        ("results", "All steps together", "\n".join(map(table_markup, study_tables(study)))),
        _left_out(study),
    ]
    return document("Evaluation over time", lead, sections)


def _published(preset: StreamPreset, study: StreamStudy) -> str:
    lines = "".join(f"<li>{label(line, 400)}</li>" for line in preset.describe().splitlines())
    return f'<ul class="notes">{lines}</ul>\n' + "\n".join(map(table_markup, published_over_time(preset, study)))


def _left_out(study: StreamStudy) -> Section | None:
    items = "".join(f"<li>{label(line, 400)}</li>" for line in study.left_out)
    return ("problems", "Left out", f'<ul class="notes">{items}</ul>') if items else None


def as_markdown(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """The tables, for a repository or an issue: published ones, static against dynamic, then every method in one."""
    compared = static_dynamic_table(study)
    tables = study_tables(study)
    rows = tuple((attack, *row) for attack, table in zip(study.results, tables, strict=True) for row in table.rows)
    parts = ["# Evaluation over time", markdown_text(described(study))]
    if preset is not None:
        parts.append("\n".join(f"- {markdown_text(line)}" for line in preset.describe().splitlines()))
        parts += [markdown_table(table, "##") for table in published_over_time(preset, study)]
    parts += [markdown_table(compared, "##")] if compared else []
    parts.append(markdown_table(Table("All methods", ("attack", *tables[0].columns), rows), "##"))
    parts += ["\n".join(f"- left out: {markdown_text(line)}" for line in study.left_out)] if study.left_out else []
    return "\n\n".join(parts) + "\n"


def as_csv(study: StreamStudy, preset: StreamPreset | None = None) -> str:
    """One row for each attack, method and step, and one with `all` for all steps together; shares as numbers."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    bounds = [f"{name}{end}" for name in SHARES for end in ("", "_low", "_high", "_count")]
    writer.writerow(["attack", "method", "defense", "carries", "step", *bounds, "lag", "bytes"])
    for attack, results in study.results.items():
        for name, result in results.items():
            method = study.methods[name]
            start = [spreadsheet_value(text) for text in (attack, name, method.defense, method.carries)]
            numbers = [value for _, share, _ in SHARES.values() for value in _numbers(share(result))]
            writer.writerow([*start, "all", *numbers, *map(_number, (result.mean_lag(), _bytes(result)))])
            steps = zip(study.moments, *(_by_step(result, measure) for measure in BY_STEP), strict=True)
            for moment, *shares in steps:
                writer.writerow(
                    [*start, spreadsheet_value(moment), *(v for estimate in shares for v in _numbers(estimate))]
                )
    return stream.getvalue()


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
                **{measure: _estimate(share(result)) for measure, (_, share, _) in SHARES.items()},
                "lag": result.mean_lag(),
                "bytes": _bytes(result),
                "by_step": {measure: [*map(_estimate, _by_step(result, measure))] for measure in BY_STEP},
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

FORMATS = tuple(_WRITERS)
"""The suffixes that `write_over_time` knows."""


def check_format(path: str | Path) -> str:
    """The suffix of a report.

    Raises:
        OptionError: None of `FORMATS`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"a report over time must end in {', '.join(FORMATS)}, got {shown(str(path))}")
    return suffix


def write_over_time(study: StreamStudy, path: str | Path, preset: StreamPreset | None = None) -> None:
    """Write a report in the format that the file's suffix names, with a paper's numbers beside where there is a preset.

    Raises:
        OptionError: Another suffix, or a place that cannot be written to.
    """
    text = _WRITERS[check_format(path)](study, preset)
    try:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}; give another place") from None


def _cells(result: StreamResult) -> list[str]:
    lag, stored = result.mean_lag(), _bytes(result)
    return [
        *(_percent(share(result)) for _, share, _ in SHARES.values()),
        "-" if lag is None else f"{lag:.2f}",
        "-" if stored is None else f"{stored:.0f}",
    ]


def _percent(estimate: Estimate) -> str:
    if not isfinite(estimate.value):
        return "-"
    return f"{100 * estimate.value:.0f} ({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"


def _bytes(result: StreamResult) -> float | None:
    return statistics.mean(result.stored) if result.stored else None


def _numbers(estimate: Estimate) -> list[object]:
    return [*map(_number, (estimate.value, estimate.low, estimate.high)), estimate.count]


def _number(value: float | None) -> str:
    return "" if value is None or not isfinite(value) else f"{value:.6g}"


def _estimate(estimate: Estimate) -> dict[str, Any]:
    ends = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
    return {**{name: value if isfinite(value) else None for name, value in ends.items()}, "count": estimate.count}
