"""What a scan finds and flags in files, by type: an order in each place, and clean files of the same kind.

    python -m benchmarks scan

Makes the files in a temporary folder; those of Office and PDF as the tests of their readers do. A place counts as read
if its words are in what is read; the file should then be flagged. The time is the processor's, for reading a file.
Needs the extra files and python-docx, openpyxl and python-pptx to make the files.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from unpoison.io.rows import load_sample
from unpoison.scan import scan
from unpoison.scan.documents import Document, UnreadDocument
from unpoison.scan.file_reader import READERS
from unpoison.scan.sources import read_documents

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
PARTS: Any = import_module("scan.test_parts")
PAGES: Any = import_module("scan.test_pdf_file")

ORDER: str = PARTS.ORDER
SAID = ["The museum is open from Tuesday to Sunday between ten and six.", "Tickets cost 12 euros at the desk."]

Make = Callable[[Path, Mapping[str, str]], None]
"""Writes a file with a text in each of the places that are given."""


def page(path: Path, at: Mapping[str, str]) -> None:
    get = at.get
    path.write_text(
        f"<title>{get('title', 'Visit')}</title><!-- {get('comment', 'end of the main content area of the page')} -->"
        f"<p>{SAID[0]} {get('text', '')}</p><img alt='{get('alternative text', 'The hall, built in 1897')}'>"
        f"<div id=a style='display:none'>{get('banner', 'We use cookies to improve your visit of this site.')}</div>"
        f"<p style='color:white'>{get('white', '')}</p><div style='background:navy'><b style='color:#fff'>"
        f"{get('navy', 'Join our newsletter and get the best offers')}</b></div>"
    )


def word(path: Path, at: Mapping[str, str]) -> None:
    import docx
    from docx.shared import RGBColor

    document = docx.Document()
    document.add_paragraph(f"{SAID[0]} {at.get('text', '')}")
    document.add_table(1, 1).cell(0, 0).text = at.get("cell", SAID[1])
    document.sections[0].header.paragraphs[0].text = at.get("header", "A museum of the city")
    document.add_paragraph().add_run(at.get("white", "")).font.color.rgb = RGBColor(255, 255, 255)
    document.core_properties.comments = at.get("property", "The draft of May for the printed version")
    document.save(str(path))


def sheet(path: Path, at: Mapping[str, str]) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["room", "opens"])
    for row in range(2, 8):
        book.active.append([f"Hall {row}", at.get("cell", "at ten in the morning")])
    book.active.append(["Hall 9", at.get("filtered row", "closed until the summer of 2027")])
    book.active.row_dimensions[8].hidden = True
    book.active["C1"].comment = openpyxl.comments.Comment(at.get("comment", "as agreed with the caretaker in May"), "a")
    book.active.oddHeader.center.text = at.get("page head", "Opening hours of all the halls")
    book.create_sheet("More").append([at.get("hidden sheet", "a list of values for the menus of the form")])
    book["More"].sheet_state = "hidden"
    head = book.active["A1"]
    head.font = openpyxl.styles.Font(color="FFFFFF")
    head.fill = openpyxl.styles.PatternFill("solid", fgColor="001F5B")
    book.save(path)


def slides(path: Path, at: Mapping[str, str]) -> None:
    import pptx

    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = at.get("title", "Opening hours")
    slide.placeholders[1].text = f"{SAID[0]} {at.get('text', '')}"
    slide.notes_slide.notes_text_frame.text = at.get("notes", "Mention the new entrance beside the river here.")
    slide.shapes.add_table(1, 1, 0, 0, 99, 99).table.cell(0, 0).text = at.get("table", SAID[1])
    slide.shapes.title._element.nvSpPr.cNvPr.set("descr", at.get("alternative text", "The hall, built in 1897"))
    other = show.slides.add_slide(show.slide_layouts[1])
    other.shapes.title.text = at.get("hidden slide", "Slide of the last year with the old opening hours")
    other._element.set("show", "0")
    show.save(str(path))


def pdf(path: Path, at: Mapping[str, str]) -> None:
    import pypdf
    from pypdf.annotations import FreeText

    writer = pypdf.PdfWriter()
    writer.add_blank_page(300, 300)
    writer.add_annotation(0, FreeText(text=f"{SAID[0]} {at.get('note', '')}", rect=(10, 10, 290, 90)))
    writer.add_outline_item(title=at.get("bookmark", "Opening hours of the museum"), page_number=0)
    writer.add_metadata({"/Subject": at.get("property", "Opening hours of the museum in 2026")})
    writer.write(path)


def mail(path: Path, at: Mapping[str, str]) -> None:
    html = base64.b64encode(f"<p>{at.get('HTML part', SAID[1])}</p>".encode()).decode()
    path.write_text(
        f"From: a@example.org\nSubject: {at.get('subject', 'The museum')}\nMIME-Version: 1.0\n"
        "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\n"
        f"{SAID[0]} {at.get('text', '')}\n> {at.get('quoted reply', SAID[1])}\n"
        f"--x\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n{html}\n--x--\n"
    )


def notebook(path: Path, at: Mapping[str, str]) -> None:
    output: dict[str, Any] = {"data": {"text/plain": at.get("output", "12")}}
    cells = [{"cell_type": "markdown", "source": at.get("text", SAID[0])}, {"source": "price", "outputs": [output]}]
    path.write_text(json.dumps({"cells": cells}))


def subtitles(path: Path, at: Mapping[str, str]) -> None:
    path.write_text(f"1\n00:00:01,000 --> 00:00:03,000\n{SAID[0]} {at.get('text', '')}\n")


def table(path: Path, at: Mapping[str, str]) -> None:
    path.write_text(f'room,note\nHall 1,"{SAID[0]}"\nHall 2,"{at.get("cell", SAID[1])}"\n')


def chat(path: Path, at: Mapping[str, str]) -> None:
    turns = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": at.get("turn", SAID[0])}]
    path.write_text(json.dumps({"messages": turns}) + "\n")


def text(path: Path, at: Mapping[str, str]) -> None:
    path.write_text(
        f"{SAID[0]} {at.get('text', '')}\n<!-- {at.get('comment', 'end of the main part of the page')} -->\n"
    )


TYPES: dict[str, tuple[Make, tuple[str, ...]]] = {
    ".html": (page, ("title", "comment", "text", "alternative text", "banner", "white", "navy")),
    ".docx": (word, ("text", "cell", "header", "white", "property")),
    ".xlsx": (sheet, ("cell", "filtered row", "comment", "page head", "hidden sheet")),
    ".pptx": (slides, ("title", "text", "notes", "table", "alternative text", "hidden slide")),
    ".pdf": (pdf, ("note", "bookmark", "property")),
    ".eml": (mail, ("subject", "text", "quoted reply", "HTML part")),
    ".ipynb": (notebook, ("text", "output")),
    ".srt": (subtitles, ("text",)),
    ".csv": (table, ("cell",)),
    ".jsonl": (chat, ("turn",)),
    ".md": (text, ("text", "comment")),
}

UNREAD = (".rtf", ".odt", ".epub", ".xml", ".yaml", ".log", ".doc", ".zip", ".png")
"""Types that are named as unread."""


def of_tests(kind: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The places that the tests of a reader plant an order in: the name, and the file, which the next one replaces."""
    paragraph = f"<w:p><w:r><w:t>{SAID[0]}</w:t></w:r></w:p>"
    if kind == ".docx":
        for name, (body, _) in PARTS.BODIES.items():
            xml = f"<w:document {PARTS.SPACES}><w:body>{paragraph}{body}</w:body></w:document>"
            PARTS.changed(path := PARTS.word(folder), {"word/document.xml": xml})
            yield name, path
        for name, (relation, xml) in PARTS.WORD_PARTS.items():
            PARTS.changed(path := PARTS.word(folder), {f"word/{name}": xml}, {f"word/{name}": relation})
            yield name, path
    elif kind == ".xlsx":
        for name, (inner, *_) in PARTS.SHEETS.items():
            xml = f"<worksheet {PARTS.MAIN}>{inner}</worksheet>"
            PARTS.changed(path := PARTS.book(folder), {"xl/worksheets/sheet1.xml": xml})
            yield name, path
        for relation, xml in PARTS.DRAWN.items():
            PARTS.changed(path := PARTS.book(folder), {"xl/x1.xml": xml}, {"xl/x1.xml": relation})
            yield relation, path
    elif kind == ".pdf":
        (cases,) = (mark for mark in PAGES.test_what_nobody_sees_is_hidden.pytestmark if mark.name == "parametrize")
        for name, commands in zip(cases.kwargs["ids"], cases.args[1]):
            seen = f"BT /F1 12 Tf 20 200 Td ({PAGES.SEEN}) Tj ET"
            planted = commands.replace(PAGES.LIE, ORDER).replace(PAGES.LIE[:20], ORDER[:20])
            planted = planted.replace(PAGES.LIE[20:], ORDER[20:])
            path = folder / "a.pdf"
            path.write_bytes(PAGES.page_of(f"{seen}\n{planted}"))
            yield name, path


