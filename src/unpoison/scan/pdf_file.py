"""Reads PDF files: visible text, and letters drawn invisibly.

A page is a list of drawing commands. Its text is extracted twice: without the commands that draw invisible letters, and
without those that draw visible ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import hypot
from pathlib import Path
from typing import Any

from unpoison.errors import InputError
from unpoison.scan.office_package import MIN_POINTS
from unpoison.scan.parts import COVERT, FOLDED, FileText, Part
from unpoison.utils.extras import require

__all__ = ["read_pdf_file"]

MAX_PAGES = 10_000
"""Maximum number of pages to read."""

MAX_PAGE_BYTES = 4 * 2**20
"""Maximum unpacked bytes of the drawing commands of a page; a page of text has about ten thousand."""

MAX_DEPTH = 20
"""Maximum depth of bookmarks."""

MIN_OPACITY = 0.02
"""Smallest visible opacity."""

MAX_CHARS = 64 * 2**20
"""Maximum characters to read from a file."""

WRITE = (b"Tj", b"TJ", b"'", b'"')
"""Commands that draw letters."""

PAINT = (b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*", b"sh", b"Do", b"INLINE IMAGE")
"""Commands that fill an area or draw a picture, on which later letters may be visible."""

INVISIBLE = (3, 7)
"""Rendering modes in which letters are neither filled nor stroked (ISO 32000-1, 9.3.6)."""

Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def read_pdf_file(path: Path) -> FileText:
    """Read a PDF file by pages.

    Hidden letters are those in the invisible mode, white or tiny ones, and those outside the page. On a page with a
    picture or a filled area, invisible and white letters count as visible, because scanned pages and table headers have
    such text. Letters inside reusable forms count as visible.

    Form fields and notes are visible on their page; bookmarks, subject and keywords are hidden, and attachments are
    named as unread.

    Raises:
        InputError: None of its pages can be read.
        Exception: Any error of the library on a damaged file.
        MissingExtraError: pypdf is not installed.
    """
    library: Any = require("pypdf", "reading PDF files")
    reader = library.PdfReader(path)
    parts, left_out, length = list[Part](), list[int](), 0
    for number, page in enumerate(reader.pages[:MAX_PAGES], 1):
        if length > MAX_CHARS:
            left_out.append(number)
            continue
        try:
            contents = page.get_contents()
            small = contents is None or len(contents.get_data()) <= MAX_PAGE_BYTES
            seen, hidden = _page_texts(page, contents) if small and contents is not None else ("", "")
            parts += Part(seen, f"page {number:,}"), Part(hidden, f"page {number:,}", COVERT)
            parts += _annotations(page, number)
            length += len(seen) + len(hidden)
        except Exception:  # the library may raise anything on hostile pages; the others are read
            small = False
        left_out += [] if small else [number]
    if len(left_out) == min(len(reader.pages), MAX_PAGES):
        raise InputError("none of its pages can be read")
    notes = list[str]()
    if left_out:
        notes.append(
            f"{len(left_out):,} of its pages cannot be read or are too large, the first of them page {left_out[0]:,}"
        )
    if len(reader.pages) > MAX_PAGES:
        notes.append(f"only the first {MAX_PAGES:,} of its {len(reader.pages):,} pages are read")
    about = reader.metadata
    for kind in ("/Subject", "/Keywords"):
        parts += [Part(str(about[kind]), "properties", FOLDED)] if about is not None and about.get(kind) else []
    with suppress(Exception):  # a damaged outline or tree of names hides no page
        parts += (Part(title, "bookmarks", FOLDED) for title in _titles(reader.outline))
        attached = [str(name) for name in reader.attachments]
        notes += [f"its attachments are not read: {', '.join(attached[:5])}"] if attached else []
    title = str(about.title) if about is not None and about.title else None
    author = str(about.author)[:200] if about is not None and about.author else None
    return FileText(tuple(parts), title, author, tuple(notes))


def _annotations(page: Any, number: int) -> Iterator[Part]:
    """The texts of a page's form fields and notes."""
    for one in page.get("/Annots") or ():
        with suppress(Exception):  # the others are read
            note = one.get_object()
            kind = str(note.get("/Subtype", ""))[1:]
            fields = [note, *([note["/Parent"].get_object()] if "/Parent" in note else [])]
            values = (str(field[name]) for field in fields for name in ("/Contents", "/V", "/TU") if name in field)
            text = "\n".join(value for value in values if not value.startswith("/"))
            folded = FOLDED if int(note.get("/F", 0)) & 2 or kind == "Link" else ""
            yield Part(text, f"page {number:,}, {'form field' if kind == 'Widget' else 'note'}", folded)


def _titles(outline: Any, depth: int = 0) -> Iterator[str]:
    """The titles of bookmarks, which are nested lists."""
    for one in outline if depth < MAX_DEPTH else ():
        if isinstance(one, list):
            yield from _titles(one, depth + 1)
        else:
            yield str(one.title)


