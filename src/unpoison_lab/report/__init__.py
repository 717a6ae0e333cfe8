"""A run as a report: one HTML page, Markdown or JSON.

write_report("runs/first", "report.html")
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unpoison.core.codec import to_row
from unpoison.report.document import check_suffix, markdown_table, markdown_text, write_text
from unpoison_lab.evaluation.presets import Preset
from unpoison_lab.evaluation.runs import Run
from unpoison_lab.evaluation.summary import Summary
from unpoison_lab.report.model import Report
from unpoison_lab.report.page import page
from unpoison_lab.report.tables import (
    certified_accuracy,
    comparison_tables,
    conclusions,
    cost_table,
    difference_table,
    guarantee_tables,
    problems,
    status,
    summary_tables,
)

__all__ = ["WRITERS", "Report", "as_json", "as_markdown", "page", "write_report"]


def as_markdown(report: Report) -> str:
    """Every table, for a repository or an issue."""
    parts = ["# Evaluation", f"{status(report)} Shares are in percent with 95 % intervals, times in milliseconds."]
    parts += [markdown_text(sentence) for sentence in conclusions(report)]
    if report.preset is not None:
        parts.append("\n".join(f"- {markdown_text(line)}" for line in report.preset.describe()))
    tables = [*comparison_tables(report), *summary_tables(report), *guarantee_tables(report)]
    tables += [difference_table(report), cost_table(report)]
    parts += [markdown_table(table) for table in tables if table.rows]
    if remarks := problems(report):
        parts += ["### Problems", "\n".join(f"- {markdown_text(problem)}" for problem in remarks)]
    return "\n\n".join(parts) + "\n"


def as_json(report: Report) -> str:
    """The manifest and every figure and comparison, as one object; undefined values are null."""
    document = {
        "manifest": dict(report.run.manifest),
        "complete": report.run.complete,
        "cells": [_cell(report, summary) for summary in report.summaries],
        "comparisons": [entry.to_dict() for entry in report.comparisons],
        "problems": problems(report),
        "preset": None if report.preset is None else _preset(report, report.preset),
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _cell(report: Report, summary: Summary) -> dict[str, Any]:
    certified = [estimate.to_dict() for estimate in certified_accuracy(report.cells[summary.id])]
    return {**summary.to_dict(), **({"certified": certified} if certified else {})}


def _preset(report: Report, preset: Preset) -> dict[str, Any]:
    numbers = [
        {
            **to_row(number, leave_out=("scenario",)),
            "by_seed": [one.to_dict() for one in preset.by_seed(number, report.by_scenario)],
        }
        for number in preset.published
    ]
    return {
        "name": preset.name,
        "source": preset.source,
        "used": dict(preset.used),
        "seeds": list(preset.seeds),
        "same_setting": preset.same_setting,
        "numbers": numbers,
    }


WRITERS = {".html": page, ".md": as_markdown, ".json": as_json}
"""The forms of a report by the suffix of its file."""


def write_report(
    run: Report | Run | str | Path,
    path: str | Path,
    *,
    preset: Preset | None = None,
) -> None:
    """Write a report in the format that the file's suffix names.

    Args:
        run: A run, the folder of one, or a report that was computed before. It need not be finished.
        path: `.html`, `.md` or `.json`.
        preset: The paper's table that was run, printed beside the measured numbers.

    Raises:
        OptionError: Another suffix, or a place that cannot be written to.
        InputError: The folder holds no run.
    """
    write = WRITERS[check_suffix(Path(path), WRITERS)]
    write_text(path, write(run if isinstance(run, Report) else Report.of(run, preset=preset)))
