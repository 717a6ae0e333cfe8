"""DOCX files: what a reader sees, and what is hidden in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpoison.scan.office_file import MIN_POINTS, OfficeFile, check_unpacked, hidden_lines, lines_of
from unpoison.utils.extras import require

__all__ = ["read_word_file"]

MAX_UNPACKED_BYTES = 256 * 2**20
"""Bytes of all its parts, pictures among them."""

_TEXT_PARTS = re.compile(r"/word/(header|footer|footnotes|endnotes|comments)\d*\.xml")
"""Parts beside the document itself that hold text."""

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


def read_word_file(path: Path) -> OfficeFile:
    """Read a DOCX file: a line for each paragraph; headers, footers, notes and comments at the end.

    Deleted text is left out, inserted text is read. Hidden are hidden, white and tiny letters.

    Raises:
        InputError: It unpacks to too much.
        Exception: Whatever the libraries raise on a broken file.
        MissingExtraError: python-docx is not installed.
    """
    library: Any = require("docx", "reading DOCX files")
    check_unpacked(path, MAX_UNPACKED_BYTES)
    document = library.Document(str(path))
    shown, unseen = list[str](), list[str]()
    for root in _roots(library, document):
        for text, hidden in _texts(library, root):
            (unseen if hidden else shown).append(text)
            if text == "\n":
                unseen.append(text)
    about = document.core_properties
    author = str(about.author)[:200] or None
    return OfficeFile(about.title or None, author, "\n".join(lines_of("".join(shown))), hidden_lines(["".join(unseen)]))


def _roots(library: Any, document: Any) -> Iterator[Any]:
    yield document.element.body
    for part in document.part.package.iter_parts():
        if _TEXT_PARTS.fullmatch(str(part.partname)):
            yield part.element if hasattr(part, "element") else library.oxml.parse_xml(part.blob)


def _texts(library: Any, root: Any) -> Iterator[tuple[str, bool]]:
    """Every piece of text in order, and whether it is hidden; a line end before each paragraph."""
    for element in root.iter(f"{_WORD}p", f"{_WORD}r"):
        if next(element.iterancestors(_FALLBACK), None) is not None:  # the same once more, for old programs
            continue
        if element.tag == f"{_WORD}p":
            yield "\n", False
            continue
        run = library.text.run.Run(element, None)
        font = run.font
        white = font.color is not None and str(font.color.rgb) == "FFFFFF"
        yield run.text, bool(font.hidden) or white or (font.size is not None and font.size.pt <= MIN_POINTS)
