"""Reads DOCX and XLSX files: visible text, and text that a reader does not see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from unpoison.errors import InputError
from unpoison.scan.parts import COVERT, FOLDED, FileText, Part
from unpoison.utils.extras import require

__all__ = ["MIN_POINTS", "read_spreadsheet", "read_word_file"]

MIN_POINTS = 2.0
"""Smallest visible font size, in points."""


def check_unpacked(path: Path, most: int) -> None:
    """Refuse a zipped file that unpacks to more than `most` bytes.

    Raises:
        InputError: It is larger.
    """
    with ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > most:
        raise InputError(f"it unpacks to {size:,} bytes, more than {most // 2**20} MiB; split it")


MAX_DOCX_BYTES = 256 * 2**20
"""Maximum bytes of all parts, with pictures."""

_TEXT_PARTS = re.compile(r"/word/(header|footer|footnotes|endnotes|comments)\d*\.xml")
"""Other parts with text."""

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ELSEWHERE = (f"{W}moveFrom", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")
"""Moved text, which is read at its new place, and duplicates for old programs."""

DEEPEST = 20
"""Maximum depth of style inheritance."""

LIGHT = (None, "auto", "FFFFFF")
"""Fills on which white letters are invisible."""


def read_word_file(path: Path) -> FileText:
    """Read a DOCX file by paragraphs, with headers, footers, notes and comments at the end.

    Deleted text is skipped, inserted text is read, and moved text is read once. Hidden letters are hidden or tiny ones,
    and white ones on a light background, whether set by the run or by a style.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error of the libraries on a damaged file.
        MissingExtraError: python-docx is not installed.
    """
    library: Any = require("docx", "reading DOCX files")
    check_unpacked(path, MAX_DOCX_BYTES)
    document = library.Document(str(path))
    styles = {style.get(f"{W}styleId"): style for style in document.styles.element.iter(f"{W}style")}
    parts, number = list[Part](), 0
    for root in _roots(library, document):
        for text, hidden in _texts(library, root, styles):
            number += text == "\n"
            if parts and text != "\n" and parts[-1].hidden == hidden and parts[-1].place == f"paragraph {number:,}":
                parts[-1] = parts[-1]._replace(text=parts[-1].text + text)
            elif text != "\n":
                parts.append(Part(text, f"paragraph {number:,}", hidden))
    about = document.core_properties
    return FileText(tuple(parts), about.title or None, str(about.author)[:200] or None)


def _roots(library: Any, document: Any) -> Iterator[Any]:
    yield document.element.body
    for part in document.part.package.iter_parts():
        if _TEXT_PARTS.fullmatch(str(part.partname)):
            yield part.element if hasattr(part, "element") else library.oxml.parse_xml(part.blob)


def _texts(library: Any, root: Any, styles: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Pieces of text in order, and whether each is hidden; a line end before each paragraph."""
    for element in root.iter(f"{W}p", f"{W}r"):
        if next(element.iterancestors(*_ELSEWHERE), None) is not None:
            continue
        if element.tag == f"{W}p":
            yield "\n", ""
            continue
        yield library.text.run.Run(element, None).text, COVERT if _is_unseen_run(element, styles) else ""


def _is_unseen_run(run: Any, styles: dict[str, Any]) -> bool:
    """Whether a run's letters are hidden, tiny, or white on a light background."""
    paragraph = next(run.iterancestors(f"{W}p"), None)
    looks = [run.find(f"{W}rPr"), *_styled(run, "r", styles), *_styled(paragraph, "p", styles)]
    hidden, size = _first(looks, "vanish", "true"), _first(looks, "sz", "22")
    if hidden not in (None, "0", "false", "off") or ((size or "").isdecimal() and int(size or 22) / 2 <= MIN_POINTS):
        return True
    grounds = [*looks, *(one.find(f"{W}tcPr") for one in run.iterancestors(f"{W}tc"))]
    grounds += [] if paragraph is None else [paragraph.find(f"{W}pPr")]
    fills = [shade.get(f"{W}fill") for look in grounds if look is not None for shade in look.iter(f"{W}shd")]
    marked = any(look is not None and look.find(f"{W}highlight") is not None for look in looks)
    return _first(looks, "color") == "FFFFFF" and not marked and all(fill in LIGHT for fill in fills)


def _styled(element: Any, kind: str, styles: dict[str, Any]) -> Iterator[Any]:
    """The letter properties of a run's or paragraph's style, and of the styles that it inherits from."""
    named = None if element is None else element.find(f"{W}{kind}Pr/{W}{kind}Style")
    name = None if named is None else named.get(f"{W}val")
    for _ in range(DEEPEST):
        style = styles.get(name or "")
        if style is None:
            return
        yield style.find(f"{W}rPr")
        based = style.find(f"{W}basedOn")
        name = None if based is None else based.get(f"{W}val")


def _first(looks: list[Any], name: str, default: str | None = None) -> str | None:
    """The first value of a property; `default` for a property without a value."""
    found = next((one for look in looks if look is not None and (one := look.find(f"{W}{name}")) is not None), None)
    return None if found is None else found.get(f"{W}val", default)


MAX_XLSX_BYTES = 64 * 2**20
"""Maximum bytes of all parts; the library needs about fifty times as much memory."""

MAX_CELLS = 1_000_000
"""Maximum number of cells to read."""

MAX_COLUMNS = 16_384
"""Maximum columns of a sheet in the format."""

BLANK = ";;;"
"""The number format that displays nothing."""

WHITE = ("FFFFFFFF", "00FFFFFF")
"""White in the library, with and without opacity."""


def read_spreadsheet(path: Path) -> FileText:
    """Read an XLSX file: one line per sheet name and row, cells separated by " | ", each followed by its comment.

    Formulas are read as their last values. Hidden cells are those of hidden sheets, rows and columns, with a format
    that displays nothing, or with white or tiny letters and no fill.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error of the library on a damaged file.
        MissingExtraError: openpyxl is not installed.
    """
    library: Any = require("openpyxl", "reading XLSX files")
    check_unpacked(path, MAX_XLSX_BYTES)
    workbook = library.load_workbook(path, data_only=True, keep_links=False)
    parts, count = list[Part](), 0
    for sheet in workbook.worksheets:
        visible = sheet.sheet_state == "visible"
        parts.append(Part(sheet.title, f"sheet {sheet.title}", "" if visible else FOLDED))
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
            cells: dict[str, list[str]] = {"": [], FOLDED: [], COVERT: []}
            for cell in row:
                if cell.value is None and cell.comment is None:
                    continue
                away_too = away or hidden_columns[cell.column]
                hidden = COVERT if _is_unseen_cell(cell) else FOLDED if away_too else ""
                cells[hidden].extend(str(part) for part in (cell.value, cell.comment and cell.comment.text) if part)
            place = f"sheet {sheet.title}, row {number:,}"
            parts += [Part(" | ".join(line), place, hidden) for hidden, line in cells.items() if line]
    more = sum(len(sheet._cells) for sheet in workbook.worksheets) > count
    notes = (f"only the first {count:,} of its cells are read",) if more else ()
    about = workbook.properties
    author = str(about.creator)[:200] if about.creator else None
    return FileText(tuple(parts), about.title or None, author, notes)


def _is_unseen_cell(cell: Any) -> bool:
    """Whether its letters are white on white or tiny, or its format displays nothing."""
    font, plain = cell.font, cell.fill is None or cell.fill.fill_type is None
    white = plain and font.color is not None and font.color.type == "rgb" and font.color.rgb in WHITE
    return bool(white or cell.number_format == BLANK or (font.size is not None and font.size <= MIN_POINTS))
