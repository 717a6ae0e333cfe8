"""A text as its reader reads it: each value, item and cell a sentence of its own, folded lines whole, marks left out.

The reading is as long as the text, so that what is found in it has its place. A text in an unusual spelling is read in
its normal spelling too (`text.respelling`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.text.alignment import Region
from unpoison.text.analysis import analysis
from unpoison.text.respelling import KNOWN, respell
from unpoison.text.sentences import sentences

__all__ = ["Layout", "readings"]

MIN_MARKED = 4
"""Words in a row with a mark of emphasis around them, or alone on a line, from which the marks or line ends are left
out."""

ENGLISH = 0.25
"""The share of known English words from which a respelled text is one that was disguised."""

_WORD = re.compile(r"[^\W\d_]+")

_SOFT_BREAK = re.compile(r"(?<=[^\s.!?:;|>}\]])\n(?=[^\W\d_A-Z]|['\"(\d])")
"""A line end behind which a sentence goes on: no mark before it, no capital behind it."""

_FOLDED = re.compile(r"\\\n[ ]*\\?|(?<=[^\s.!?:;|>}\]])\n[ ]+(?=[^\W\d_A-Z]+[ ,.;:!?'])(?![\w ]{1,40}:\s)")
"""A line end inside a value as YAML folds it: behind a backslash, or before an indented line that goes on."""

_STRUCTURE = re.compile(r"[\"'][^\"'\n]{0,400}\\n")
"""A quoted value with a line end written out, as JSON, YAML and Python write one."""

_KEY = re.compile(r"([\"'])[\w.$@-]{1,40}\1\s{0,2}:(?=\s|[\"'\[{\d]|[-\w])")
_OPENED = re.compile(r"[\[{,]\s{0,80}(?=[\"'][^\"'\n]{1,60}[\"']\s{0,2}:|\{|\[)|[\[,]\s{0,80}(?=[\"'])")
"""What stands before a member of JSON, which begins a sentence of its own, with its key."""

_JSON_MARKS = re.compile(r"[\[\]{}\"]")
_QUOTED = re.compile(r"(?m)(?<=\w: )[\"']|[\"']$")
"""Marks of JSON, and the quotation marks around a value of YAML: they would make an order look like a quotation."""

_CELL = re.compile(r"(?m)(?<=[^\s|])[ \t]*\|(?=[^|\n])")
_EMPHASIS = re.compile(
    rf"(?:(?<!\S)[*_~`=+^]{{1,3}}\w[\w'\u2019-]{{0,24}}[.,:;!?]?[*_~`=+^]{{1,3}}\s{{1,3}})"
    rf"{{{MIN_MARKED - 1},1000}}\S{{1,32}}"
)
_MARKS = re.compile(r"[*_~`=+^]")
_LONE = r"[^\S\n]{0,12}(?:[-*+\u2022>#|]{1,3}|\d{1,3}[.)])?[^\S\n]{0,3}[^\W_][\w'\u2019-]{0,24}[.,:;!?]?[^\S\n]{0,3}\|?"
_LINES = re.compile(rf"(?m)^(?:{_LONE}[^\S\n]{{0,3}}\n{{1,2}}){{{MIN_MARKED},1000}}(?:{_LONE})?")
"""One word a line, or one an item."""

_LINE_MARKS = re.compile(r"[\n|]|(?m:^[^\S\n]{0,12}(?:[-*+\u2022>#]{1,3}|\d{1,3}[.)])(?=\s))")
_LETTERS = r"[^\W\d_]{1,24}+"
_JOINED = re.compile(
    rf"(?<![^\s\"'(\[*]){_LETTERS}([_./+=~\u00b7-]{{1,3}}){_LETTERS}(?:\1{_LETTERS}){{{MIN_MARKED - 1},200}}(?!\w)"
)
_JOINT = re.compile(r"[^\w]|_")
"""Words joined by the same mark, more than a name in code has."""


class Layout(NamedTuple):
    """One reading of a text.

    Attributes:
        text: It.
        sentences: The places of its sentences.
        start, end: The source of each character in the text, shape (n,); None where it is as long as the text.
    """

    text: str
    sentences: list[Region]
    start: NDArray[np.int64] | None = None
    end: NDArray[np.int64] | None = None

    def source(self, start: int, end: int) -> Region:
        """Where a part of the reading stands in the text."""
        if self.start is None or self.end is None:
            return start, end
        return int(self.start[start]), int(self.end[end - 1])


def readings(text: str) -> list[Layout]:
    """The readings of a canonical text: as it is laid out, and in its normal spelling if its own is unusual.

    The normal spelling is that of English: in another language it loses letters, so only signs are looked for there.
    """
    plain = _laid_out(text)
    found = [Layout(plain, sentences(plain))]
    meant = analysis(plain).part(respell)
    if meant is not None:
        words = _WORD.findall(meant.text.lower())
        is_english = sum(word in KNOWN for word in words) >= ENGLISH * len(words)
        found.append(Layout(meant.text, sentences(meant.text) if is_english else [], meant.start, meant.end))
    return found


def _laid_out(text: str) -> str:
    if ":" in text and _KEY.search(text):
        text = _OPENED.sub(_line_end, text)
        if text.lstrip()[:1] in ("[", "{"):
            text = _JSON_MARKS.sub(" ", text)
    elif ': "' in text or ": '" in text:
        text = _QUOTED.sub(" ", text)
    if "\\" in text and _STRUCTURE.search(text):
        text = text.replace("\\n", " \n")
    if "|" in text:
        text = _CELL.sub(_line_end, text)
    if _MARKS.search(text):
        text = _EMPHASIS.sub(lambda match: _MARKS.sub(" ", match[0]), text)
    text = _JOINED.sub(lambda match: _JOINT.sub(" ", match[0]), text)
    if "\n" in text:
        text = _LINES.sub(lambda match: _LINE_MARKS.sub(_blank, match[0]), text)
        text = _SOFT_BREAK.sub(" ", _FOLDED.sub(_blank, text))
    return text


def _line_end(match: re.Match[str]) -> str:
    return " " * (len(match[0]) - 1) + "\n"


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
