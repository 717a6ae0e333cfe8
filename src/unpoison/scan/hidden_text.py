"""Hidden text of web pages: invisible, transparent, tiny or white, or in elements that browsers do not show.

Hidden text raises the suspicion of a document, less so if many documents of the collection have some.
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

__all__ = ["HidingShares", "concealed_texts", "concealment", "read_page"]

_HIDING = re.compile(
    r"display:none|visibility:hidden|opacity:0(?:\.0+)?(?:;|$)|font-size:0*(?:\.\d+|[0-2])?(?:px|pt|em|rem|%)?(?:;|$)"
    r"|(?:left|top|text-indent):-\d{3,}|(?<!-)color:(?:white|transparent|#fff(?:fff)?|rgba?\(255,255,255[^)]{0,9}\))"
)
"""Style declarations (lower case, without spaces) that hide text on a white page."""

_CLASSES = frozenset({"sr-only", "visually-hidden", "screen-reader-text", "d-none", "hidden"})

SILENT = frozenset({"script", "style", "head"})
"""Elements whose content is not text of the page."""

UNSHOWN = frozenset(
    {"template", "noscript", "iframe", "object", "audio", "video", "canvas", "datalist", "desc", "metadata", "defs"}
)
"""Elements with fallback text that browsers do not show."""

_MAY_HIDE = re.compile(rf"style|hidden|class|<(?:{'|'.join(sorted(UNSHOWN))}|svg)\b", re.IGNORECASE)
"""Matches all markup that can hide text."""

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905

BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figcaption"),
        *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav"),
        *("ol", "p", "pre", "section", "table", "td", "th", "tr", "ul"),
    )
)

MIN_WORDS = 4
"""Minimum words of a hidden text; shorter ones are labels such as "skip to content"."""

DEEPEST = 10_000
"""Maximum depth of open elements."""


class Page(HTMLParser):
    """A page as visible and hidden text. O(n) time.

    Attributes:
        title: The content of `<title>`.
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
        self._drawn = 0  # depth of drawings, whose titles are not shown

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
        """The visible text, one line per block."""
        return _lines(self._shown)

    @property
    def unseen(self) -> tuple[str, ...]:
        """Hidden texts of four words or more."""
        return tuple(line for line in _lines(self._unseen).split("\n") if len(line.split()) >= MIN_WORDS)


def read_page(markup: str) -> Page:
    """Parse a page, also a malformed one. O(n) time."""
    page = Page(_hiding_selectors(markup))
    page.feed(escape_open_tags(markup))
    page.close()
    return page


def concealed_texts(text: str) -> tuple[str, ...]:
    """Texts that markup inside a text hides; empty without such markup."""
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
    """Elements, classes and ids hidden by rules of a page's `<style>`; at-rules such as `@media` are ignored."""
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
"""The share of documents with a kind of hidden text from which that kind is no evidence."""

MIN_DOCUMENTS = 100
"""Minimum denominator of the share."""

HIDING_STRENGTH = {"invisible": 6.0, "look_alikes": 6.0, "styled": 10.0, "marks": 12.0, "tags": 8.0, "entities": 20.0}
"""Scale of the number of hidden characters, by kind."""

MESSAGE = 0.85
"""Probability of a hidden message."""

UNSEEN = 0.97
"""Probability of text hidden by markup."""


@dataclass(frozen=True, slots=True)
class HidingShares:
    """How common each kind of hidden text is in the collection.

    Attributes:
        shares: The share of documents with a kind of hidden text.
    """

    shares: dict[str, float]

    @classmethod
    def among(cls, units: Sequence[Unit], unseen: Collection[int], reference: NDArray[np.bool_]) -> HidingShares:
        """Count the documents by kind.

        Args:
            units: All units.
            unseen: Numbers of the documents with text hidden by markup.
            reference: The documents that define what is usual, shape (documents,).
        """
        kinds = (*HIDING_STRENGTH, "messages")
        hiding = {kind: {unit.document for unit in units if getattr(unit.hidden, kind)} for kind in kinds}
        hiding["unseen"] = set(unseen)
        size = max(int(reference.sum()), MIN_DOCUMENTS)
        return cls({kind: max(sum(reference[i] for i in those) - 1, 0) / size for kind, those in hiding.items()})

    def weight(self, kind: str) -> float:
        """From 1 if no other document has this kind, to 0 if the share reaches `MAX_HIDING_SHARE`."""
        return max(0.0, 1 - self.shares[kind] / MAX_HIDING_SHARE)


def concealment(hidden: Hidden, unseen: int, shares: HidingShares) -> float:
    """The probability that a unit's hidden text was hidden on purpose, in [0, 1]."""
    probabilities = [UNSEEN * shares.weight("unseen")] if unseen else []
    if hidden.messages:
        probabilities.append(MESSAGE * shares.weight("messages"))
    for kind, strength in HIDING_STRENGTH.items():
        count = getattr(hidden, kind)
        if count:
            probabilities.append((1 - float(np.exp(-count / strength))) * shares.weight(kind))
    return max(probabilities, default=0.0)
