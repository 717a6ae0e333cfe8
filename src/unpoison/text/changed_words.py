"""One or two numbers or names in which a text differs from a near-copy: a changed fact, not a series of documents.

Documents from one template also differ in a few places: a version, the number of a figure, a heading, the subject.
There a difference is normal and does not count. A different number does not count either if the date differs too.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from unpoison.text.answer_forms import read_answer
from unpoison.text.near_duplicates import FoldedText, differ, differences, with_unit
from unpoison.text.normalisation import word_set
from unpoison.text.questions import read_question

__all__ = ["MAX_CHANGES", "ChangedWords", "changed_words"]

MAX_CHANGES = 2
"""Maximum distinct differences between a changed text and its original."""

MIN_SHARED = 6
"""Minimum number of common words, in order; shorter texts are too short to be copies."""

MIN_SHARE = 0.8
"""Minimum share of common words, relative to the longer text."""

LONG = 60
"""Minimum number of common words of long texts. If these differ in a single place, they are no series: the difference
also counts in code, list items and later headings."""

MAX_NAME_WORDS = 4
"""Maximum words of a name."""

SUBJECT_WORDS = 3
"""A name among this number of first words is the subject: such a page is about another subject, by one template."""

MAX_HEADING = 80
"""Maximum characters of a first line to be read as a heading."""

NUMBERED = word_set(
    "figure fig table section sec chapter part page pages p pp no nr number numbers num step item version v ver volume "
    "vol issue id ids ticket invoice order release appendix lesson question example exercise eq equation ref reference "
    "line row column paragraph article art case sample model type class level grade phase episode season edition "
    "build rev revision patch port index serial batch lot room unit block zone kapitel abschnitt abbildung abb tabelle "
    "seite nummer figura tabla capítulo sección página número"
)
"""Words before a number that names something and is no amount."""

_COUNTED, _DATED = read_question("how many"), read_question("when")

_CODE = re.compile(r"[/\\=@#&{}\[\]^]")
"""Marks next to a word in code, a path, a formula or a list of references."""

_VERSION = re.compile(r"v?\d+\.\d+\.\d[\w.]*|v\d[\w.]*", re.IGNORECASE)
_MIXED = re.compile(r"(?=\w*\d)(?=\w*[^\W\d_])\w+(?:-\w+)*|\d+(?:-\d+)+|0\d+")
"""Letters and digits in one word, such as "A17": the name of an element of a series."""

_MARKUP = ' |*_`$€£{}<>#="'
"""Marks of tables, bold text, code, elements or prices next to a number or name."""

_SIGN = re.compile(r"\w\s?[^\w\s.,&'\u2019-]\s?\w")
"""A mark that no name contains."""


class ChangedWords(NamedTuple):
    """A difference of two near-copies.

    Attributes:
        kind: Whether a number or a name differs.
        ours, theirs: The words of each text, a number with its unit.
        place: The range of words in our text.
    """

    kind: Literal["number", "name"]
    ours: str
    theirs: str
    place: tuple[int, int]


def changed_words(left: FoldedText, right: FoldedText) -> tuple[ChangedWords, ...] | None:
    """The distinct numbers and names in which a text differs from a near-copy; linear time.

    Returns:
        Empty for equivalent texts. None if they are not near-copies, belong to a series, or differ in more than
        `MAX_CHANGES` numbers and names or in anything else.
    """
    places = differences(left, right)
    if places is None:
        return None
    shared = len(left.words) - sum(b - a for (a, b), _ in places)
    if shared < max(MIN_SHARED, MIN_SHARE * max(len(left.words), len(right.words))):
        return None
    changes: dict[tuple[str, str], ChangedWords] = {}
    alone = shared >= LONG and len({(left.slice(*ours), right.slice(*theirs)) for ours, theirs in places}) == 1
    for place in places:
        ours, theirs = left.slice(*place.left).strip(_MARKUP), right.slice(*place.right).strip(_MARKUP)
        if not ours or not theirs:
            return None
        kind = _kind(ours, theirs)
        subject = kind == "name" and place.left[0] < SUBJECT_WORDS  # also a name that may be a spelling of the other
        if not subject and not differ(ours, theirs):
            continue
        if kind is None or (_is_serial(left, place.left, kind, alone) or _is_serial(right, place.right, kind, alone)):
            return None
        one = with_unit(left, place.left, ours).strip(_MARKUP)
        other = with_unit(right, place.right, theirs).strip(_MARKUP)
        change = ChangedWords(kind, one, other, place.left)
        changes.setdefault((ours.casefold(), theirs.casefold()), change)
    found = tuple(changes.values())
    if len(found) > MAX_CHANGES or sum(change.kind == "name" for change in found) > 1:
        return None
    return None if len(found) > 1 and any(_is_date(left, change.place) for change in found) else found


def _kind(ours: str, theirs: str) -> Literal["number", "name"] | None:
    if _is_number(ours) and _is_number(theirs):
        return "number"
    return "name" if _is_name(ours) and _is_name(theirs) else None


def _is_number(words: str) -> bool:
    return any(map(str.isdigit, words)) or bool(read_answer(words, _COUNTED).counts)


def _is_name(words: str) -> bool:
    parts = words.split()
    capital = words[0].isupper() and parts[-1][0].isupper() and not words.isupper()
    return capital and len(parts) <= MAX_NAME_WORDS and not _SIGN.search(words)


def _is_serial(text: FoldedText, place: tuple[int, int], kind: str, alone: bool) -> bool:
    """Whether these words distinguish documents of a series; `alone` if long texts differ only there."""
    start, end = text.starts[place[0]], text.starts[place[1] - 1] + len(text.words[place[1] - 1])
    words = text.text[start:end]
    line_start = text.text.rfind("\n", 0, start) + 1
    line_end = text.text.find("\n", end)
    line = text.text[line_start : line_end if line_end >= 0 else len(text.text)].strip()
    first = not text.text[:line_start].strip()
    heading = (line.startswith("#") and (first or not alone)) or (
        first and line_end >= 0 and len(line) < MAX_HEADING and line[-1:].isalnum()
    )
    if heading or kind == "name":
        return heading or place[0] < SUBJECT_WORDS
    before = text.words[place[0] - 1] if place[0] else ""
    code = bool(_CODE.search(text.text[max(start - 1, 0) : start] + text.text[end : end + 1]))
    if _VERSION.fullmatch(words) or (before in NUMBERED and not (alone and code)):
        return True
    return not alone and (
        code
        or bool(_MIXED.fullmatch(words))
        or not text.text[line_start:start].strip()  # the number of a line, a list item or the whole text
    )


def _is_date(text: FoldedText, place: tuple[int, int]) -> bool:
    """Whether these words, alone or with their neighbours, are a date or year: English months, any numbers."""
    words = text.slice(place[0], place[1])
    around = text.slice(max(place[0] - 1, 0), min(place[1] + 1, len(text.words)))
    return bool(read_answer(words, _DATED).dates or read_answer(around[:200], _DATED).dates)
