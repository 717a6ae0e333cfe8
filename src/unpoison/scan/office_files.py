"""Reads DOCX and PPTX files: visible text, and text that a reader does not see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpoison.scan.office_package import MIN_POINTS, A, Package, W
from unpoison.scan.parts import COVERT, FOLDED, FileText, Part

__all__ = ["read_slides", "read_word_file"]

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
        for number, one in enumerate(main.iter(f"{P}sldId"), 1):
            name = slides[one.get(f"{R}id")].name
            shown = list(package.read(name, f"slide {number:,}", lambda text: _look_of_shape(text, edges)))
            with package.open(name) as stream:
                away = package.xml.parse(stream).getroot().get("show") in ("0", "false")
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
