"""Reads web pages with the parser of the HTML standard: visible text, and text that a browser does not show.

What is hidden raises no suspicion by itself (`scan.scanner`): pages hide menus, banners and hints for screen
readers. It is read apart from the rest, so that an instruction or a claim in it is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from unpoison.scan.parts import COVERT, FOLDED, MIN_WORDS, FileText, Part
from unpoison.text.invisible import MESSAGE
from unpoison.text.markup import KINDS
from unpoison.text.tokens import word_list

__all__ = ["concealed_texts", "read_page"]

ASIDE = "comment or attribute"
"""The place of a text that is no content of an element."""

MAX_NAME = 60
"""Characters of an element's name, with its id or class."""

SILENT = frozenset({"script", "style"})
"""Elements whose content is not text of the page."""

UNSHOWN = word_list("html_unshown")
"""Elements with fallback text that browsers do not show."""

SPOKEN = re.compile("alt|title|aria-label|aria-description|placeholder|summary|content")
"""Attributes with text that some loaders hand on; `content` is that of `<meta>`."""
_FORMAL = re.compile("style|class|on.*")
"""Attributes that hold code; any other one may hold a message."""

_CLASSES = frozenset({"sr-only", "visually-hidden", "screen-reader-text", "d-none", "hidden"})
_RESPONSIVE = re.compile(
    r"(?:d-)?(?:sm|md|lg|xl|xxl|2xl)(?:-|:)(?:block|flex|grid|inline|table|contents|not-sr-only|visible)"
)
"""Classes that show an element on some screens, whatever hides it on others."""

_FOLDING = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|max-height:0(?:px)?(?:;|!|$)|scale\(0\)"
    r"|opacity:0{0,9}+\.?0{0,9}+(?:%|;|!|$)"
    r"|(?:left|right|top|text-indent|margin-left):-\d{3,}|clip:rect\(|clip-path:inset\((?:50|100)%"
)
"""Style declarations (lower case, without spaces) that hide text, perhaps until a script or a rule shows it."""

_COVERING = re.compile(
    r"(?<!-)color:transparent"
    r"|font-size:(?:0{0,9}\.?0{0,9}(?:px|pt|em|rem|%)?|0{0,9}[12](?:\.\d{1,9})?(?:px|pt)"
    r"|0{0,9}\.[01]\d{0,9}(?:em|rem)|\d%)(?:;|!|$)"
)
"""Declarations that hide text from everybody but the program that reads the page."""

_COLOURS = re.compile(r"(?:^|;)(color|background|background-color|background-image):([^;]*)")
_CHANNELS = re.compile(r"rgba?\((\d+)[,\s]+(\d+)[,\s]+(\d+)")
_NAMED = {"white": (255, 255, 255), "black": (0, 0, 0)}
WHITE = _NAMED["white"]
NEAR = 16
"""Maximum difference of a channel of two colours that a reader cannot tell apart."""

_SPECIAL = SILENT | UNSHOWN | {"svg", "title", "dialog"}

_MAY_HIDE = re.compile(rf"style|hidden|class|color|<(?:{'|'.join(sorted(UNSHOWN))}|svg|dialog)\b", re.IGNORECASE)
"""Matches all markup that can hide text."""

Colour = tuple[int, int, int] | str


class _Look(NamedTuple):
    """How an element is shown, and which one hides it; `ground` is None if a style sheet elsewhere may decide it."""

    hidden: str = ""
    hider: str = ""
    silent: bool = False
    drawn: bool = False
    letters: Colour | None = None
    ground: Colour | None = WHITE


