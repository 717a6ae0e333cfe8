"""Reads PDF files: visible text, and letters that are drawn invisibly or covered afterwards.

A page is a list of drawing commands. Its text is extracted once for each way of being hidden, without the commands that
draw other letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import hypot, inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unpoison.errors import InputError
from unpoison.scan.office_package import MIN_POINTS
from unpoison.scan.parts import COVERT, FOLDED, FileText, Part
from unpoison.scan.text_files import leaves
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

FILL = (b"f", b"F", b"f*", b"B", b"B*", b"b", b"b*")
"""Commands that fill the path."""

MIN_COVERING = 0.98
"""Smallest opacity of a filling that covers letters."""

LETTER_WIDTH, LETTER_MIDDLE = 0.3, 0.25
"""Of a letter's size: the width of a narrow one, and the height at which it must be covered."""

MAX_COVERS = 2_000
"""Areas of a page that are compared with its letters, the largest first."""

UNSURE = "unsure"
"""Of letters under a shape of which only the extent is known."""

INVISIBLE = (3, 7)
"""Rendering modes in which letters are neither filled nor stroked (ISO 32000-1, 9.3.6)."""

Matrix = tuple[float, float, float, float, float, float]
IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def read_pdf_file(path: Path) -> FileText:
    """Read a PDF file by pages.

    Hidden letters are those in the invisible mode, white or tiny ones, and those outside the page. On a page with a
    picture or a filled area, invisible and white letters count as visible, because scanned pages and table headers have
    such text. Letters that an opaque rectangle covers afterwards are hidden, and those behind a picture folded, as
    recognised text may stand behind the scan; under another shape they count as visible, with a note. Letters inside
    reusable forms count as visible.

    Form fields and notes are visible on their page; bookmarks, subject and keywords are hidden, and attachments are
    named as unread.

    Raises:
        InputError: None of its pages can be read.
        Exception: Any error of the library on a damaged file.
        MissingExtraError: pypdf is not installed.
    """
    library: Any = require("pypdf", "reading PDF files")
    reader = library.PdfReader(path)
    parts, left_out, unsure, length = list[Part](), list[int](), list[int](), 0
    for number, page in enumerate(reader.pages[:MAX_PAGES], 1):
        if length > MAX_CHARS:
            left_out.append(number)
            continue
        try:
            contents = page.get_contents()
            small = contents is None or len(contents.get_data()) <= MAX_PAGE_BYTES
            texts = _page_texts(page, contents) if small and contents is not None else {}
            unsure += [number] if texts.pop(UNSURE, "") else []
            parts += (Part(text, f"page {number:,}", hidden) for hidden, text in texts.items())
            parts += _annotations(page, number)
            length += sum(map(len, texts.values()))
        except Exception:  # the library may raise anything on hostile pages; the others are read
            small = False
        left_out += [] if small else [number]
    if len(left_out) == min(len(reader.pages), MAX_PAGES):
        raise InputError("none of its pages can be read")
    notes = list[str]()
    if left_out:
        notes.append(f"{len(left_out):,} pages cannot be read or are too large, the first of them page {left_out[0]:,}")
    if unsure:
        notes.append(f"shapes may cover some of its text, first on page {unsure[0]:,}: look at the page")
    if len(reader.pages) > MAX_PAGES:
        notes.append(f"only the first {MAX_PAGES:,} of its {len(reader.pages):,} pages are read")
    about = reader.metadata
    for kind in ("/Subject", "/Keywords"):
        parts += [Part(str(about[kind]), "properties", FOLDED)] if about is not None and about.get(kind) else []
    with suppress(Exception):  # a damaged outline or tree of names hides no page
        parts += (Part(title, "bookmarks", FOLDED) for title in _titles(reader.outline))
        read = {line for part in parts for line in part.text.split("\n")}
        values = (text for field in (reader.get_fields() or {}).values() for text in _values(field))
        parts += (Part(text, "form field on no page", FOLDED) for text in dict.fromkeys(values) if text not in read)
        acting = [one.get_object() for name, one in reader.root_object.items() if name in ("/Names", "/OpenAction")]
        notes += ["its scripts are not read"] * any(name in one for one in acting for name in ("/JavaScript", "/JS"))
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
            folded = FOLDED if int(note.get("/F", 0)) & 2 or kind == "Link" else ""
            place = f"page {number:,}, {'form field' if kind == 'Widget' else 'note'}"
            yield Part("\n".join(text for field in fields for text in _values(field)), place, folded)