def _page_texts(page: Any, contents: Any) -> tuple[str, str]:
    """The visible and the hidden text of a page."""
    from pypdf.generic import ContentStream, NameObject

    commands = ContentStream(contents, page.pdf)
    operations = list(commands.operations)
    hidden = set(_unseen(operations, [float(edge) for edge in page.mediabox], _transparent(page)))
    if not hidden:
        return str(page.extract_text()), ""

    def extract(left_out: Sequence[int]) -> str:
        out = set(left_out)
        commands.operations = [operation for i, operation in enumerate(operations) if i not in out]
        page[NameObject("/Contents")] = commands
        return str(page.extract_text())

    written = [i for i, (_, command) in enumerate(operations) if command in WRITE]
    return extract(sorted(hidden)), extract([i for i in written if i not in hidden])


def _transparent(page: Any) -> frozenset[str]:
    """Names of the graphics states of a page in which fillings are transparent."""
    states: Any = (page.get("/Resources") or {}).get("/ExtGState")
    found = {str(name): one.get_object() for name, one in states.get_object().items()} if states else {}
    return frozenset(name for name, one in found.items() if float(one.get("/ca", 1)) <= MIN_OPACITY)


@dataclass(frozen=True, slots=True)
class _State:
    """The graphics state that `q` saves and `Q` restores.

    Attributes:
        page: The current transformation.
        mode: How letters are rendered.
        size: Of letters, before any transformation.
        white: Whether they are filled with white.
        clear: Whether fillings are transparent.
    """

    page: Matrix = IDENTITY
    mode: int = 0
    size: float = 0.0
    white: bool = False
    clear: bool = False


class _Pen:
    """Follows the commands of a page: where the next letters stand, and how they look."""

    def __init__(self, transparent: Collection[str] = ()) -> None:
        self._transparent = transparent
        self.state, self._saved = _State(), list[_State]()
        self.text = self._line = IDENTITY
        self._leading = 0.0
        self.painted = False

    def follow(self, command: bytes, operands: Sequence[Any]) -> None:
        """Take in one command; those that concern neither place nor look are passed over."""
        self.painted = self.painted or command in PAINT
        if command in (b"q", b"Q"):
            if command == b"q":
                self._saved.append(self.state)
            elif self._saved:
                self.state = self._saved.pop()
        elif command in (b"BT", b"Tm", b"Td", b"TD", b"TL", b"T*", b"'", b'"'):
            self._place(command, operands)
        elif command in (b"g", b"rg", b"k", b"sc", b"scn"):
            self.state = replace(self.state, white=_is_white(command, operands))
        elif command == b"cm":
            self.state = replace(self.state, page=_product(_matrix(operands), self.state.page))
        elif command == b"Tf":
            self.state = replace(self.state, size=abs(float(operands[1])))
        elif command == b"Tr":
            self.state = replace(self.state, mode=int(operands[0]))
        elif command == b"gs":
            self.state = replace(self.state, clear=str(operands[0]) in self._transparent)

    def _place(self, command: bytes, operands: Sequence[Any]) -> None:
        if command == b"TL":
            self._leading = float(operands[0])
        elif command == b"BT":
            self.text = self._line = IDENTITY
        elif command == b"Tm":
            self.text = self._line = _matrix(operands)
        else:
            x, y = (float(one) for one in operands) if command in (b"Td", b"TD") else (0.0, -self._leading)
            self._leading = -y if command == b"TD" else self._leading
            self.text = self._line = _product((1.0, 0.0, 0.0, 1.0, x, y), self._line)


def _unseen(
    operations: Sequence[tuple[Any, bytes]], box: Sequence[float], transparent: Collection[str]
) -> Iterator[int]:
    """Positions of the commands that draw hidden letters; O(commands)."""
    left, right = sorted((box[0], box[2]))
    bottom, top = sorted((box[1], box[3]))
    pen = _Pen(transparent)
    for i, (operands, command) in enumerate(operations):
        pen.follow(command, operands)
        if command in WRITE:
            a, b, c, d, x, y = _product(pen.text, pen.state.page)
            tiny = pen.state.size * max(hypot(a, b), hypot(c, d)) <= MIN_POINTS
            outside = not (left - 1 <= x <= right + 1 and bottom - 1 <= y <= top + 1)
            unpainted = (pen.state.mode in INVISIBLE or pen.state.white) and not pen.painted
            if tiny or outside or unpainted or pen.state.clear:
                yield i


def _is_white(command: bytes, operands: Sequence[Any]) -> bool:
    """Whether a command sets the colour of fillings to white."""
    if command == b"k":
        return all(float(one) <= 0.02 for one in operands)
    if command in (b"sc", b"scn") and len(operands) != 3:  # with one component, white may be 0 or 1
        return False
    return all(float(one) >= 0.98 for one in operands)


def _matrix(operands: Sequence[Any]) -> Matrix:
    a, b, c, d, e, f = (float(operand) for operand in operands)
    return a, b, c, d, e, f


def _product(first: Matrix, second: Matrix) -> Matrix:
    """The product of two transformations, the first applied first."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m
