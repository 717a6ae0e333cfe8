"""Office files (DOCX, PPTX, XLSX): packages of XML parts that name each other, and every text in them.

Each part is read as a whole: the text that its program shows, and as hidden whatever else in it reads like a message,
be it an alternative text, a field, a property or an attribute that nobody thought of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from posixpath import dirname, join, normpath, splitext
from typing import Any, NamedTuple, Self
from zipfile import ZipFile

from unpoison.errors import InputError
from unpoison.scan.parts import COVERT, FOLDED, FileText, Part
from unpoison.scan.web_page import read_page
from unpoison.text.invisible import MESSAGE
from unpoison.text.tokens import word_list
from unpoison.utils.extras import require
from unpoison.utils.plain_text import first_of

__all__ = ["MIN_POINTS", "A", "Package", "W", "local", "read_slides", "read_word_file"]

MIN_POINTS = 2.0
"""Smallest visible font size, in points."""

MAX_BYTES = 256 * 2**20
"""Maximum bytes of all parts, with pictures."""

MAX_PART_BYTES = 48 * 2**20
"""Maximum bytes of a part that is read as a whole."""

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SHOWN = frozenset(
    (
        *(f"{W}t", f"{A}t", "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"),
        *("{http://schemas.openxmlformats.org/spreadsheetml/2006/main}t", "{http://purl.oclc.org/ooxml/drawingml/main}t"),
        "{http://schemas.openxmlformats.org/presentationml/2006/main}text",
        "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}text",
        "{http://schemas.openxmlformats.org/drawingml/2006/chart}v",
    )
)  # fmt: skip
"""Elements whose text the program shows."""

_BREAKS = frozenset(("p", "br", "cr", "tab", "si", "pt", "comment", "threadedComment"))
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_FORMAL = re.compile(r"(?:^|/)(?:\[Content_Types\]|styles|stylesWithEffects|theme\d*|fontTable|webSettings|numbering|"
                     r"tableStyles|viewProps|calcChain|colors\d*|style\d*)\.xml$|_rels/|printerSettings/")  # fmt: skip
"""Parts without text of the author."""
_PICTURES = frozenset(".png .jpg .jpeg .gif .bmp .tif .tiff .emf .wmf .svg .webp .wdp .xml .rels .vml .odttf".split())  # noqa: SIM905

Look = Callable[[Any], str]
"""How an element of shown text is hidden: a value of `Part.hidden`."""


class _Relation(NamedTuple):
    """A part that another one names: its name, and the last word of the relation's type."""

    name: str
    kind: str