def _values(field: Any) -> Iterator[str]:
    """The texts of a form field or note: its value, that at first, the choices, what it is called and shows."""
    values = [field[name] for name in ("/Contents", "/V", "/DV", "/TU", "/Opt") if name in field]
    values += [value for name, value in field.get("/MK", {}).items() if name in ("/CA", "/RC", "/AC")]
    return (text for text in leaves(values) if not text.startswith("/"))


def _titles(outline: Any, depth: int = 0) -> Iterator[str]:
    """The titles of bookmarks, which are nested lists."""
    for one in outline if depth < MAX_DEPTH else ():
        if isinstance(one, list):
            yield from _titles(one, depth + 1)
        else:
            yield str(one.title)


def _page_texts(page: Any, contents: Any) -> dict[str, str]:
    """The texts of a page that are visible, and by how they are hidden; `UNSURE` if some may be."""
    from pypdf.generic import ContentStream, NameObject

    commands = ContentStream(contents, page.pdf)
    operations = list(commands.operations)
    hidden = _unseen(operations, [float(edge) for edge in page.mediabox], _looks_of(page))
    unsure = {UNSURE: UNSURE} if UNSURE in hidden.values() else {}
    written = [i for i, (_, command) in enumerate(operations) if command in WRITE]
    ways = {i: "" if hidden.get(i, UNSURE) == UNSURE else hidden[i] for i in written}
    if not any(ways.values()):
        return {"": str(page.extract_text()), **unsure}

    def extract(way: str) -> str:
        commands.operations = [operation for i, operation in enumerate(operations) if ways.get(i, way) == way]
        page[NameObject("/Contents")] = commands
        return str(page.extract_text())

    return {**{way: extract(way) for way in sorted(set(ways.values()))}, **unsure}


class _Looks(NamedTuple):
    """The names of a page's graphics states that are transparent, of those that let through, and of opaque pictures."""

    clear: frozenset[str] = frozenset()
    thin: frozenset[str] = frozenset()
    pictures: frozenset[str] = frozenset()


def _looks_of(page: Any) -> _Looks:
    resources: Any = page.get("/Resources") or {}
    states, pictures = (_objects(resources.get(kind)) for kind in ("/ExtGState", "/XObject"))
    opacity = {name: float(one.get("/ca", 1)) for name, one in states.items()}
    mixed = {name for name, one in states.items() if str(one.get("/BM", "/Normal")) not in ("/Normal", "/Compatible")}
    see_through = ("/SMask", "/Mask", "/ImageMask")
    return _Looks(
        frozenset(name for name, value in opacity.items() if value <= MIN_OPACITY),
        frozenset(mixed.union(name for name, value in opacity.items() if value < MIN_COVERING)),
        frozenset(
            name for name, one in pictures.items()
            if one.get("/Subtype") == "/Image" and not any(one.get(mask) for mask in see_through)
        ),
    )  # fmt: skip


def _objects(named: Any) -> dict[str, Any]:
    return {str(name): one.get_object() for name, one in named.get_object().items()} if named else {}


Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""

NOWHERE: Box = (inf, inf, -inf, -inf)


def _extent(points: Iterable[tuple[float, float]]) -> Box:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _common(one: Box, other: Box) -> Box:
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])


@dataclass(frozen=True, slots=True)
class _State:
    """The graphics state that `q` saves and `Q` restores.

    Attributes:
        page: The current transformation.
        mode: How letters are rendered.
        size: Of letters, before any transformation.
        white: Whether they are filled with white.
        clear: Whether fillings are transparent.
        thin: Whether they let through what is below.
        clip: What is drawn inside of; `NOWHERE` if that is not known.
    """

    page: Matrix = IDENTITY
    mode: int = 0
    size: float = 0.0
    white: bool = False
    clear: bool = False
    thin: bool = False
    clip: Box = (-inf, -inf, inf, inf)


