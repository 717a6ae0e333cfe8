"""Reads XLSX files as a stream: visible cells, and those that a reader does not see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from unpoison.scan.office_package import MIN_POINTS, Package, R, local
from unpoison.scan.parts import COVERT, FOLDED, FileText, Part

__all__ = ["read_spreadsheet"]

MAX_CELLS = 1_000_000
"""Maximum number of cells to read."""

MAX_CHARS = 32 * 2**20
"""Maximum characters to read: a shared text may stand in every cell."""

MAX_STRINGS = 64 * 2**20
"""Maximum characters of shared texts."""

MAX_MERGED = 2_000
"""Maximum number of merged ranges whose covered cells are told apart."""

BLANK = ";;;"
"""The number format that displays nothing."""

X = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_CODE = re.compile(r'&(?:[A-Z]|\d{1,3}|"[^"]*")')
"""A code in a page head, such as &C, which centres what follows."""
_LITERAL = re.compile(r'"((?:[^"]|"")*)"')
_DAYS = re.compile(r"^(?!General)(?:[^\"\\\[]|\"[^\"]*\"|\\.|\[[^\]]*\])*?[ymdh]", re.IGNORECASE)
_DATES = frozenset((*range(14, 23), 45, 46, 47))
WHITE = ("FFFFFFFF", "00FFFFFF", "FFFFFF")


class _Style(NamedTuple):
    """A format of cells: whether its numbers are dates, its letters cannot be seen, or are white without a fill."""

    is_date: bool = False
    unseen: bool = False
    white: bool = False


class _Sheet(NamedTuple):
    """What the cells of a sheet are read with; `coloured` if a table or a condition may fill them."""

    name: str
    away: bool
    coloured: bool
    strings: list[str]
    styles: list[_Style]


def read_spreadsheet(path: Path) -> FileText:
    """Read an XLSX file: one line for each row, cells separated by " | ", then what is drawn, noted or asked there.

    Formulas are read as their last values, and without one as the texts in them. Cells of hidden sheets, rows and
    columns, and below merged ones, can be unfolded. Those with a format that displays nothing, and with white or tiny
    letters and no fill, are seen by nobody. Linear time; no cell is created that the file does not have.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error on a damaged file.
        MissingExtraError: lxml is not installed.
    """
    with Package(path) as package:
        book = package.root("xl/workbook.xml")
        named = package.related("xl/workbook.xml")
        kinds = {relation.kind: relation.name for relation in named.values()}
        strings = list(_strings(package, kinds.get("sharedStrings", "xl/sharedStrings.xml")))
        styles = _styles(package.root(kinds.get("styles", "")))
        parts, left, chars = list[Part](), MAX_CELLS, MAX_CHARS
        for one in book.iter(f"{X}sheet"):
            relation, title = named.get(one.get(f"{R}id") or ""), one.get("name") or ""
            if relation is None:
                continue
            coloured = any(inner.kind == "table" for inner in package.related(relation.name).values())
            sheet = _Sheet(title, one.get("state", "visible") != "visible", coloured, strings, styles)
            away = FOLDED if sheet.away else ""
            parts.append(Part(title, f"sheet {title}", away))
            for part, count in _rows(package, relation.name, sheet):
                left, chars = left - count, chars - len(part.text)
                if left < 0 or chars < 0:
                    break
                parts.append(part)
            more = package.read(relation.name, f"sheet {title}") if relation.kind == "chartsheet" else ()
            drawn = [*more, *(part for inner in package.related(relation.name).values()
                              for part in package.read(inner.name, f"sheet {title}, {inner.kind}"))]  # fmt: skip
            parts += [part._replace(hidden=part.hidden or away) for part in drawn]
        if left < 0 or chars < 0:
            package.notes.append("its cells are not read beyond the first 1,000,000 or 33,554,432 characters")
        return package.file(parts)


def _strings(package: Package, name: str) -> Iterator[str]:
    """The shared texts."""
    if not package.has(name):
        return
    length = 0
    for item in package.elements(name, f"{X}si"):
        text = "".join(one.text or "" for one in item.iter(f"{X}t") if local(one.getparent()) != "rPh")
        length += len(text)
        yield text if length <= MAX_STRINGS else ""


def _styles(root: Any) -> list[_Style]:
    if root is None:
        return []
    formats = {one.get("numFmtId"): one.get("formatCode") or "" for one in root.iter(f"{X}numFmt")}
    fonts = [_is_unseen_font(font) for font in root.findall(f"{X}fonts/{X}font")]
    fills = [fill.find(f"{X}patternFill") for fill in root.findall(f"{X}fills/{X}fill")]
    plain = [fill is None or fill.get("patternType", "none") == "none" for fill in fills]
    styles = list[_Style]()
    for one in root.findall(f"{X}cellXfs/{X}xf"):
        number, font, fill = one.get("numFmtId", "0"), int(one.get("fontId", 0)), int(one.get("fillId", 0))
        white, tiny = fonts[font] if font < len(fonts) else (False, False)
        code = formats.get(number, "")
        bare = fill >= len(plain) or plain[fill]
        is_date = bool(_DAYS.match(code)) if code else int(number) in _DATES
        styles.append(_Style(is_date, tiny or code == BLANK, white and bare))
    return styles


def _is_unseen_font(font: Any) -> tuple[bool, bool]:
    """Whether letters are white, and tiny."""
    colour, size = font.find(f"{X}color"), font.find(f"{X}sz")
    white = colour is not None and colour.get("rgb") in WHITE
    return white, size is not None and float(size.get("val", 11)) <= MIN_POINTS


def _rows(package: Package, name: str, sheet: _Sheet) -> Iterator[tuple[Part, int]]:
    """The rows of a sheet as parts, each with its number of cells, then the messages of what follows the cells."""
    merged = _merged(package, name)
    hidden_columns, number = list[tuple[int, int]](), 0
    wanted = (f"{X}row", f"{X}col", *(f"{X}{one}" for one in _BESIDE))
    for element in package.elements(name, *wanted):
        kind = local(element)
        if kind == "col":
            if element.get("hidden") in ("1", "true"):
                hidden_columns.append((int(element.get("min", 0)), int(element.get("max", 0))))
        elif kind == "row":
            number = int(element.get("r") or number + 1)
            away = sheet.away or element.get("hidden") in ("1", "true")
            covered = [one for one in merged if one[0] <= number <= one[2]]
            cells: dict[str, list[tuple[str, str]]] = {"": [], FOLDED: [], COVERT: []}
            for place, column, value, style in _cells(element, number, sheet):
                hiding = [one for one in covered if one[1] <= column <= one[3]]
                below = any((number, column) != one[:2] for one in hiding)
                folded = away or below or any(first <= column <= last for first, last in hidden_columns)
                unseen = style.unseen or (style.white and not sheet.coloured)
                cells[COVERT if unseen else FOLDED if folded else ""].append((place, value))
            for hidden, line in cells.items():
                if line:
                    where = f"sheet {sheet.name}, {line[0][0] if len(line) == 1 else f'row {number:,}'}"
                    yield Part(" | ".join(value for _, value in line), where, hidden), len(line)
        else:
            where = f"sheet {sheet.name}, {_BESIDE[kind]}"
            texts = [_CODE.sub(" ", element.text or ""), *element.attrib.values()]
            yield Part("\n".join(text for text in texts if len(text.split()) > 1), where, FOLDED), 1


_HEADS = dict.fromkeys(
    (f"{page}{end}" for page in ("odd", "even", "first") for end in ("Header", "Footer")), "page head"
)
_BESIDE: Mapping[str, str] = {**_HEADS, "dataValidation": "input message", "hyperlink": "link"}
"""Elements behind the cells with text for people, and what they are called."""


def _cells(row: Any, number: int, sheet: _Sheet) -> Iterator[tuple[str, int, str, _Style]]:
    """The name, the column, the value and the style of the cells of a row that have a value."""
    column = 0
    for cell in row.iter(f"{X}c"):
        reference = _REFERENCE.fullmatch(cell.get("r") or "")
        column = _column(reference[1]) if reference else column + 1
        style_number = int(cell.get("s") or 0)
        style = sheet.styles[style_number] if style_number < len(sheet.styles) else _Style()
        value = _value(cell, style, sheet.strings)
        if value:
            yield cell.get("r") or f"row {number:,}", column, value, style


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _value(cell: Any, style: _Style, strings: list[str]) -> str:
    kind, found, formula = cell.get("t", "n"), cell.find(f"{X}v"), cell.find(f"{X}f")
    if kind == "inlineStr":
        return "".join(one.text or "" for one in cell.iter(f"{X}t"))
    text = "" if found is None else (found.text or "")
    if not text and formula is not None and formula.text:
        literals = _LITERAL.findall(formula.text)
        return "".join(literals).replace('""', '"') if literals else f"={formula.text}"
    if kind == "s":
        return strings[int(text)] if text.isdecimal() and int(text) < len(strings) else ""
    if kind == "b":
        return "TRUE" if text == "1" else "FALSE"
    if kind == "n" and text:
        return _date(float(text)) if style.is_date else text
    return text


def _date(days: float) -> str:
    try:
        return str(datetime(1899, 12, 30) + timedelta(days=round(days, 6))).removesuffix(" 00:00:00")  # noqa: DTZ001
    except OverflowError:
        return f"{days:g}"


def _merged(package: Package, name: str) -> list[tuple[int, int, int, int]]:
    """Top, left, bottom and right of the merged ranges; only the first `MAX_MERGED`."""
    found = list[tuple[int, int, int, int]]()
    for one in package.elements(name, f"{X}mergeCell", f"{X}row"):
        corners = _REFERENCE.findall(one.get("ref") or "")
        if len(corners) == 2 and len(found) < MAX_MERGED:
            (left, top), (right, bottom) = corners
            found.append((int(top), _column(left), int(bottom), _column(right)))
    return found