class Package:
    """An office file that is open.

    Raises:
        InputError: It unpacks to too many bytes.
        MissingExtraError: lxml is not installed.
    """

    def __init__(self, path: Any) -> None:
        self.xml: Any = require("lxml.etree", "reading Office files")
        self._archive = ZipFile(path)
        sizes = {part.filename: part.file_size for part in self._archive.infolist()}
        self._sizes, self._left = sizes, dict.fromkeys(sizes)
        self.notes = list[str]()
        if sum(sizes.values()) > MAX_BYTES:
            raise InputError(f"it unpacks to {sum(sizes.values()):,} bytes, over {MAX_BYTES // 2**20} MiB; split it")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._archive.close()

    def has(self, name: str) -> bool:
        """Whether there is a part of this name."""
        return name in self._sizes

    def open(self, name: str) -> Any:
        """The stream of a part, which then counts as read."""
        self._left.pop(name, None)
        return self._archive.open(name)

    def root(self, name: str) -> Any:
        """The root element of a part; None if it is missing or too large."""
        if self._sizes.get(name, MAX_PART_BYTES + 1) > MAX_PART_BYTES:
            if name in self._sizes:
                self.notes.append(f"{name} is larger than {MAX_PART_BYTES // 2**20} MiB and not read")
            return None
        options = {"resolve_entities": False, "no_network": True, "remove_comments": False}
        parser = self.xml.XMLParser(recover=True, huge_tree=True, **options)
        with self._archive.open(name) as stream:
            root = self.xml.parse(stream, parser).getroot()
        whole = all(one.level_name != "FATAL" for one in parser.error_log)  # else the parser has left out the rest
        self._note(name, root, whole=whole)
        return root

    def elements(self, name: str, *tags: str) -> Iterator[Any]:
        """The elements of a part with these tags, as a stream; the part then counts as read."""
        self._left.pop(name, None)
        with self._archive.open(name) as stream:
            parsed = self.xml.iterparse(stream, tag=tags, resolve_entities=False, huge_tree=True)
            for _, element in parsed:
                yield element
                element.clear()  # with those before it, so that memory is bounded
                while element.getprevious() is not None:
                    del element.getparent()[0]
            self._note(name, parsed.root)

    def _note(self, name: str, root: Any, *, whole: bool = True) -> None:
        """Note a part of which text may be left out; no program writes entities into these files."""
        if not whole or (root is not None and root.getroottree().docinfo.doctype):
            self.notes.append(f"{name} is damaged, nested too deeply or has entities, and is read in part")

    def related(self, name: str) -> dict[str, _Relation]:
        """The parts that a part names, by the id of the relation."""
        folder, file = dirname(name), name.rpartition("/")[2]
        relations = f"{folder}/_rels/{file}.rels".lstrip("/")
        root = self.root(relations) if relations in self._sizes else None
        found = dict[str, _Relation]()
        for one in root.iter("{*}Relationship") if root is not None else ():
            if one.get("TargetMode") != "External":
                target = one.get("Target") or ""
                whole = target.lstrip("/") if target.startswith("/") else normpath(join(folder, target))
                found[one.get("Id") or ""] = _Relation(whole, (one.get("Type") or "").rpartition("/")[2])
        return found

    def read(self, name: str, place: str, look: Look = lambda element: "", numbered: str = "") -> Iterator[Part]:
        """The texts of a part, and of the parts that it names and nobody has read.

        Args:
            name: Its name.
            place: Where a person finds it.
            look: How an element of shown text is hidden.
            numbered: What a paragraph is called, if each has a place of its own.
        """
        if name not in self._left:
            return
        if splitext(name)[1].lower() not in (".xml", ".vml"):
            yield from self._inserted(name, place)
            return
        root = None if _FORMAL.search(name) else self.root(name)
        self._left.pop(name, None)
        if root is not None:
            yield from _texts(root, place, look, numbered)
        for relation in self.related(name).values():
            kind = _plain_name(relation.kind).replace("notes slide", "notes")
            if relation.kind.lower() not in word_list("office_elsewhere"):
                yield from self.read(relation.name, f"{place}, {kind}" if place and not numbered else kind, look)

    def _inserted(self, name: str, place: str) -> Iterator[Part]:
        """A file inside the file: a page of HTML or a text is read, a picture is none, and others are named."""
        kind = splitext(name)[1].lower()
        if kind in (".html", ".htm", ".xhtml", ".txt", ".mht"):
            with self.open(name) as stream:
                text = stream.read(MAX_PART_BYTES).decode("utf-8", "replace")
            parts = read_page(text).parts if kind != ".txt" else (Part(text),)
            yield from (part._replace(place=f"{place} {name}") for part in parts)

    def rest(self) -> Iterator[Part]:
        """The texts of the parts that none has named, and notes on those that are not read."""
        for name in list(self._left):
            if name.endswith((".xml", ".vml")):
                yield from self.read(name, "properties" if name.startswith("docProps/") else _plain_name(name))
        unread = [one for one in self._left if not one.lower().endswith((*_PICTURES, "/")) and not _FORMAL.search(one)]
        if unread:
            self.notes.append(f"files inside it are not read: {first_of(unread, 3)}")

    def file(self, parts: list[Part]) -> FileText:
        """Everything that was read, with the title and the author of the properties."""
        parts = [*parts, *self.rest()]
        about = dict[str, str]()
        if "docProps/core.xml" in self._sizes and (root := self.root("docProps/core.xml")) is not None:
            about = {local(one): (one.text or "").strip() for one in root if isinstance(one.tag, str)}
        author, notes = about.get("creator", "")[:200] or None, tuple(dict.fromkeys(self.notes))
        return FileText(tuple(parts), about.get("title") or None, author, notes)