class _Pen:
    """Follows the commands of a page: where the next letters stand, how they look, and what covers earlier ones.

    Attributes:
        covers: What the last command covers, and how letters below are hidden.
    """

    def __init__(self, looks: _Looks) -> None:
        self._looks = looks
        self.state, self._saved = _State(), list[_State]()
        self.text = self._line = IDENTITY
        self._leading = 0.0
        self.painted = False
        self.covers = list[tuple[Box, str]]()
        self._rectangles, self._points, self._clips = list[Box](), list[tuple[float, float]](), False

    def follow(self, command: bytes, operands: Sequence[Any]) -> None:
        """Take in one command; those that concern neither place nor look are passed over."""
        self.painted, self.covers = self.painted or command in PAINT, []
        if command in (b"re", b"m", b"l", b"c", b"v", b"y", b"W", b"W*", b"n", b"s", b"S", b"Do", *FILL):
            self._draw(command, operands)
        elif command in (b"q", b"Q"):
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
            name = str(operands[0])
            self.state = replace(self.state, clear=name in self._looks.clear, thin=name in self._looks.thin)

    def _draw(self, command: bytes, operands: Sequence[Any]) -> None:
        """Take in one command of a path or picture."""
        if command in (b"W", b"W*"):
            self._clips = True
        elif command == b"re":
            x, y, width, height = (float(one) for one in operands)
            self._rectangles.append(_extent(self._on_page((x, y), (x + width, y + height), (x, y + height))))
        elif command in (b"m", b"l", b"c", b"v", b"y"):
            ends = [float(one) for one in operands]
            self._points += self._on_page(*zip(ends[::2], ends[1::2]))
        elif command == b"Do":
            if str(operands[0]) in self._looks.pictures and not self.state.thin:
                unit = _extent(self._on_page((0, 0), (1, 1), (0, 1), (1, 0)))
                self.covers = [(_common(unit, self.state.clip), FOLDED)]
        else:
            if command in FILL and not self.state.thin:
                self.covers = [(_common(one, self.state.clip), COVERT) for one in self._rectangles]
                self.covers += [(_common(_extent(self._points), self.state.clip), UNSURE)] if self._points else []
            if self._clips:
                alone = len(self._rectangles) == 1 and not self._points
                clip = _common(self._rectangles[0], self.state.clip) if alone else NOWHERE
                self.state = replace(self.state, clip=clip)
            self._rectangles, self._points, self._clips = [], [], False

    def _on_page(self, *points: tuple[float, float]) -> list[tuple[float, float]]:
        a, b, c, d, e, f = self.state.page
        return [(a * x + c * y + e, b * x + d * y + f) for x, y in points]

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


def _unseen(operations: Sequence[tuple[Any, bytes]], box: Sequence[float], looks: _Looks) -> dict[int, str]:
    """The commands that draw hidden letters, and how they are hidden; O(commands), times `MAX_COVERS` at most."""
    left, right = sorted((box[0], box[2]))
    bottom, top = sorted((box[1], box[3]))
    pen, found, letters = _Pen(looks), dict[int, str](), list[tuple[int, float, float, float, float]]()
    covers = list[tuple[float, int, Box, str]]()
    for i, (operands, command) in enumerate(operations):
        pen.follow(command, operands)
        covers += (((x1 - x0) * (y1 - y0), i, (x0, y0, x1, y1), way)
                   for (x0, y0, x1, y1), way in pen.covers if x0 < x1 and y0 < y1)  # fmt: skip
        if command in WRITE:
            a, b, c, d, x, y = _product(pen.text, pen.state.page)
            size = pen.state.size
            tiny = size * max(hypot(a, b), hypot(c, d)) <= MIN_POINTS
            outside = not (left - 1 <= x <= right + 1 and bottom - 1 <= y <= top + 1)
            unpainted = (pen.state.mode in INVISIBLE or pen.state.white) and not pen.painted
            if tiny or outside or unpainted or pen.state.clear:
                found[i] = COVERT
            else:
                width, middle = LETTER_WIDTH * size * _count(operands), LETTER_MIDDLE * size
                x, y = x + c * middle, y + d * middle
                letters.append((i, x, y, x + a * width, y + b * width))
    return _covered(letters, sorted(covers, reverse=True)[:MAX_COVERS]) | found


def _covered(
    letters: Sequence[tuple[int, float, float, float, float]], covers: Sequence[tuple[float, int, Box, str]]
) -> dict[int, str]:
    """The letters whose beginning and end lie in an area that is drawn later; what is certain counts first."""
    found = dict[int, str]()
    if letters and covers:
        at, x, y, end_x, end_y = np.array(letters).T
        for way in (UNSURE, FOLDED, COVERT):
            for _, i, (x0, y0, x1, y1), own in covers:
                if own == way:
                    inside = (x0 <= np.minimum(x, end_x)) & (np.maximum(x, end_x) <= x1)
                    inside &= (y0 <= np.minimum(y, end_y)) & (np.maximum(y, end_y) <= y1) & (at < i)
                    found |= dict.fromkeys(at[inside].astype(int).tolist(), way)
    return found


def _count(operands: Sequence[Any]) -> int:
    """How many letters a command draws, about."""
    last = operands[-1] if operands else ""
    return sum(len(one) for one in (last if isinstance(last, list) else [last]) if isinstance(one, (str, bytes)))


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
