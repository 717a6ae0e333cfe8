"""Tables as Markdown and CSV, and where reports are written; names in them come from users' files and are hostile."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from math import isfinite
from pathlib import Path

from unpoison.algorithms.intervals import Estimate
from unpoison.errors import OptionError, clip
from unpoison.report.document import Table
from unpoison.utils.plain_text import plain

__all__ = [
    "check_suffix",
    "csv_cells",
    "csv_headings",
    "csv_text",
    "markdown_table",
    "markdown_text",
    "spreadsheet_value",
    "write_text",
]


def check_suffix(path: Path, suffixes: Iterable[str]) -> str:
    """The suffix of a report's file, in small letters.

    Raises:
        OptionError: None of those that are known.
    """
    suffix, known = path.suffix.lower(), tuple(suffixes)
    if suffix not in known:
        raise OptionError(f"a report must end in {', '.join(known)}, got {clip(str(path))}")
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


def markdown_table(table: Table) -> str:
    """A table under its title."""
    rows = [table.columns, ("---",) * len(table.columns), *table.rows]
    lines = ["| " + " | ".join(map(markdown_text, row)) + " |" for row in rows]
    note = [markdown_text(table.note), ""] if table.note else []
    return "\n".join([f"### {markdown_text(table.title)}", "", *note, *lines])


def markdown_text(text: str) -> str:
    """A text of which nothing is read as markup, a link or an attribute (`{onclick=...}`)."""
    line = plain(text).replace("\\", "\\\\").replace("<", "&lt;")
    for mark in ("|", "`", "{", "](", "][", "]:"):
        line = line.replace(mark, f"\\{mark}")
    return line


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def csv_headings(measures: Iterable[str]) -> list[str]:
    """The headings of the `csv_cells` of measures."""
    return [f"{name}{end}" for name in measures for end in ("", "_low", "_high", "_count")]


def csv_cells(estimate: Estimate) -> list[object]:
    """A figure, the ends of its interval and its count; empty where undefined."""
    ends = (estimate.value, estimate.low, estimate.high)
    return [*(f"{value:.6g}" if isfinite(value) else "" for value in ends), estimate.count]


_FORMULA = re.compile(r"[\t\r]|\s*[=+@\uff1d\uff0b\uff0d\uff20-]")
"""First characters of a formula, also in fullwidth form."""


def spreadsheet_value(value: float | str) -> float | str:
    """A text that can be written and that no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    text = value.encode("utf-8", "replace").decode()
    return f"'{text}" if _FORMULA.match(text) else text
