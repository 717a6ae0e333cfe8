"""DOCX files as text: what a reader of the document sees, and what it hides from one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from unpoison.errors import InputError
from unpoison.scan.concealed import MIN_WORDS
from unpoison.utils.extras import require

__all__ = ["WordFile", "read_word_file"]

MAX_UNPACKED = 256 * 2**20
"""Bytes of all its parts, pictures among them."""

SMALLEST = 2.0
"""Points; smaller letters are read by nobody."""

_TEXTS = re.compile(r"/word/(header|footer|footnotes|endnotes|comments)\d*\.xml")
"""Parts beside the document itself that hold text."""

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


class WordFile(NamedTuple):
    """A document.

    Attributes:
        title: As its properties say; None without one.
        author: The same.
        text: What a reader sees, a line for each paragraph; headers, footers, notes and comments at the end.
        hidden: Paragraphs of four words and more of hidden, white or tiny letters.
    """

    title: str | None
    author: str | None
    text: str
    hidden: tuple[str, ...]


def read_word_file(path: Path) -> WordFile:
    """Read a DOCX file. Deleted text is left out, inserted text is read.

    Raises:
        InputError: It unpacks to too much.
        Exception: Whatever the libraries raise on a broken file.
        MissingExtraError: python-docx is not installed.
    """
    library: Any = require("docx", "reading DOCX files")
    with ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > MAX_UNPACKED:
        raise InputError(f"it unpacks to {size:,} bytes, more than {MAX_UNPACKED // 2**20} MiB; split it")
    document = library.Document(str(path))
    shown, unseen = list[str](), list[str]()
    for root in _roots(library, document):
        for text, hidden in _texts(library, root):
            (unseen if hidden else shown).append(text)
            if text == "\n":
                unseen.append(text)
    about = document.core_properties
    hidden_lines = tuple(line for line in _lines(unseen) if len(line.split()) >= MIN_WORDS)
    return WordFile(about.title or None, str(about.author)[:200] or None, "\n".join(_lines(shown)), hidden_lines)


def _roots(library: Any, document: Any) -> Iterator[Any]:
    yield document.element.body
    for part in document.part.package.iter_parts():
        if _TEXTS.fullmatch(str(part.partname)):
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
        yield run.text, bool(font.hidden) or white or (font.size is not None and font.size.pt <= SMALLEST)


def _lines(parts: list[str]) -> list[str]:
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return [line for line in lines if line]
