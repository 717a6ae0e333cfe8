"""Workbooks that an attacker made, read by a process with limits (`utils.confined`)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from unpoison.errors import InputError
from unpoison.scan.file_reader import READERS, FileReader, advice, read_for_parent, read_html
from unpoison.scan.parts import FileText, Part

pytestmark = pytest.mark.needs("openpyxl", "lxml")

MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


def workbook(path: Path, cells: str, merged: str = "", strings: str = "", head: str = "") -> Path:
    """A small XLSX file, changed as an attacker would."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["a shared text"])
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = f"{head}<worksheet {MAIN}><sheetData>{cells}</sheetData>{merged}</worksheet>"
    parts["xl/worksheets/sheet1.xml"] = sheet.encode()
    if strings:
        parts["xl/sharedStrings.xml"] = f"<sst {MAIN}>{strings}</sst>".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in parts.items():
            archive.writestr(name, raw)
    return path


def test_a_merge_over_the_whole_sheet_costs_nothing(tmp_path: Path) -> None:
    merged = '<mergeCells count="1"><mergeCell ref="A1:XFD1048576"/></mergeCells>'
    path = workbook(tmp_path / "a.xlsx", '<row r="1"><c r="A1"><v>7</v></c></row>', merged)
    with FileReader(seconds=20) as reader:
        assert "7" in reader.read(path, ".xlsx").reading().text


def test_an_entity_reads_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret of the machine")
    head = f'<!DOCTYPE worksheet [<!ENTITY h SYSTEM "{(tmp_path / "secret").as_uri()}">]>'
    cells = '<row r="1"><c r="A1"><v>7</v></c><c r="B1" t="inlineStr"><is><t>a &h; b</t></is></c></row>'
    path = workbook(tmp_path / "a.xlsx", cells, head=head)
    with FileReader(seconds=20) as reader:
        text = reader.read(path, ".xlsx").reading().text
    assert "7" in text
    assert "secret" not in text


def test_a_long_text_in_many_cells_is_read_to_a_bound(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, 20_001))
    path = workbook(tmp_path / "a.xlsx", rows, strings=f"<si><t>{'word ' * 200_000}</t></si>")
    with FileReader(seconds=60) as reader:
        file = reader.read(path, ".xlsx")
    assert sum(len(part.text) for part in file.parts) < 80_000_000
    assert "not read" in file.notes[0]


def test_memory_is_limited(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a.xlsx", "", strings=f"<si><t>{'word ' * 10_000_000}</t></si>")
    with FileReader(memory=2**24) as reader, pytest.raises(InputError):
        reader.read(path, ".xlsx")


def page(folder: Path, text: str, name: str = "a.html") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_web_page_is_read_here_up_to_a_size_and_a_larger_one_in_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    path = page(tmp_path, "<title>Tea</title><p>The tea is green.")
    with FileReader() as reader:
        answer = reader.ask
        monkeypatch.setattr(reader, "ask", lambda given: asked.append(given[1]) or answer(given))
        here = reader.read(path, ".html")
        monkeypatch.setattr("unpoison.scan.file_reader.SHORT", path.stat().st_size)
        assert reader.read(path, ".html") == here
        assert asked == []
        monkeypatch.setattr("unpoison.scan.file_reader.SHORT", path.stat().st_size - 1)
        assert reader.read(path, ".html") == here
        assert asked == [".html"]
    assert (here.title, here.reading().text) == ("Tea", "The tea is green.")


@pytest.mark.parametrize(("text", "refused"), [("<div></div>", True), ("", False), (" \n", False), ("<p>x", False)])
def test_a_page_without_text_says_how_to_save_it(tmp_path: Path, text: str, refused: bool) -> None:
    path = page(tmp_path, text)
    if refused:
        with pytest.raises(InputError, match=r"markup and no text; .* save the page from a browser"):
            read_html(path)
    else:
        assert read_html(path).reading().text == text.strip().removeprefix("<p>")


def test_what_a_reader_cannot_open_is_a_damaged_file_and_a_long_text_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = page(tmp_path, "The tea is green. " * 9)

    def fail(path: Path) -> FileText:
        raise KeyError("root")

    monkeypatch.setitem(READERS, ".html", fail)
    with pytest.raises(InputError, match=r"it is damaged, cut short, or no \.html file \('root'\); save it anew"):
        next(read_for_parent((str(path), ".html")))
    size = path.stat().st_size
    monkeypatch.setattr("unpoison.scan.file_reader.MAX_TEXT", 10)
    monkeypatch.setitem(READERS, ".html", lambda path: FileText((Part("x" * 99),) * (size // 3), "Tea", "Ann"))
    (read,) = read_for_parent((str(path), ".html"))
    assert sum(len(part[0]) for part in read["parts"]) == 20 * size
    assert read["about"] == ("Tea", "Ann")
    assert "of which the first are read" in read["notes"][0]


@pytest.mark.parametrize(
    ("kind", "said"),
    [("", "files without a suffix are not read; "), (".xyz", "files of type '.xyz' are not read; save it as text"),
     (".doc", "files of type '.doc' are not read; ")],
)  # fmt: skip
def test_what_is_not_read_says_what_to_do(kind: str, said: str) -> None:
    assert advice(kind).startswith(said)
    assert advice(kind).endswith(", or skip it with --ignore")