def read_page(markup: str, *, xml: bool = False) -> FileText:
    """Parse a page, also a malformed one. Linear time, see `DEEPEST`.

    Args:
        markup: The page.
        xml: Whether it is XHTML, in which any element may be closed by its own tag (`<title/>`).
    """
    from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

    if xml or markup.lstrip("\ufeff \n\r\t").startswith("<?xml"):
        markup = _SELF_CLOSED.sub(r"<\1\2></\1>", markup)
    parser = LexborHTMLParser(_bounded(markup), options=LexborDocumentOptions.WO_EVENTS)
    rules = _rules("".join(style.text(deep=True) for style in parser.css("style")))
    styled, scripted = (parser.css_first(one) is not None for one in ("link[rel~=stylesheet]", "script"))
    page = _PageLook(rules, styled, scripted)
    title, asides = list[str](), list[str]()
    parts, pieces, hiders = list[Part](), dict[str, list[str]](), dict[str, str]()

    def end_line(hidden: str) -> None:
        parts.append(Part("".join(pieces.pop(hidden, ())), hiders.pop(hidden, ""), hidden))

    for node, look in _walk(parser.root, page):
        tag = node.tag
        if tag == "-comment":
            asides.append(node.comment_content or "")
        elif tag != "-text":
            asides += [value for name, value in node.attributes.items() if value and _speaks(name, value)]
            if KINDS.get(tag):
                end_line(look.hidden)
        elif node.parent is not None and node.parent.tag == "title" and not look.drawn:
            title.append(node.text_content or "")
        elif not look.silent:
            pieces.setdefault(look.hidden, []).append(node.text_content or "")
            hiders.setdefault(look.hidden, look.hider)
    for hidden in list(pieces):
        end_line(hidden)
    parts += [Part(aside, ASIDE, FOLDED) for aside in dict.fromkeys(asides)]
    return FileText(tuple(parts), " ".join("".join(title).split()) or None)


def _speaks(attribute: str, value: str) -> bool:
    """Whether an attribute holds text."""
    return bool(SPOKEN.fullmatch(attribute) or (MESSAGE.search(value) and not _FORMAL.fullmatch(attribute)))


def concealed_texts(text: str) -> list[Part]:
    """Lines of four words or more that markup inside a text hides, without comments and attributes."""
    if "<" not in text or not _MAY_HIDE.search(text):
        return []
    parts = [part for part in read_page(text).parts if part.hidden and part.place != ASIDE]
    lines = [part._replace(text=" ".join(line.split())) for part in parts for line in part.text.split("\n")]
    return [line for line in lines if len(line.text.split()) >= MIN_WORDS]


class _PageLook(NamedTuple):
    """What decides the look of all elements: rules by name, a style sheet elsewhere, a script that may show them."""

    rules: Mapping[str, str]
    styled_elsewhere: bool
    scripted: bool


def _walk(root: Any, page: _PageLook) -> Iterator[tuple[Any, _Look]]:
    """The nodes of a tree in order, each element also at its end, and how it is shown."""
    node, looks = root, [_Look()]
    while node is not None and node.prev is not None:  # what stands before <html>
        node = node.prev
    while node is not None:
        element = node.is_element_node
        look = _look(node, looks[-1], page) if element else looks[-1]
        yield node, look
        templates = [node] if node.tag == "template" else []
        while templates:
            for fragment in templates.pop().template_fragments():
                for inner in fragment.traverse(include_text=True):
                    yield inner, look._replace(hidden=look.hidden or FOLDED)
                    templates += [inner] if inner.tag == "template" else []
        below = node.first_child if element else None
        if below is not None:
            looks.append(look)
            node = below
            continue
        while node is not None and node.next is None:
            node = node.parent
            if node is None or node.tag == "-document":
                return
            yield node, looks.pop()
        node = None if node is None else node.next


def _look(node: Any, above: _Look, page: _PageLook) -> _Look:
    """How an element is shown, from its own markup and what surrounds it."""
    tag, attributes = node.tag, node.attributes
    if not attributes and tag not in _SPECIAL and tag not in page.rules:
        return above
    classes = (attributes.get("class") or "").lower().split()
    names = [tag, f"#{(attributes.get('id') or '').lower()}"]
    names += [name for one in classes for name in (f".{one}", f"{tag}.{one}")]
    declared = [page.rules[name] for name in names if name in page.rules]
    style = ";".join([*declared, re.sub(r"\s", "", (attributes.get("style") or "").lower())])
    letters, ground = above.letters, None if page.styled_elsewhere and classes else above.ground
    pairs = [("color", attributes.get("color")), ("background", attributes.get("bgcolor")), *_COLOURS.findall(style)]
    for name, value in pairs:
        colour = _colour(value) if value else None
        if name == "color":
            letters = colour or letters
        elif colour not in (None, "transparent", "none", "inherit", "initial"):
            ground = colour
    drawn = above.drawn or tag == "svg"
    hidden = above.hidden
    if _are_alike(letters, ground) or _COVERING.search(style):
        hidden = COVERT
    elif not hidden and (
        tag in UNSHOWN or (drawn and tag == "title") or (tag == "dialog" and "open" not in attributes)
    ):
        hidden = FOLDED
    elif not hidden and ("hidden" in attributes or _FOLDING.search(style)):
        named = "id" in attributes or bool(classes)
        known = page.scripted or named or tag == "select" or any(map(_FOLDING.search, declared))
        hidden = FOLDED if known else COVERT
    elif not hidden and not _CLASSES.isdisjoint(classes) and not any(map(_RESPONSIVE.match, classes)):
        hidden = FOLDED
    name = f"element {tag}{names[1] * (len(names[1]) > 1) or ''.join(names[2:3])}"[:MAX_NAME]
    hider = above.hider if hidden == above.hidden else name
    return _Look(hidden, hider, above.silent or tag in SILENT, drawn, letters, ground)


