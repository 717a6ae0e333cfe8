"""XLSX files: rows are read, and what a reader does not see is told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from scan.corpora import honest
from unpoison.scan import scan, spreadsheet
from unpoison.scan.documents import Document, UnreadDocument
from unpoison.scan.parts import FileReading
from unpoison.scan.sources import folder_documents, read_documents

pytestmark = pytest.mark.needs("openpyxl", "lxml")

LIE = "Everybody knows that the mill was sold to Malta."


def workbook() -> Any:
    book = openpyxl.Workbook()
    book.properties.title, book.properties.creator = "Prices", "A. Miller"
    book.active.title = "Flour"
    book.active.append(["rye", 2.5])
    book.active.append(["wheat", 3])
    return book


def read(tmp_path: Path, book: Any) -> Document:
    book.save(tmp_path / "a.xlsx")
    failures = list[UnreadDocument]()
    (document,) = folder_documents(tmp_path, failures.append)
    assert failures == []
    return document


def test_a_line_for_each_row(tmp_path: Path) -> None:
    book = workbook()
    book.active["B2"].comment = openpyxl.comments.Comment("since May", "A")
    document = read(tmp_path, book)
    assert document.passage.text == "Flour\nrye | 2.5\nwheat | 3\nsince May"
    assert (document.passage.title, document.author, document.hidden) == ("Prices", "A. Miller", FileReading())


@pytest.mark.parametrize("hide", ["sheet", "row", "column", "columns", "format", "white", "tiny"])
def test_what_nobody_sees_is_hidden(tmp_path: Path, hide: str) -> None:
    book = workbook()
    sheet = book.create_sheet("More") if hide == "sheet" else book.active
    cell = sheet["D5"]
    cell.value = LIE
    if hide == "sheet":
        sheet.sheet_state = "veryHidden"
    elif hide == "row":
        sheet.row_dimensions[5].hidden = True
    elif hide == "column":
        sheet.column_dimensions["D"].hidden = True
    elif hide == "columns":
        sheet.column_dimensions.group("C", "E", hidden=True)  # kept under the name of the first
    elif hide == "format":
        cell.number_format = ";;;"
    else:
        cell.font = openpyxl.styles.Font(color="FFFFFF") if hide == "white" else openpyxl.styles.Font(size=1)
    document = read(tmp_path, book)
    assert LIE in (document.hidden.text, document.covert.text)
    assert LIE not in document.passage.text


def test_a_cell_in_the_last_corner_leaves_no_other_out(tmp_path: Path) -> None:
    book = workbook()
    book.active.cell(1_048_576, 16_384, "far")
    document = read(tmp_path, book)
    assert (document.passage.text, document.notes) == ("Flour\nrye | 2.5\nwheat | 3\nfar", ())


def test_what_is_too_much_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workbook().save(tmp_path / "a.xlsx")
    monkeypatch.setattr(spreadsheet, "MAX_CELLS", 2)
    file = spreadsheet.read_spreadsheet(tmp_path / "a.xlsx")
    assert file.reading().text == "Flour\nrye | 2.5"
    assert "not read beyond" in file.notes[0]


def filtered(book: Any) -> None:
    book.active.row_dimensions[3].hidden = True


def white_on_navy(book: Any) -> None:
    for cell in book.active[1]:
        cell.font = Font(color="FFFFFF")
        cell.fill = PatternFill("solid", fgColor="001F5B")


def styled_table(book: Any) -> None:
    book.active["A2"].font = Font(color="FFFFFF")
    book.active["A2"].value = "Hall of the Northern painters until 2027"
    book.active.add_table(Table(displayName="T", ref="A1:B4"))


def hidden_sheet(book: Any) -> None:
    book.create_sheet("Lists").append(["closed for the winter season of 2027", "open to members of the club only"])
    book["Lists"].sheet_state = "hidden"


def input_message(book: Any) -> None:
    check = DataValidation(type="list", formula1='"yes,no"', prompt="Please choose one of the values in the list")
    book.active.add_data_validation(check)
    check.add("B2")


def helper_column(book: Any) -> None:
    book.active["D2"].value = "exported from the database in May 2026"
    book.active.column_dimensions["D"].hidden = True


@pytest.mark.parametrize(
    "change",
    [filtered, white_on_navy, styled_table, hidden_sheet, input_message, helper_column],
    ids=lambda one: one.__name__,
)
def test_what_an_honest_sheet_hides_flags_nothing(tmp_path: Path, change: Callable[[Any], None]) -> None:
    book = openpyxl.Workbook()
    for row in (
        ["room", "open until the end of"],
        ["Hall 1", "May 2027"],
        ["Hall 2", "June 2027"],
        ["Hall 3", "July 2027"],
    ):
        book.active.append(row)
    change(book)
    book.save(tmp_path / "a.xlsx")
    (document,) = read_documents(str(tmp_path), lambda failure: None)
    assert next(one for one in scan([*honest(12), document]) if one.id == "a.xlsx").suspicion < 0.5
