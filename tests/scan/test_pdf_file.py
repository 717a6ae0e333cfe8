"""PDF files: letters that nobody sees are told apart, and what a reader sees is read as before."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pypdf
import pytest

from unpoison.scan.documents import Document
from unpoison.scan.parts import FOLDED
from unpoison.scan.pdf_file import read_pdf_file
from unpoison.scan.sources import folder_documents

pytestmark = pytest.mark.needs("pypdf")

LIE = "Everybody knows that the mill was sold to Malta."
SEEN = "The mill is open on weekdays."


def page_of(commands: str) -> bytes:
    """A PDF of one page of 200 by 300 points with the font F1 and a picture X1."""
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject, NumberObject

    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(200, 300)
    font = DictionaryObject(
        {NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1")}
        | {NameObject("/BaseFont"): NameObject("/Helvetica"), NameObject("/Encoding"): NameObject("/WinAnsiEncoding")}
    )
    picture = DecodedStreamObject()
    picture.set_data(b"\x00")
    picture.update({NameObject("/Type"): NameObject("/XObject"), NameObject("/Subtype"): NameObject("/Image")})
    picture.update({NameObject(f"/{name}"): NumberObject(1) for name in ("Width", "Height")})
    picture.update(
        {NameObject("/BitsPerComponent"): NumberObject(8), NameObject("/ColorSpace"): NameObject("/DeviceGray")}
    )
    page[NameObject("/Resources")] = DictionaryObject(
        {
            NameObject("/Font"): DictionaryObject({NameObject("/F1"): font}),
            NameObject("/XObject"): DictionaryObject({NameObject("/X1"): writer._add_object(picture)}),
            NameObject("/ExtGState"): DictionaryObject(
                {NameObject("/Clear"): DictionaryObject({NameObject("/ca"): NumberObject(0)})}
            ),
        }
    )
    stream = DecodedStreamObject()
    stream.set_data(commands.encode())
    page[NameObject("/Contents")] = writer._add_object(stream)
    writer.write(file := BytesIO())
    return file.getvalue()


def read(tmp_path: Path, commands: str) -> Document:
    (tmp_path / "a.pdf").write_bytes(page_of(f"BT /F1 12 Tf 20 200 Td ({SEEN}) Tj ET\n{commands}"))
    failures = list[object]()
    (document,) = folder_documents(tmp_path, failures.append)
    assert failures == []
    return document


@pytest.mark.parametrize(
    "commands",
    [
        f"BT /F1 12 Tf 3 Tr 20 100 Td ({LIE}) Tj ET",
        f"BT 1 g /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"q 1 1 1 rg BT /F1 12 Tf 20 100 Td [({LIE[:20]}) -20 ({LIE[20:]})] TJ ET Q",
        f"BT 0 0 0 0 k /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"BT 1 1 1 scn /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"BT /F1 1 Tf 20 100 Td ({LIE}) Tj ET",
        f"BT /F1 20 Tf 0.05 0 0 0.05 20 100 Tm ({LIE}) Tj ET",
        f"q 0.1 0 0 0.1 0 0 cm BT /F1 12 Tf 200 1000 Td ({LIE}) Tj ET Q",
        f"BT /F1 12 Tf -900 100 Td ({LIE}) Tj ET",
        f"BT /F1 12 Tf 900 TL 20 100 Td ({LIE}) ' ET",
        f"q /Clear gs BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET Q",
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET q 1 g 10 90 190 30 re f Q",
        f"q 0.5 0 0 0.5 0 0 cm BT /F1 12 Tf 40 200 Td ({LIE}) Tj ET Q 0 0 1 rg 10 90 190 30 re f",
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET q 0 80 200 90 re W n 0 0 200 150 re f Q",
    ],
    ids=[
        "invisible",
        "white",
        "white rgb",
        "white cmyk",
        "white scn",
        "tiny",
        "tiny matrix",
        "tiny page",
        "beside",
        "below",
        "transparent",
        "under white",
        "under blue",
        "under a cut area",
    ],
)
def test_what_nobody_sees_is_hidden(tmp_path: Path, commands: str) -> None:
    document = read(tmp_path, commands)
    assert document.covert.text.split() == LIE.split()
    assert document.passage.text.strip() == SEEN


@pytest.mark.parametrize(
    "commands",
    [
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"BT /F1 1 Tf 12 0 0 12 20 100 Tm ({LIE}) Tj ET",
        f"q 1 g Q BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"q BT 3 Tr ET Q BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"0 0 1 rg 0 90 200 30 re f 1 g BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"q 200 0 0 300 0 0 cm /X1 Do Q BT /F1 12 Tf 3 Tr 20 100 Td ({LIE}) Tj ET",
        f"BT 1 scn /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"q 1 g 10 90 190 30 re f Q BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET",
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET 10 90 40 30 re f",
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET 10 90 190 30 re S",
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET q /Clear gs 10 90 190 30 re f Q",
        f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET q 0 0 200 50 re W n 0 0 200 300 re f Q",
    ],
    ids=[
        "black",
        "scaled",
        "restored colour",
        "restored mode",
        "on blue",
        "scanned",
        "one component",
        "on white",
        "beside white",
        "in a frame",
        "under a marker",
        "under what is cut off",
    ],
)
def test_what_a_reader_sees_is_not(tmp_path: Path, commands: str) -> None:
    document = read(tmp_path, commands)
    assert document.covert.text == ""
    assert LIE in document.passage.text.replace("\n", " ")


def test_text_behind_a_picture_is_folded_and_under_a_shape_there_is_a_note(tmp_path: Path) -> None:
    lie = f"BT /F1 12 Tf 20 100 Td ({LIE}) Tj ET"
    document = read(tmp_path, f"{lie} q 190 0 0 40 10 90 cm /X1 Do Q")
    assert (document.hidden.text, document.hidden.place(0)) == (LIE, "page 1")
    assert (document.passage.text, document.covert.text) == (SEEN, "")
    document = read(tmp_path, f"{lie} 0 90 m 200 90 l 200 120 l 0 120 l f")
    assert LIE in document.passage.text
    assert document.notes == ("shapes may cover some of its text, first on page 1: look at the page",)


def test_commands_without_their_operands_leave_a_page_out_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(page_of("BT Tf Tm (x) Tj ET"))
    (tmp_path / "b.pdf").write_bytes(page_of(f"BT /F1 12 Tf 20 200 Td ({SEEN}) Tj ET"))
    failures = list[object]()
    (document,) = folder_documents(tmp_path, failures.append)
    assert document.passage.text.strip() == SEEN
    assert len(failures) == 1


def test_everything_that_a_form_says_is_read_and_scripts_are_named(tmp_path: Path) -> None:
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

    said = [f"{LIE} {number}" for number in range(6)]
    first, value, choice, caption, alone, script = map(TextStringObject, said)
    writer = pypdf.PdfWriter(BytesIO(page_of(f"BT /F1 12 Tf 20 200 Td ({SEEN}) Tj ET")))
    field = {"/Subtype": NameObject("/Widget"), "/DV": first, "/V": value, "/Opt": ArrayObject([choice])}
    field["/MK"] = DictionaryObject({NameObject("/CA"): caption})
    writer.add_annotation(0, DictionaryObject({NameObject(name): one for name, one in field.items()}))
    named = {"/T": TextStringObject("x"), "/FT": NameObject("/Tx"), "/V": alone}
    away = writer._add_object(DictionaryObject({NameObject(name): one for name, one in named.items()}))
    form = DictionaryObject({NameObject("/Fields"): ArrayObject([away])})
    writer.root_object[NameObject("/AcroForm")] = form
    writer.root_object[NameObject("/OpenAction")] = DictionaryObject({NameObject("/JS"): script})
    writer.write(tmp_path / "a.pdf")
    file = read_pdf_file(tmp_path / "a.pdf")
    places = {line: part.place for part in file.parts for line in part.text.split("\n") if LIE in line}
    assert places == dict.fromkeys(said[:4], "page 1, form field") | {said[4]: "form field on no page"}
    assert file.notes == ("its scripts are not read",)


def test_notes_fields_bookmarks_and_properties_are_read_and_attachments_are_named(tmp_path: Path) -> None:
    from pypdf.annotations import FreeText
    from pypdf.generic import DictionaryObject, NameObject, TextStringObject

    writer = pypdf.PdfWriter(BytesIO(page_of(f"BT /F1 12 Tf 20 200 Td ({SEEN}) Tj ET")))
    writer.add_annotation(0, FreeText(text=LIE, rect=(50, 50, 150, 90)))
    field = {NameObject("/Subtype"): NameObject("/Widget"), NameObject("/V"): TextStringObject(LIE)}
    writer.add_annotation(0, DictionaryObject(field))
    writer.add_outline_item(title=LIE, page_number=0)
    writer.add_attachment("evil.txt", b"Ignore")
    writer.add_metadata({"/Subject": LIE})
    writer.write(tmp_path / "a.pdf")
    file = read_pdf_file(tmp_path / "a.pdf")
    assert [(part.place, part.hidden) for part in file.parts if part.text == LIE] == [
        ("page 1, note", ""), ("page 1, form field", ""), ("properties", FOLDED), ("bookmarks", FOLDED)
    ]  # fmt: skip
    assert file.notes == ("its attachments are not read: evil.txt",)
