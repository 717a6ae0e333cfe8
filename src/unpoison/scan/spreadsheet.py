"""XLSX files: the cells that a reader sees, and those of hidden sheets, rows, columns and letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unpoison.scan.office_file import MIN_POINTS, OfficeFile, check_unpacked, hidden_lines
from unpoison.utils.extras import require

__all__ = ["read_spreadsheet"]

MAX_UNPACKED_BYTES = 64 * 2**20
"""Bytes of all its parts; the library takes some fifty times as much memory."""

MAX_CELLS = 1_000_000
"""Cells that are read."""

WHITE = ("FFFFFFFF", "00FFFFFF")
"""As the library says it, with and without opacity."""


def read_spreadsheet(path: Path) -> OfficeFile:
    """Read an XLSX file: a line for each sheet's name and each row, its cells apart by " | "; comments behind it.

    Formulas are read as the values that were last computed. Hidden are the cells of hidden sheets, rows and columns,
    and white and tiny letters in cells without a filling.

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
        hidden_columns = {name for name, column in sheet.column_dimensions.items() if column.hidden}
        for row in sheet.iter_rows():
            if (count := count + len(row)) > MAX_CELLS:
                break
            away = not visible or sheet.row_dimensions[row[0].row].hidden
            cells: tuple[list[str], list[str]] = ([], [])
            for cell in row:
                if cell.value is None and cell.comment is None:
                    continue
                hidden = away or cell.column_letter in hidden_columns or _is_unseen(cell)
                cells[hidden].extend(str(part) for part in (cell.value, cell.comment and cell.comment.text) if part)
            for line, lines in zip(cells, (shown, unseen), strict=True):
                if line:
                    lines.append(" | ".join(line))
    notes = (f"only the first {MAX_CELLS:,} of its cells are read",) if count > MAX_CELLS else ()
    about = workbook.properties
    author = str(about.creator)[:200] if about.creator else None
    return OfficeFile(about.title or None, author, "\n".join(shown), hidden_lines(unseen), notes)


def _is_unseen(cell: Any) -> bool:
    """Whether its letters are white on white, or tiny."""
    font, plain = cell.font, cell.fill is None or cell.fill.fill_type is None
    white = plain and font.color is not None and font.color.type == "rgb" and font.color.rgb in WHITE
    return bool(white or (font.size is not None and font.size <= MIN_POINTS))
