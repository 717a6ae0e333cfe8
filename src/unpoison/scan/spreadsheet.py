"""Reads XLSX files: visible cells, and cells of hidden sheets, rows and columns, or with hidden letters."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from unpoison.scan.office_file import MIN_POINTS, OfficeFile, check_unpacked, hidden_lines
from unpoison.utils.extras import require

__all__ = ["read_spreadsheet"]

MAX_UNPACKED_BYTES = 64 * 2**20
"""Maximum bytes of all parts; the library needs about fifty times as much memory."""

MAX_CELLS = 1_000_000
"""Maximum number of cells to read."""

MAX_COLUMNS = 16_384
"""Maximum columns of a sheet in the format."""

BLANK = ";;;"
"""The number format that displays nothing."""

WHITE = ("FFFFFFFF", "00FFFFFF")
"""White in the library, with and without opacity."""


def read_spreadsheet(path: Path) -> OfficeFile:
    """Read an XLSX file: one line per sheet name and row, cells separated by " | ", each followed by its comment.

    Formulas are read as their last values. Hidden cells are those of hidden sheets, rows and columns, with a format
    that displays nothing, or with white or tiny letters and no fill.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error of the library on a damaged file.
        MissingExtraError: openpyxl is not installed.
    """
    library: Any = require("openpyxl", "reading XLSX files")
    check_unpacked(path, MAX_UNPACKED_BYTES)
    workbook = library.load_workbook(path, data_only=True, keep_links=False)
    shown, unseen, count = list[str](), list[str](), 0
    for sheet in workbook.worksheets:
        visible = sheet.sheet_state == "visible"
        (shown if visible else unseen).append(sheet.title)
        hidden_columns = bytearray(MAX_COLUMNS + 1)
        for column in sheet.column_dimensions.values():  # each is a range, named after its first column
            if column.hidden:
                first, last = max(column.min or 0, 0), min(column.max or 0, MAX_COLUMNS)
                hidden_columns[first : last + 1] = b"\1" * max(last + 1 - first, 0)
        # Existing cells only: `iter_rows` creates all empty cells between two corners, possibly billions.
        for number, members in groupby(sorted(sheet._cells.items()), key=lambda member: member[0][0]):
            if count >= MAX_CELLS:
                break
            row = [cell for _, cell in members]
            count += len(row)
            away = not visible or sheet.row_dimensions[number].hidden
            cells: tuple[list[str], list[str]] = ([], [])
            for cell in row:
                if cell.value is None and cell.comment is None:
                    continue
                hidden = bool(away or hidden_columns[cell.column] or _is_unseen(cell))
                cells[hidden].extend(str(part) for part in (cell.value, cell.comment and cell.comment.text) if part)
            for line, lines in zip(cells, (shown, unseen), strict=True):
                if line:
                    lines.append(" | ".join(line))
    more = sum(len(sheet._cells) for sheet in workbook.worksheets) > count
    notes = (f"only the first {count:,} of its cells are read",) if more else ()
    about = workbook.properties
    author = str(about.creator)[:200] if about.creator else None
    return OfficeFile(about.title or None, author, "\n".join(shown), hidden_lines(unseen), notes)


def _is_unseen(cell: Any) -> bool:
    """Whether its letters are white on white or tiny, or its format displays nothing."""
    font, plain = cell.font, cell.fill is None or cell.fill.fill_type is None
    white = plain and font.color is not None and font.color.type == "rgb" and font.color.rgb in WHITE
    return bool(white or cell.number_format == BLANK or (font.size is not None and font.size <= MIN_POINTS))
