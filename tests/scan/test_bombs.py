"""Files that are small and expand, or are nested deeper than parsers go: read to a bound, with a note."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from needs import need
from unpoison.scan.file_reader import read_for_parent
from unpoison.scan.office_package import read_slides, read_word_file
from unpoison.scan.parts import FileText
from unpoison.scan.sources import read_documents
from unpoison.scan.spreadsheet import read_spreadsheet

OFFICE = "http://schemas.openxmlformats.org"
KINDS = "wordprocessingml", "spreadsheetml", "presentationml", "drawingml"
W, X, P, A = (f"{OFFICE}/{kind}/2006/main" for kind in KINDS)
R, RELS = f"{OFFICE}/officeDocument/2006/relationships", f"{OFFICE}/package/2006/relationships"
ENTITIES = zip("bcdefghij", map("&{};".format, "abcdefghi"))
LAUGHS = "".join(f'<!ENTITY {name} "{inner * 10}">' for name, inner in ENTITIES)
DOCTYPE = f'<!DOCTYPE a [<!ENTITY a "ha ">{LAUGHS}]>'
SAID, LAST = "a text in the depth", "the last words of the file"
IN_PART = "is damaged, nested too deeply or has entities, and is read in part"


def packed(path: Path, parts: dict[str, str]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def word(path: Path, body: str, doctype: str = "") -> FileText:
    need("lxml")
    last = f"<w:p><w:r><w:t>{LAST}</w:t></w:r></w:p>"
    body = f'{doctype}<w:document xmlns:w="{W}"><w:body>{body}{last}</w:body></w:document>'
    return read_word_file(packed(path / "a.docx", {"word/document.xml": body}))


def related(kind: str, target: str) -> str:
    return f'<Relationships xmlns="{RELS}"><Relationship Id="r" Type="{R}/{kind}" Target="{target}"/></Relationships>'


@pytest.mark.parametrize("depth", [300, 3_000])
def test_a_text_in_the_depth_is_read_or_the_file_is_named(tmp_path: Path, depth: int) -> None:
    inner = f"<w:p><w:r><w:t>{SAID}</w:t></w:r></w:p>"
    file = word(tmp_path, "<w:sdt>" * depth + inner + "</w:sdt>" * depth)
    read = SAID in file.reading().text and LAST in file.reading().text
    assert (read, any(IN_PART in note for note in file.notes)) == (depth == 300, depth == 3_000)


def test_entities_are_not_expanded_and_named(tmp_path: Path) -> None:
    file = word(tmp_path, "<w:p><w:r><w:t>before &j; after</w:t></w:r></w:p>", DOCTYPE)
    assert "ha ha" not in file.reading().text
    assert IN_PART in file.notes[0]
    sheet = f'{DOCTYPE}<worksheet xmlns="{X}"><sheetData><row><c t="inlineStr"><is><t>a &b; b</t></is></c></row>'
    book = f'<workbook xmlns="{X}" xmlns:r="{R}"><sheets><sheet name="n" r:id="r"/></sheets></workbook>'
    parts = {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": related("worksheet", "s.xml")}
    path = packed(tmp_path / "a.xlsx", {**parts, "xl/s.xml": f"{sheet}</sheetData></worksheet>"})
    assert IN_PART in read_spreadsheet(path).notes[0]


def test_a_slide_that_is_named_many_times_is_read_once(tmp_path: Path) -> None:
    need("lxml")
    slide = f'<p:sld xmlns:p="{P}" xmlns:a="{A}"><a:p><a:r><a:t>{SAID}</a:t></a:r></a:p></p:sld>'
    listed = '<p:sldId r:id="r"/>' * 20_000
    shown = f'<p:presentation xmlns:p="{P}" xmlns:r="{R}">{listed}</p:presentation>'
    rels = {"ppt/_rels/presentation.xml.rels": related("slide", "s.xml")}
    file = read_slides(packed(tmp_path / "a.pptx", {"ppt/presentation.xml": shown, **rels, "ppt/s.xml": slide}))
    assert file.reading().text == SAID


@pytest.mark.parametrize(
    ("name", "content", "row"),
    [
        ("a.csv", "n" * 1_000 + "\n" + "a\n" * 1_000, 48),
        ("a.json", f"[{'1,' * 2_000}1]", 770),  # eight million took four gigabytes
    ],
)
def test_a_table_of_long_headings_or_many_values_is_read_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, row: int
) -> None:
    monkeypatch.setattr("unpoison.scan.text_files.MAX_CHARS", 50_000)
    (tmp_path / name).write_text(content)
    (document,) = read_documents(str(tmp_path / name), lambda failure: None)
    assert document.notes == (f"it is read to row {row}: over 50,000 characters, each part as 64 more",)


@pytest.mark.needs("charset_normalizer")
def test_an_encoding_is_guessed_from_a_stretch_of_a_long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.text.files.MAX_GUESSED", 2_000)
    text = "plain words\n" * 10_000 + "Паромы отправляются каждый час. " * 1_000
    (tmp_path / "a.txt").write_bytes(text.encode("cp1251"))
    (document,) = read_documents(str(tmp_path / "a.txt"), lambda failure: None)
    assert document.passage.text == text


def test_a_file_that_expands_is_read_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.scan.file_reader.MAX_TEXT", 1_000)
    monkeypatch.setattr("unpoison.scan.file_reader.MAX_RATIO", 1)
    word(tmp_path, "<w:p><w:r><w:t>word</w:t></w:r></w:p>" * 2_000)
    (reply,) = read_for_parent((str(tmp_path / "a.docx"), ".docx"))
    assert 1_000 <= sum(len(part.text) for part in reply["parts"]) == max((tmp_path / "a.docx").stat().st_size, 1_000)
    assert "expands to more than" in reply["notes"][0]
