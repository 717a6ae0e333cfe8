"""Text that a page keeps from a reader's eyes: hidden, transparent, tiny or white, or in elements nobody is shown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from unpoison.text.markup import escape_open_tags

__all__ = ["Page", "concealed_texts", "read_page"]

_HIDING = re.compile(
    r"display:none|visibility:hidden|opacity:0(?:\.0+)?(?:;|$)|font-size:0*(?:\.\d+|[0-2])?(?:px|pt|em|rem|%)?(?:;|$)"
    r"|(?:left|top|text-indent):-\d{3,}|(?<!-)color:(?:white|transparent|#fff(?:fff)?|rgba?\(255,255,255[^)]{0,9}\))"
)
"""Style declarations, without spaces and in small letters, by which nothing is seen on a white page."""

_CLASSES = frozenset({"sr-only", "visually-hidden", "screen-reader-text", "d-none", "hidden"})

SILENT = frozenset({"script", "style", "head"})
"""Elements whose content is no text at all, or text about the page."""

UNSHOWN = frozenset(
    {"template", "noscript", "iframe", "object", "audio", "video", "canvas", "datalist", "desc", "metadata", "defs"}
)
"""Elements whose text no browser shows while it can show the element itself."""

_MAY_HIDE = re.compile(rf"style|hidden|class|<(?:{'|'.join(sorted(UNSHOWN))}|svg)\b", re.IGNORECASE)
"""What stands in every markup that hides something."""

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905

BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav"),
        *("ol", "p", "pre", "section", "table", "td", "th", "tr", "ul"),
    )
)

MIN_WORDS = 4
"""Shorter hidden texts are labels, such as "skip to content"."""

DEEPEST = 10_000
"""Open elements that are followed."""


class Page(HTMLParser):
    """A page as text, and the part of its text that is hidden from a reader. O(n) time.

    Attributes:
        title: What stands in `<title>`.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._shown: list[str] = []
        self._unseen: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._hidden = self._silent = 0
        self._titled = False
        self._drawn = 0  # inside so many drawings, whose titles are shown to nobody

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and not self._drawn:
            self._titled = not self.title
        if tag in BLOCKS:
            (self._unseen if self._hidden else self._shown).append("\n")
        if tag in VOID or len(self._open) >= DEEPEST:
            return
        unseen = tag in UNSHOWN or (tag == "title" and self._drawn > 0) or _unseen(dict(attrs))
        self._open.append((tag, unseen))
        self._drawn += tag == "svg"
        self._hidden += unseen
        self._silent += tag in SILENT

    def handle_endtag(self, tag: str) -> None:
        self._titled = False
        if tag in BLOCKS:
            (self._unseen if self._hidden else self._shown).append("\n")
        if not any(name == tag for name, _ in self._open[-64:]):
            return
        while self._open:
            name, unseen = self._open.pop()
            self._hidden -= unseen
            self._silent -= name in SILENT
            self._drawn -= name == "svg"
            if name == tag:
                break

    def handle_data(self, data: str) -> None:
        if self._titled:
            self.title += data
        elif not self._silent:
            (self._unseen if self._hidden else self._shown).append(data)

    @property
    def text(self) -> str:
        """What a reader sees, a line for each block."""
        return _lines(self._shown)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Texts of four words and more that no reader sees."""
        return tuple(line for line in _lines(self._unseen).split("\n") if len(line.split()) >= MIN_WORDS)


def read_page(markup: str) -> Page:
    """Read a page, however broken. O(n) time."""
    page = Page()
    page.feed(escape_open_tags(markup))
    page.close()
    return page


def concealed_texts(text: str) -> tuple[str, ...]:
    """What markup inside a text keeps from a reader's eyes; nothing where there is no such markup."""
    if "<" not in text or not _MAY_HIDE.search(text):
        return ()
    return read_page(text).unseen


def _unseen(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        return True
    classes = (attributes.get("class") or "").lower().split()
    style = re.sub(r"\s", "", (attributes.get("style") or "").lower())
    return bool(_CLASSES.intersection(classes)) or _HIDING.search(style) is not None


def _lines(parts: list[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)
