"""A run as a report: one HTML page, Markdown, CSV or JSON.

write_report("runs/first", "report.html")
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from unpoison.errors import OptionError, shown
from unpoison.evaluation.presets import Preset
from unpoison.evaluation.report.exports import as_csv, as_json, as_markdown
from unpoison.evaluation.report.model import Report
from unpoison.evaluation.report.page import page
from unpoison.evaluation.runs import Run
from unpoison.evaluation.summary import Price

__all__ = ["FORMATS", "Report", "as_csv", "as_json", "as_markdown", "page", "write_report"]

_WRITERS = {
    ".html": page,
    ".htm": page,
    ".md": as_markdown,
    ".csv": as_csv,
    ".json": as_json,
}

FORMATS = tuple(_WRITERS)
"""The suffixes that `write_report` knows."""


def write_report(
    run: Report | Run | str | Path,
    path: str | Path,
    *,
    prices: Mapping[str, Price] | None = None,
    preset: Preset | None = None,
) -> None:
    """Write a report in the format that the file's suffix names.

    Args:
        run: A run, the folder of one, or a report that was computed before. It need not be finished.
        path: `.html`, `.md`, `.csv` or `.json`.
        prices: By model; see `summarise`.
        preset: The paper's table that was run, printed beside the measured numbers.

    Raises:
        OptionError: Another suffix, or a place that cannot be written to.
        InputError: The folder holds no run.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"a report must end in {', '.join(FORMATS)}, got {shown(str(path))}")
    report = run if isinstance(run, Report) else Report.of(run, prices=prices, preset=preset)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_WRITERS[suffix](report), encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror}; give another place") from None
