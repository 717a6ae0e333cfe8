"""A study over time as a report: one HTML page with its pictures, Markdown, CSV or JSON.

Names, times and data sets are hostile: pages escape them, and nothing of them is a formula in a spreadsheet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.stream_presets import StreamPreset
from unpoison.bench.evaluation.streams import StreamResult, StreamStudy
from unpoison.bench.report.charts import HUES, label
from unpoison.bench.report.document import Section, document, figure_markup, table_markup
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
from unpoison.bench.report.figures import Lines, Series
from unpoison.bench.report.over_time_tables import (
    BY_STEP,
    SHARES,
    comparison_over_time,
    mean_bytes,
    static_dynamic_table,
    study_summary,
    study_tables,
)
from unpoison.bench.report.tables import Table

__all__ = ["as_csv", "as_json", "as_markdown", "page", "select_methods", "step_figures", "write_over_time"]


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
    pictures = "\n".join(map(figure_markup, step_figures(study, drawn)))
    missing = "; ".join(label(name) for name in study.methods if name not in drawn)
    note = f" Not drawn: {missing}." if missing else ""
    lead = (
        f"<p>{label(study_summary(study), 400)}</p>"
        "<p>Every question is asked at each of its times, with one poisoned passage at every step or without. Shares "
        "are in percent with 95 % intervals. Point at a heading or at a mark for its meaning.</p>"
    )
    sections: list[Section | None] = [
        None if preset is None else ("published", "Published and measured", _comparison_markup(preset, study)),
        None if compared is None else ("static-dynamic", "Static against dynamic", table_markup(compared)),
        (
            "steps",
            "Step by step",
            f'<p>Accuracy and ASR at each time.{note}</p>\n<div class="figures">\n{pictures}\n</div>',
        ),
        ("results", "All steps together", "\n".join(map(table_markup, study_tables(study)))),
        _omissions_section(study),
    ]
    return document("Evaluation over time", lead, sections)


def _comparison_markup(preset: StreamPreset, study: StreamStudy) -> str:
    lines = "".join(f"<li>{label(line, 400)}</li>" for line in preset.describe().splitlines())
    return f'<ul class="notes">{lines}</ul>\n' + "\n".join(map(table_markup, comparison_over_time(preset, study)))


def _omissions_section(study: StreamStudy) -> Section | None:
    items = "".join(f"<li>{label(line, 400)}</li>" for line in study.left_out)
    return ("problems", "Left out", f'<ul class="notes">{items}</ul>') if items else None


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
