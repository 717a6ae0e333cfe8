"""XLSX files: the cells that a reader sees, and those of hidden sheets, rows, columns and letters."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from unpoison.scan.office_file import MIN_POINTS, OfficeFile, check_unpacked, hidden_lines
from unpoison.utils.extras import require

__all__ = ["read_spreadsheet"]

MAX_UNPACKED_BYTES = 64 * 2**20
"""Bytes of all its parts; the library takes some fifty times as much memory."""

MAX_CELLS = 1_000_000
"""Cells that are read."""

MAX_COLUMNS = 16_384
"""Of a sheet; the format has no more."""

BLANK = ";;;"
"""The number format that shows nothing, of numbers and texts."""

WHITE = ("FFFFFFFF", "00FFFFFF")
"""As the library says it, with and without opacity."""


def read_spreadsheet(path: Path) -> OfficeFile:
    """Read an XLSX file: a line for each sheet's name and each row, its cells apart by " | "; comments behind it.

    Formulas are read as the values that were last computed. Hidden are the cells of hidden sheets, rows and columns,
    cells whose format shows nothing, and white and tiny letters in cells without a filling.

    Raises:
        InputError: It unpacks to too much.
        Exception: Whatever the library raises on a broken file.
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
        for column in sheet.column_dimensions.values():  # each stands for a range, under the name of its first
            if column.hidden:
                first, last = max(column.min or 0, 0), min(column.max or 0, MAX_COLUMNS)
                hidden_columns[first : last + 1] = b"\1" * max(last + 1 - first, 0)
        # The cells that there are: between two far corners `iter_rows` makes billions of empty ones.
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
    """Whether its letters are white on white or tiny, or its format shows nothing."""
    font, plain = cell.font, cell.fill is None or cell.fill.fill_type is None
    white = plain and font.color is not None and font.color.type == "rgb" and font.color.rgb in WHITE
    return bool(white or cell.number_format == BLANK or (font.size is not None and font.size <= MIN_POINTS))
