"""A folder as documents: what is read, what a reader does not see, and what is named because it was not read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest

from unpoison.errors import InputError
from unpoison.scan import office_package
from unpoison.scan.documents import Document, UnreadDocument
from unpoison.scan.office_package import read_word_file
from unpoison.scan.sources import folder_documents

pytestmark = pytest.mark.needs("docx")

LIE = "Everybody knows that the mill was sold to Malta."


def read(folder: Path, ignore: tuple[str, ...] = ()) -> tuple[dict[str, Document], dict[str, str]]:
    failures = list[UnreadDocument]()
    documents = {document.passage.id or "": document for document in folder_documents(folder, failures.append, ignore)}
    return documents, {failure.location: failure.error for failure in failures}


def written(path: Path) -> Any:
    document = docx.Document()
    document.core_properties.title, document.core_properties.author = "The mill", "A. Miller"
    document.add_paragraph("The mill is open.")
    document.add_table(1, 2).rows[0].cells[1].text = "It grinds rye."
    document.sections[0].header.paragraphs[0].text = "A header"
    document.save(str(path))
    return document


def test_a_word_file_is_read_whole(tmp_path: Path) -> None:
    written(tmp_path / "a.docx")
    documents, failures = read(tmp_path)
    document = documents["a.docx"]
    assert document.passage.text == "The mill is open.\nIt grinds rye.\nA header"
    assert (document.passage.title, document.author, failures) == ("The mill", "A. Miller", {})


def test_boxes_notes_and_changes_are_read_once(tmp_path: Path) -> None:
    document = written(tmp_path / "a.docx")
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    alternative = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = "<w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p></w:txbxContent>"
    paragraph = (
        f"<w:p {space} {alternative}><w:ins><w:r><w:t>Inserted.</w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>Deleted.</w:delText></w:r></w:del><w:r><mc:AlternateContent>"
        f"<mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    document.element.body.insert(0, docx.oxml.parse_xml(paragraph))
    document.save(str(tmp_path / "a.docx"))
    (read_document,) = read(tmp_path)[0].values()
    assert read_document.passage.text.startswith("Inserted.\nIn a box.\nThe mill")
    assert read_document.passage.text.count("In a box.") == 1


def test_what_is_not_read_is_named_and_nothing_is_lost_with_it(tmp_path: Path) -> None:
    written(tmp_path / "good.docx")
    (tmp_path / "bad.docx").write_bytes(b"PK\x03\x04 broken")
    (tmp_path / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    (tmp_path / "plain").write_text("no suffix")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "table.xlsx").write_bytes(b"PK")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    documents, failures = read(tmp_path)
    assert documents.keys() == {"good.docx"}
    assert failures.keys() == {"bad.docx", "old.doc", "plain", "deep/table.xlsx", "link.txt"}
    assert "'.doc' are not read; save it as DOCX" in failures["old.doc"]
    assert "link" in failures["link.txt"]
    documents, failures = read(tmp_path, ("*.xlsx", "*.doc*", "plain", "link.txt"))
    assert (documents, failures) == ({}, {})


def test_a_word_file_that_unpacks_to_too_much_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "a.docx", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image1.bin", bytes(2**22))
    monkeypatch.setattr(office_package, "MAX_BYTES", 2**21)
    with pytest.raises(InputError, match="unpacks to"):
        read_word_file(tmp_path / "a.docx")
