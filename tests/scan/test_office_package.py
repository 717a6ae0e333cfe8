"""DOCX files: what a reader sees, and what a style, a colour or a size hides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import docx
import pytest

from unpoison.scan.office_package import read_word_file
from unpoison.scan.parts import COVERT

pytestmark = pytest.mark.needs("docx")

LIE, SEEN = "Everybody knows that the mill was sold.", "The mill is open on weekdays."


def written(path: Path, make: Any) -> Any:
    document = docx.Document()
    document.add_paragraph(SEEN)
    make(document)
    document.save(str(path / "a.docx"))
    return read_word_file(path / "a.docx")


def hidden_style(document: Any) -> None:
    from docx.enum.style import WD_STYLE_TYPE

    base = document.styles.add_style("Unseen", WD_STYLE_TYPE.PARAGRAPH)
    base.font.hidden = True
    child = document.styles.add_style("Child", WD_STYLE_TYPE.PARAGRAPH)
    child.base_style = base
    document.add_paragraph(LIE, style="Child")


def white(document: Any) -> Any:
    from docx.shared import RGBColor

    run = document.add_paragraph().add_run(LIE)
    run.font.color.rgb = RGBColor(255, 255, 255)
    return run


def tiny_style(document: Any) -> None:
    from docx.enum.style import WD_STYLE_TYPE
    from docx.shared import Pt

    document.styles.add_style("Tiny", WD_STYLE_TYPE.CHARACTER).font.size = Pt(1)
    document.add_paragraph().add_run(LIE, style="Tiny")


@pytest.mark.parametrize("make", [hidden_style, white, tiny_style])
def test_letters_that_nobody_sees_are_hidden_whoever_says_so(tmp_path: Path, make: Any) -> None:
    file = written(tmp_path, make)
    assert (file.reading().text, file.reading(COVERT).text) == (SEEN, LIE)


def test_white_letters_in_a_dark_cell_are_seen(tmp_path: Path) -> None:
    def make(document: Any) -> None:
        from docx.oxml import parse_xml
        from docx.oxml.ns import nsdecls

        cell = document.add_table(1, 1).cell(0, 0)
        cell._tc.get_or_add_tcPr().append(parse_xml(f'<w:shd {nsdecls("w")} w:val="clear" w:fill="1F3864"/>'))
        white(cell)

    file = written(tmp_path, make)
    assert (LIE in file.reading().text, file.reading(COVERT).text) == (True, "")


def test_what_was_moved_is_read_once(tmp_path: Path) -> None:
    def make(document: Any) -> None:
        from docx.oxml import parse_xml
        from docx.oxml.ns import nsdecls

        for name in ("moveFrom", "moveTo"):
            paragraph = document.add_paragraph()
            run = f"<w:r><w:t>{LIE}</w:t></w:r>"
            paragraph._p.append(parse_xml(f'<w:{name} {nsdecls("w")} w:id="1" w:author="a">{run}</w:{name}>'))

    assert written(tmp_path, make).reading().text.count(LIE) == 1