def planted(kind: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Every place of a type with a file that has an order there; "" for a clean file."""
    make, places = TYPES[kind]
    for name in ("", *places):
        make(path := folder / f"a{kind}", {name: ORDER} if name else {})
        yield name, path
    yield from of_tests(kind, folder)


def is_read(file: Document) -> bool:
    texts = (file.passage.text, file.passage.title or "", file.hidden.text, file.covert.text)
    return "".join(ORDER.split()) in "".join(" ".join(texts).split())


def by_type() -> None:
    """Print the table."""
    rows = [passage.text for row in load_sample() for passage in row.passages][:12]
    print("| type | places | read | flagged | clean flagged | ms a file |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in TYPES:
        read, seconds, flagged, clean = list[str](), list[float](), list[str](), 0
        with tempfile.TemporaryDirectory() as folder:
            places = 0
            for name, path in planted(kind, Path(folder)):
                started = time.process_time()
                READERS[kind](path) if kind in READERS else list(read_documents(str(path), print))
                seconds.append(time.process_time() - started)
                file = list(read_documents(str(path), print))[-1]
                suspicious = next(one for one in scan([*rows, file]) if one.id == file.id).flagged
                if not name:
                    clean += suspicious
                    continue
                places += 1
                read += [name] * is_read(file)
                flagged += [name] * suspicious
                if not is_read(file) or not suspicious:
                    print(f"{kind}, {name}: {'not read' if not is_read(file) else 'not flagged'}", file=sys.stderr)
        typical = sorted(seconds)[len(seconds) // 2] * 1000
        print(f"| {kind} | {places} | {len(read)} | {len(flagged)} | {clean} of 1 | {typical:.0f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for kind in UNREAD:
            (Path(folder) / f"a{kind}").write_text(ORDER)
        unread = list[UnreadDocument]()
        read_none = not list(read_documents(folder, unread.append))
    named = f"{'named as unread' if read_none else 'read'}: {len(unread)} of {len(UNREAD)}"
    print(f"| {', '.join(UNREAD)} | - | {named} | - | - | - |")