def _plain_name(part: str) -> str:
    """What a person calls a part: "slide layout 2" for `ppt/slideLayouts/slideLayout2.xml`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z\d])", " ", splitext(part.rpartition("/")[2])[0]).lower()


def local(element: Any) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _texts(root: Any, place: str, look: Look, numbered: str) -> Iterator[Part]:
    """The texts of a part in order: what is shown, by paragraphs, and as hidden what else reads like a message."""
    number, pieces = 0, dict[str, list[str]]()
    twins = frozenset[str]()
    where = place

    def paragraph() -> Iterator[Part]:
        for hidden, texts in pieces.items():
            text = "".join(texts)
            if text.strip() and text not in twins:
                yield Part(text, where, hidden)
        pieces.clear()

    for element in root.iter():
        name = local(element)
        if not isinstance(element.tag, str):  # a comment or an instruction
            yield from _message(element.text, where)
            continue
        if element.tag == _FALLBACK and element.getparent() is not None:  # the same box for older programs
            yield from paragraph()
            twins = frozenset("".join(one.itertext(*_SHOWN)) for one in element.getparent()[0].iter(f"{W}p", f"{A}p"))
        if name in _BREAKS:
            if name == "p" or name in ("si", "pt", "comment", "threadedComment"):
                yield from paragraph()
                number += name == "p"
                where = f"{numbered} {number:,}" if numbered else place
                where += f" {element.get('ref')}" if element.get("ref") else ""
            else:
                pieces.setdefault("", []).append("\n" if name != "tab" else " ")
        elif element.tag in _SHOWN:
            pieces.setdefault(look(element), []).append(element.text or "")
        elif element.text and element.text.strip():
            yield from _message(element.text, where)
        for value in element.attrib.values():
            yield from _message(value, where)
    yield from paragraph()


def _message(text: str | None, place: str) -> Iterator[Part]:
    if text and MESSAGE.search(text):
        yield Part(text, place, FOLDED)


DEEPEST = 20
"""Maximum depth of style inheritance."""

LIGHT = (None, "auto", "FFFFFF")
"""Fills on which white letters are invisible."""

_CHANGED = (f"{W}moveFrom", f"{W}del")


def read_word_file(path: Path) -> FileText:
    """Read a DOCX file by paragraphs, with all that it names: headers, notes, comments, boxes, charts, equations.

    Deleted and moved text, fields, alternative texts and properties are hidden, but can be unfolded. Hidden or tiny
    letters, and white ones on a light background, whether set by the run or by a style, are not seen by anybody.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error on a damaged file.
        MissingExtraError: lxml is not installed.
    """
    with Package(path) as package:
        styles = package.root("word/styles.xml")
        named = {one.get(f"{W}styleId"): one for one in styles.iter(f"{W}style")} if styles is not None else {}

        def look(text: Any) -> str:
            run = next(text.iterancestors(f"{W}r"), None)
            if run is not None and _is_unseen_run(run, named):
                return COVERT
            return FOLDED if next(text.iterancestors(*_CHANGED), None) is not None else ""

        return package.file(list(package.read("word/document.xml", "", look, "paragraph")))


def _is_unseen_run(run: Any, styles: dict[str, Any]) -> bool:
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


P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def read_slides(path: Path) -> FileText:
    """Read a PPTX file by slides, each with its notes, comments, charts and diagrams.

    Hidden slides and shapes can be unfolded; tiny or transparent letters, and those beside the slide, are not seen.

    Raises:
        InputError: It unpacks to too many bytes.
        Exception: Any error on a damaged file.
        MissingExtraError: lxml is not installed.
    """
    with Package(path) as package:
        main = package.root("ppt/presentation.xml")
        slides = package.related("ppt/presentation.xml")
        size = main.find(f"{P}sldSz")
        edges = (int(size.get("cx")), int(size.get("cy"))) if size is not None else (10**9, 10**9)
        parts = list[Part]()
        names = dict.fromkeys(slides[one.get(f"{R}id")].name for one in main.iter(f"{P}sldId"))
        for number, name in enumerate(names, 1):
            away = package.root(name).get("show") in ("0", "false")
            shown = list(package.read(name, f"slide {number:,}", lambda text: _look_of_shape(text, edges)))
            parts += [part._replace(hidden=part.hidden or FOLDED) for part in shown] if away else shown
        return package.file(parts)


def _look_of_shape(text: Any, edges: tuple[int, int]) -> str:
    """How a text of a slide is hidden."""
    run = text.getparent().find(f"{A}rPr")
    if run is not None:
        clear = next(run.iter(f"{A}alpha"), None)
        if int(run.get("sz") or 1800) <= 100 * MIN_POINTS or (clear is not None and clear.get("val") in ("0", "0%")):
            return COVERT
    shape = next(text.iterancestors(f"{P}sp"), None)
    if shape is None:
        return ""
    off, size = next(shape.iter(f"{A}off"), None), next(shape.iter(f"{A}ext"), None)
    if off is not None and size is not None and size.get("cx"):
        x, y, width, height = (int(one) for one in (off.get("x"), off.get("y"), size.get("cx"), size.get("cy")))
        if x >= edges[0] or y >= edges[1] or x + width <= 0 or y + height <= 0:
            return COVERT
    about = next(shape.iter(f"{P}cNvPr"), None)
    return FOLDED if about is not None and about.get("hidden") in ("1", "true") else ""
