"""Text that a page keeps from a reader's eyes: hidden, transparent, tiny or white, or in elements nobody is shown.

And what it says of a document that it hides something, which is less where many documents do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
from numpy.typing import NDArray

from unpoison.scan.documents import Unit
from unpoison.text.canonical import Hidden
from unpoison.text.markup import escape_open_tags

__all__ = ["HidingShares", "Page", "concealed_texts", "concealment", "read_page"]

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

    def __init__(self, hiding: Collection[str] = ()) -> None:
        super().__init__(convert_charrefs=True)
        self._hiding = hiding
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
        unseen = tag in UNSHOWN or (tag == "title" and self._drawn > 0) or _unseen(tag, dict(attrs), self._hiding)
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
    page = Page(_hiding_selectors(markup))
    page.feed(escape_open_tags(markup))
    page.close()
    return page


def concealed_texts(text: str) -> tuple[str, ...]:
    """What markup inside a text keeps from a reader's eyes; nothing where there is no such markup."""
    if "<" not in text or not _MAY_HIDE.search(text):
        return ()
    return read_page(text).unseen


def _unseen(tag: str, attributes: dict[str, str | None], hiding: Collection[str]) -> bool:
    if "hidden" in attributes:
        return True
    classes = (attributes.get("class") or "").lower().split()
    names = {tag, f"#{(attributes.get('id') or '').lower()}", *(f".{name}" for name in classes)}
    names |= {f"{tag}.{name}" for name in classes}
    style = re.sub(r"\s", "", (attributes.get("style") or "").lower())
    return not names.isdisjoint(hiding) or bool(_CLASSES.intersection(classes)) or _HIDING.search(style) is not None


_STYLE = re.compile(r"<style\b[^>]{0,1000}>([^<]{1,100000})", re.IGNORECASE)
_RULE = re.compile(r"([{}])")


def _hiding_selectors(markup: str) -> frozenset[str]:
    """The elements, classes and ids that rules of a page's `<style>` hide; not those for print or narrow screens."""
    hiding = set[str]()
    for style in _STYLE.findall(markup):
        depth, before, nested = 0, "", False
        for piece in _RULE.split(style):
            if piece == "{":
                depth += 1
                nested = nested or before.lstrip().startswith("@")
                selectors = before
            elif piece == "}":
                declared = re.sub(r"\s", "", before.lower())
                if depth == 1 and not nested and _HIDING.search(declared):
                    hiding |= {name.strip().lower() for name in selectors.split(",")}
                depth = max(0, depth - 1)
                nested = nested and depth > 0
            before = piece if piece not in "{}" else ""
    return frozenset(hiding - {"body", "html", "head", "script", "style", "*", ""})


def _lines(parts: list[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)


MAX_HIDING_SHARE = 0.04
"""Where this share of the documents hides something of a kind, that kind says nothing."""

MIN_DOCUMENTS = 100
"""Of fewer documents than this the share counts as if there were so many."""

HIDING_STRENGTH = {"invisible": 6.0, "look_alikes": 6.0, "styled": 10.0, "marks": 12.0, "tags": 8.0, "entities": 20.0}
"""How many of a kind there must be to be taken seriously."""

MESSAGE = 0.85
"""A message where no reader looks."""

UNSEEN = 0.97
"""Text that the page's own markup keeps from the eye."""


@dataclass(frozen=True, slots=True)
class HidingShares:
    """How much each kind of hiding says in this collection.

    Attributes:
        shares: The share of the documents that hide something of a kind.
    """

    shares: dict[str, float]

    @classmethod
    def among(cls, units: Sequence[Unit], unseen: Collection[int], reference: NDArray[np.bool_]) -> HidingShares:
        """Count the kinds.

        Args:
            units: All units.
            unseen: Numbers of the documents that hold text which their markup hides.
            reference: The documents that say what is usual, shape (documents,).
        """
        kinds = (*HIDING_STRENGTH, "messages")
        hiding = {kind: {unit.document for unit in units if getattr(unit.hidden, kind)} for kind in kinds}
        hiding["unseen"] = set(unseen)
        size = max(int(reference.sum()), MIN_DOCUMENTS)
        return cls({kind: max(sum(reference[i] for i in those) - 1, 0) / size for kind, those in hiding.items()})

    def weight(self, kind: str) -> float:
        """1 where no other document hides anything of this kind, 0 where the share `MAX_HIDING_SHARE` of them do."""
        return max(0.0, 1 - self.shares[kind] / MAX_HIDING_SHARE)


def concealment(hidden: Hidden, unseen: int, shares: HidingShares) -> float:
    """The probability that what a unit hides was hidden on purpose, in [0, 1]."""
    probabilities = [UNSEEN * shares.weight("unseen")] if unseen else []
    if hidden.messages:
        probabilities.append(MESSAGE * shares.weight("messages"))
    for kind, strength in HIDING_STRENGTH.items():
        count = getattr(hidden, kind)
        if count:
            probabilities.append((1 - float(np.exp(-count / strength))) * shares.weight(kind))
    return max(probabilities, default=0.0)
