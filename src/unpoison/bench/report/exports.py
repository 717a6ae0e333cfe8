"""The report as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from pathlib import Path

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.presets import Preset, PublishedNumber
from unpoison.bench.evaluation.specs import wording
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report.certification import certify, guarantee_tables
from unpoison.bench.report.methods import methods_tables, methods_terms
from unpoison.bench.report.model import SETTINGS, Report, setting
from unpoison.bench.report.paper_comparison import comparison_tables, measure_meanings
from unpoison.bench.report.tables import cost_table, difference_table, problems, status, summary_tables
from unpoison.errors import OptionError, clip
from unpoison.report.document import Table
from unpoison.report.rendering import plain

__all__ = [
    "FORMATS",
    "as_csv",
    "as_json",
    "as_markdown",
    "check_format",
    "csv_cells",
    "csv_headings",
    "csv_text",
    "markdown_code",
    "markdown_table",
    "markdown_text",
    "spreadsheet_value",
    "write_text",
]

FORMATS = (".html", ".htm", ".md", ".csv", ".json")
"""The suffixes of a report."""


def check_format(path: str | Path) -> str:
    """The suffix of a report.

    Raises:
        OptionError: None of `FORMATS`.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"a report must end in {', '.join(FORMATS)}, got {clip(str(path))}")
    return suffix


def write_text(path: str | Path, text: str) -> None:
    """Write a report; its folder is made where there is none.

    Raises:
        OptionError: A place that cannot be written to.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}; give another place") from None


def as_markdown(report: Report) -> str:
    """The whole report but the questions, for a repository or an issue."""
    manifest = report.run.manifest
    parts = ["# Evaluation", status(report)]
    parts.append("Shares are in percent with 95 % intervals; times are in milliseconds.")
    if report.preset is not None:
        parts += [
            f"## {markdown_text(report.preset.source)}",
            "\n".join(f"- {markdown_text(t)}" for t in _preset_lines(report)),
        ]
        parts += [markdown_table(table) for table in comparison_tables(report)]
    parts.append("## Results")
    parts += [markdown_table(table) for table in summary_tables(report)]
    parts += [markdown_table(table) for table in guarantee_tables(report)]
    parts += [markdown_table(table, "##") for table in (difference_table(report), cost_table(report)) if table.rows]
    parts.append("## How it was measured")
    parts += [markdown_table(table) for table in methods_tables(report)]
    terms = [f"- **{term}**: {markdown_text(' '.join(sentences))}" for term, sentences in methods_terms(report)]
    parts.append("\n".join(terms))
    remarks = problems(report)
    if remarks:
        parts += ["## Problems", "\n".join(f"- {markdown_text(problem)}" for problem in remarks)]
    parts += ["## Manifest", f"```json\n{json.dumps(manifest, indent=2).replace('```', '')}\n```"]
    return "\n\n".join(parts) + "\n"


def _preset_lines(report: Report) -> list[str]:
    if report.preset is None:
        return []
    return [
        *report.preset.describe().splitlines(),
        *(f"counted: {sentence}" for sentence in measure_meanings(report.preset)),
    ]


def markdown_table(table: Table, level: str = "###") -> str:
    """A table under its title, a heading of this level."""
    lines = [f"{level} {markdown_text(table.title)}", ""]
    lines.append(_line(table.columns))
    lines.append("|" + " --- |" * len(table.columns))
    return "\n".join([*lines, *(_line(row) for row in table.rows)])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"


def markdown_text(text: str) -> str:
    """Names come from users' files: nothing of them may be read as markup, a link or an attribute (`{onclick=...}`)."""
    line = plain(text).replace("\\", "\\\\").replace("<", "&lt;")
    for mark in ("|", "`", "{", "](", "][", "]:"):
        line = line.replace(mark, f"\\{mark}")
    return line


def markdown_code(text: str) -> str:
    """The same as code, where a backslash escapes nothing but the end of a cell."""
    line = plain(text).replace("`", "'").replace("|", "\\|")
    return f"`{line}`"


def as_csv(report: Report) -> str:
    """One row per cell: the scenario, the counts, and every measure with its interval as numbers."""
    fields = ("id", "defense", *SETTINGS, "corpus")
    headings = [*fields, "wording", "expected", "done", "failed", "cost", *csv_headings(MEASURES)]
    return csv_text([headings, *map(_csv_row, report.summaries)])


def _csv_row(summary: Summary) -> Iterator[object]:
    yield summary.id
    for name in ("defense", *SETTINGS, "corpus"):
        value = getattr(summary.scenario, name)
        yield "" if value in (None, ()) else spreadsheet_value(setting(value))
    yield wording(summary.scenario.attack) if summary.scenario.attacked else ""
    yield from (summary.expected, summary.done, summary.failed, "" if summary.cost is None else summary.cost)
    for name in MEASURES:
        yield from csv_cells(summary[name])


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def csv_headings(measures: Iterable[str]) -> list[str]:
    """What stands above the `csv_cells` of measures."""
    return [f"{name}{end}" for name in measures for end in ("", "_low", "_high", "_count")]


def csv_cells(estimate: Estimate) -> list[object]:
    """A figure, the ends of its interval and its count; empty where undefined."""
    ends = (estimate.value, estimate.low, estimate.high)
    return [*(f"{value:.6g}" if isfinite(value) else "" for value in ends), estimate.count]


def spreadsheet_value(value: float | str) -> float | str:
    """A text that can be written and that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    text = value.encode("utf-8", "replace").decode()
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def as_json(report: Report) -> str:
    """The manifest and every figure and comparison, as one object; None stands for what is undefined."""
    preset = None
    if report.preset is not None:
        preset = {
            "name": report.preset.name,
            "source": report.preset.source,
            "used": dict(report.preset.used),
            "prompts": list(report.preset.prompts),
            "substitutions": list(report.preset.substitutions),
            "lacks": list(report.preset.lacks),
            "seeds": list(report.preset.seeds),
            "same_setting": report.preset.same_setting,
            "differences": list(report.preset.differences),
            "numbers": _numbers(report, report.preset),
        }
    document = {
        "manifest": dict(report.run.manifest),
        "complete": report.run.complete,
        "cells": [summary.to_dict() for summary in report.summaries],
        "certified": [entry.to_dict() for entry in certify(report.run.cells)],
        "comparisons": [entry.to_dict() for entry in report.comparisons],
        "methods": {
            "tables": [_table(table) for table in methods_tables(report)],
            "terms": {term: list(sentences) for term, sentences in methods_terms(report)},
        },
        "problems": problems(report),
        "preset": preset,
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _table(table: Table) -> dict[str, object]:
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {"title": table.title, "rows": rows}


def _numbers(report: Report, preset: Preset) -> list[dict[str, object]]:
    by_scenario = {summary.scenario: summary for summary in report.summaries}
    return [_number(number, preset.by_seed(number, by_scenario)) for number in preset.published]


def _number(number: PublishedNumber, by_seed: Sequence[Estimate]) -> dict[str, object]:
    measured = [estimate.to_dict() for estimate in by_seed]
    first = measured[0] if measured else {}
    return {
        **{name: getattr(number, name) for name in ("table", "row", "variant", "column", "measure")},
        "published": number.value,
        **{name: getattr(number, name) for name in ("bound", "spread")},
        **{name: list(getattr(number, name)) for name in ("row_differs", "column_differs")},
        "measured": first.get("value"),
        "low": first.get("low"),
        "high": first.get("high"),
        "by_seed": [estimate["value"] for estimate in measured],
    }