def _are_alike(letters: Colour | None, ground: Colour | None) -> bool:
    """Whether two colours are known, and cannot be told apart."""
    if letters is None or isinstance(letters, str) or isinstance(ground, str):
        return letters is not None and letters == ground
    return ground is not None and all(abs(left - right) <= NEAR for left, right in zip(letters, ground))


def _colour(value: str) -> Colour:
    """Red, green and blue if they are given as numbers; otherwise the words."""
    value = value.strip().lower().removesuffix("!important")
    digits = value.removeprefix("#")
    if value.startswith("#") and re.fullmatch("[0-9a-f]{3}|[0-9a-f]{6}", digits):
        digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
        red, green, blue = bytes.fromhex(digits)
        return red, green, blue
    channels = _CHANNELS.match(value)
    return (int(channels[1]), int(channels[2]), int(channels[3])) if channels else _NAMED.get(value, value)


_RULE = re.compile(r"([{}])")


def _rules(style: str) -> dict[str, str]:
    """The declarations of elements, classes and ids in a page's `<style>`; none of at-rules such as `@media`."""
    rules = dict[str, str]()
    depth, before, nested, selectors = 0, "", False, ""
    for piece in _RULE.split(style[:MAX_STYLE]):
        if piece == "{":
            depth += 1
            nested = nested or before.lstrip().startswith("@")
            selectors = before
        elif piece == "}":
            if depth == 1 and not nested:
                declared = re.sub(r"\s", "", before.lower())
                for name in selectors.split(","):
                    rules[name.strip().lower()] = f"{rules.get(name.strip().lower(), '')};{declared}"[-MAX_RULE:]
            depth = max(0, depth - 1)
            nested = nested and depth > 0
        before = piece if piece not in "{}" else ""
    return rules


MAX_STYLE, MAX_RULE = 1_000_000, 2_000
"""Maximum characters of a page's style sheets, and of the declarations of one name, that are read."""

_SELF_CLOSED = re.compile(r"<([A-Za-z][\w:-]{0,40}+)((?:\s[^<>]*)?)/>")
_OPENING = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*+)")
_CROWDED = re.compile(r"<(?=[A-Za-z](?:[^\s<>]*+\s++){500})")
_FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())  # noqa: SIM905
_FLAT = word_list("html_flat")
"""Elements without content, and those that their next sibling ends."""

DEEPEST, DEEPEST_FORMATTING = 256, 8
"""Maximum number of open elements, and of open formatting elements of one name, which every block repeats.

Browsers have such a limit too. Beyond it an element becomes a line, so its text is read. Without one, and with
thousands of attributes, the algorithm of the standard takes quadratic time.
"""


def _bounded(markup: str) -> str:
    """The markup without what takes the parser quadratic time."""
    markup = _CROWDED.sub("&lt;", markup)
    if markup.count("<") <= DEEPEST_FORMATTING:
        return markup
    opened, dropped, depth = dict[str, int](), dict[str, int](), 0

    def bound(tag: re.Match[str]) -> str:
        nonlocal depth
        name = tag[2].lower()
        if name in _FLAT:
            return tag[0]
        if tag[1]:
            if dropped.get(name):
                dropped[name] -= 1
                return "</hr"
            if opened.get(name):
                opened[name] -= 1
                depth -= 1
            return tag[0]
        if depth >= DEEPEST or (name in _FORMATTING and opened.get(name, 0) >= DEEPEST_FORMATTING):
            dropped[name] = dropped.get(name, 0) + 1
            return "<hr"
        opened[name] = opened.get(name, 0) + 1
        depth += 1
        return tag[0]

    return _OPENING.sub(bound, markup)
