"""A run as files for a paper: every table as LaTeX and CSV, every picture as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from unpoison.bench.evaluation.runs import Run
from unpoison.bench.report.certification import guarantee_figures, guarantee_tables
from unpoison.bench.report.exports import as_csv, csv_text, spreadsheet_value, write_text
from unpoison.bench.report.figures import poison_figures, rank_figures, sweep_figures, trade_off_figures
from unpoison.bench.report.methods import methods_tables
from unpoison.bench.report.model import Report
from unpoison.bench.report.paper_comparison import comparison_tables
from unpoison.bench.report.tables import cost_table, difference_table, summary_tables
from unpoison.report.charts import Figure
from unpoison.report.document import Table
from unpoison.report.latex import latex_table
from unpoison.report.rendering import plain
from unpoison.report.svg_file import figure_file

__all__ = ["every_figure", "every_table", "write_tables"]

MAX_NAME = 60
"""Characters of a file's name that come from a title."""


def every_table(report: Report) -> list[Table]:
    """All tables of a report, in its order; those without a row are left out."""
    tables = [
        *comparison_tables(report),
        *summary_tables(report),
        *guarantee_tables(report),
        difference_table(report, most=len(report.comparisons)),
        cost_table(report, most=len(report.summaries)),
        *methods_tables(report),
    ]
    return [table for table in tables if table.rows]


def every_figure(report: Report) -> Iterator[Figure]:
    """All pictures of a report, in its order."""
    drawn = (guarantee_figures, poison_figures, trade_off_figures, sweep_figures, rank_figures)
    return chain.from_iterable(figures(report) for figures in drawn)


def write_tables(run: Report | Run | str | Path, folder: str | Path) -> list[Path]:
    """Write `table-01-....tex` and `.csv` for every table, `figure-01-....svg` for every picture.

    `tables.tex` puts all tables in, and `scenarios.csv` has every figure of every scenario as a number. What else the
    folder holds stays.

    Args:
        run: A run, the folder of one, or a report that was computed before.
        folder: Made where there is none.

    Returns:
        The files, in the order of the report.

    Raises:
        OptionError: A place that cannot be written to.
        InputError: The folder holds no run.
    """
    report = run if isinstance(run, Report) else Report.of(run)
    texts: dict[str, str] = {}
    inputs = []
    for number, table in enumerate(every_table(report), 1):
        name = f"table-{number:02}{_slug(table.title)}"
        texts[f"{name}.tex"] = latex_table(table, f"{number:02}{_slug(table.title)}")
        rows = [table.columns, *table.rows]
        texts[f"{name}.csv"] = csv_text(map(_csv_cell, row) for row in rows)
        inputs.append(rf"\input{{{name}}}")
    texts["tables.tex"] = "\n".join(["% needs \\usepackage{booktabs}", *inputs]) + "\n"
    texts["scenarios.csv"] = as_csv(report)
    for number, figure in enumerate(every_figure(report), 1):
        texts[f"figure-{number:02}{_slug(figure.title)}.svg"] = figure_file(figure)
    for name, text in texts.items():
        write_text(Path(folder, name), text)
    return [Path(folder, name) for name in texts]


_FIGURE = re.compile(r"-|[-+]\d+(\.\d+)?( \*)?( \[[-+\d., ]+\])?( p [<=] [\d.]+)?")
"""A cell that begins as a formula would and is a figure: `-3.2 * [-5.0, -1.0] p = 0.012`, or the hyphen of none."""


def _csv_cell(cell: str) -> object:
    text = plain(cell)
    return text if _FIGURE.fullmatch(text) else spreadsheet_value(text)


def _slug(title: str) -> str:
    """The words of a title as the end of a file's name, of small ASCII letters, digits and hyphens."""
    words = re.findall(r"[a-z0-9]+", plain(title)[:MAX_NAME].lower())
    return "".join(f"-{word}" for word in words)
