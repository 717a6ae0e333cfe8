"""A run as a report: one HTML page, Markdown or JSON.

write_report("runs/first", "report.html")
"""

from __future__ import annotations

from pathlib import Path

from unpoison.bench.evaluation.presets import Preset
from unpoison.bench.evaluation.runs import Run
from unpoison.bench.report.exports import as_json, as_markdown
from unpoison.bench.report.model import Report
from unpoison.bench.report.page import page
from unpoison.report.files import check_suffix, write_text

__all__ = ["WRITERS", "Report", "as_json", "as_markdown", "page", "write_report"]

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
