"""Reads DOCX files: visible and hidden text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpoison.scan.office_file import MIN_POINTS, OfficeFile, check_unpacked, hidden_lines, lines_of
from unpoison.utils.extras import require

__all__ = ["read_word_file"]

MAX_UNPACKED_BYTES = 256 * 2**20
"""Maximum bytes of all parts, with pictures."""

_TEXT_PARTS = re.compile(r"/word/(header|footer|footnotes|endnotes|comments)\d*\.xml")
"""Other parts with text."""

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ELSEWHERE = (f"{W}moveFrom", "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")
"""Moved text, which is read at its new place, and duplicates for old programs."""

DEEPEST = 20
"""Maximum depth of style inheritance."""

LIGHT = (None, "auto", "FFFFFF")
"""Fills on which white letters are invisible."""


def read_word_file(path: Path) -> OfficeFile:
    """Read a DOCX file: one line per paragraph, with headers, footers, notes and comments at the end.

    Deleted text is skipped, inserted text is read, and moved text is read once. Hidden letters are hidden or tiny ones,
    and white ones on a light background, whether set by the run or by a style.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error of the libraries on a damaged file.
        MissingExtraError: python-docx is not installed.
    """
    library: Any = require("docx", "reading DOCX files")
    check_unpacked(path, MAX_UNPACKED_BYTES)
    document = library.Document(str(path))
    styles = {style.get(f"{W}styleId"): style for style in document.styles.element.iter(f"{W}style")}
    shown, unseen = list[str](), list[str]()
    for root in _roots(library, document):
        for text, hidden in _texts(library, root, styles):
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


def _texts(library: Any, root: Any, styles: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Pieces of text in order, and whether each is hidden; a line end before each paragraph."""
    for element in root.iter(f"{W}p", f"{W}r"):
        if next(element.iterancestors(*_ELSEWHERE), None) is not None:
            continue
        if element.tag == f"{W}p":
            yield "\n", False
            continue
        yield library.text.run.Run(element, None).text, _is_unseen(element, styles)


def _is_unseen(run: Any, styles: dict[str, Any]) -> bool:
    """Whether a run's letters are hidden, tiny, or white on a light background."""
    paragraph = next(run.iterancestors(f"{W}p"), None)
    looks = [run.find(f"{W}rPr"), *_styled(run, "r", styles), *_styled(paragraph, "p", styles)]
    hidden, size = _first(looks, "vanish", "true"), _first(looks, "sz", "22")
    if hidden not in (None, "0", "false", "off") or ((size or "").isdecimal() and int(size or 22) / 2 <= MIN_POINTS):
        return True
    grounds = [*looks, *(one.find(f"{W}tcPr") for one in run.iterancestors(f"{W}tc"))]
    grounds += [] if paragraph is None else [paragraph.find(f"{W}pPr")]
    fills = [shade.get(f"{W}fill") for look in grounds if look is not None for shade in look.iter(f"{W}shd")]
    marked = any(look is not None and look.find(f"{W}highlight") is not None for look in looks)
    return _first(looks, "color") == "FFFFFF" and not marked and all(fill in LIGHT for fill in fills)


def _styled(element: Any, kind: str, styles: dict[str, Any]) -> Iterator[Any]:
    """The letter properties of a run's or paragraph's style, and of the styles that it inherits from."""
    named = None if element is None else element.find(f"{W}{kind}Pr/{W}{kind}Style")
    name = None if named is None else named.get(f"{W}val")
    for _ in range(DEEPEST):
        style = styles.get(name or "")
        if style is None:
            return
        yield style.find(f"{W}rPr")
        based = style.find(f"{W}basedOn")
        name = None if based is None else based.get(f"{W}val")


def _first(looks: list[Any], name: str, default: str | None = None) -> str | None:
    """The first value of a property; `default` for a property without a value."""
    found = next((one for look in looks if look is not None and (one := look.find(f"{W}{name}")) is not None), None)
    return None if found is None else found.get(f"{W}val", default)
