"""Invisible characters, stacked combining marks, and NFKC in parts (fullwidth, mathematical, circled letters)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from unicodedata import category, is_normalized, normalize

from unpoison.text.alignment import UNTRACED, Change, Edits
from unpoison.utils.assets import read_data

__all__ = ["MESSAGE", "blanks", "compose_nfkc", "hidden_words", "invisible", "recompose", "strip_marks"]


def recompose(text: str, offset: int = 0, *, finely: bool) -> list[Change]:
    """The changes of NFKC in a text that begins at `offset`.

    Args:
        text: A text without long runs of combining marks, because sorting these takes quadratic time.
        offset: Added to all positions.
        finely: One change for each letter with its marks, instead of one for the whole text.
    """
    new = normalize("NFKC", text)
    if new == text:
        return []
    if finely:
        parts = [(*letters.span(), normalize("NFKC", letters[0])) for letters in _letters().finditer(text)]
        if UNTRACED.put(text, parts) == new:  # always, unless a new Unicode version adds exceptions
            return [(offset + start, offset + end, part) for start, end, part in parts]
    return [(offset, offset + len(text), new)]


@cache
def _letters() -> re.Pattern[str]:
    """A letter with the characters that may combine with it; ASCII letters only with such characters. Linear."""
    marks = _char_class(p for p in range(0x300, 0x1F000) if category(chr(p)).startswith("M"))
    joining = rf"{marks}\u1160-\u11ff\uff9e\uff9f\uffc2-\uffdc"  # Hangul vowels and final consonants, voiced kana
    return re.compile(rf"[^{joining}]?[{joining}]+|[^\x00-\x7f{joining}]")


def _char_class(points: Iterable[int]) -> str:
    """Ascending code points as ranges of a character class."""
    ranges: list[tuple[int, int]] = []
    for point in points:
        first = ranges.pop()[0] if ranges and ranges[-1][1] == point - 1 else point
        ranges.append((first, point))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_RANGES = read_data("characters.json")
"""Ranges of characters, as regular expressions write them."""

BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
BLANK = re.compile(rf"(?:(?![{BREAKS}])[\s\u2800])+")
BREAK = re.compile(rf" ?[{BREAKS}][{BREAKS} ]*")
SINGLE = re.compile(r" ?(?:[^\s\u2800]++[ \n])*+[^\s\u2800]*+")
"""Words with one space or one line break between them."""

IGNORED = _RANGES["ignored"]
"""Unicode's default-ignorable code points, control characters, annotation marks and noncharacters; without white space
and the tag characters, which `hidden_words` reads."""

PICTURE = r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
ARABIC = r"\u0620-\u06ff\u0750-\u077f\u0870-\u08ff"
JOINING = _RANGES["joining"]
VIRAMA = r"\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"

MEANINGFUL = (
    rf"(?<=[{VIRAMA}])[\u200c\u200d]|(?<=[\u0900-\u0dff])\u200d(?=[{VIRAMA}])"  # which form an Indic cluster takes
    rf"|(?<=[{JOINING}])\u200c(?=[{ARABIC}])"  # Persian and Urdu: letters that do not join
    rf"|(?<=[{PICTURE}\ufe0f])\u200d(?=[{PICTURE}])"  # one picture of several
    rf"|(?<=[{PICTURE}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # a sign as picture or as text
    r"|(?<=[\u1820-\u18aa])[\u180b-\u180f]"  # Mongolian letter forms
)
"""Invisible characters that have a meaning in their context."""

CHOICE = r"\u180b-\u180f\u200c\u200d\ufe0e\ufe0f"
UNSEEN = rf"(?:(?![{CHOICE}])[{IGNORED}]|(?!{MEANINGFUL})[{CHOICE}])++"
STRAY = re.compile(UNSEEN)
ANY_UNSEEN = re.compile(rf"[{CHOICE}{IGNORED}]")
"""The characters of `STRAY`, for a faster search."""
INSIDE = re.compile(rf"(?<=[^\W_]){UNSEEN}(?=[^\W_])")
UNSPACED = _RANGES["unspaced"]
SPACELESS = re.compile(rf"[{UNSPACED}]")
BETWEEN = re.compile(rf"(?<=[^\W_{UNSPACED}]){UNSEEN}(?=[^\W_{UNSPACED}])")
"""Inside words, except next to a script without spaces, where they mark possible line breaks."""
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
PARTED = re.compile(
    rf"(?<![^\s{CHOICE}{IGNORED}])[^\s{CHOICE}{IGNORED}]++(?:[{CHOICE}{IGNORED}]++[^\s{CHOICE}{IGNORED}]++)++"
)
"""A run without white space, with such characters inside."""
LONG_RUN, MEAN_PIECE = 40, 4
MARKS = ".,;:!?()[]'\"\u2018\u2019\u201c\u201d"
LINE_END = re.compile(r"(?<=[^\W\d_])\u00ad[ \t]*\r?\n[ \t]*(?=[^\W\d_])(?![A-Z])")
TAGS = re.compile("(\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]+")

TAG = "\U000e0000-\U000e007f"
ANY_TAG = re.compile(f"[{TAG}]")

MIN_WORDS = 5
"""Minimum number of invisible words in sequence that are a message, and are read."""

MESSAGE = re.compile(rf"(?<![^\W_])[^\W\d_]++(?:[ ,'\u2019-]{{1,2}}+[^\W_]++){{{MIN_WORDS - 1},}}+")

KEPT_FORMS = _RANGES["kept_forms"]
"""Characters whose meaning or look NFKC would change: superscript digits (ten squared is not 102), fractions, circled
numbers, free-standing accents, the ellipsis, trade marks, single Korean letters, the Thai and Lao vowel am, Arabic
words in one character."""

WIDE_MARKS = r"\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff5e"
EAST = r"\u2e80-\u30ff\u3131-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff66-\uff9d"
KEPT = re.compile(rf"([{KEPT_FORMS}]+|(?<=[{EAST}])[{WIDE_MARKS}]+|(?<![{WIDE_MARKS}])[{WIDE_MARKS}]++(?=[{EAST}]))")

STYLED = re.compile(rf"[{_RANGES['styled']}]+")
"""Styled letters and digits: fullwidth, mathematical, circled, squared, superscript."""

BADGES = {first + i: chr(ord("A") + i) for first in (0x1F150, 0x1F170) for i in range(26)}
"""White letters on black circles and squares, which NFKC does not change."""

BADGE = r"[\U0001f150-\U0001f169\U0001f170-\U0001f189]"
BADGE_RUN = re.compile(rf"{BADGE}{{2,}}|(?<=[A-Za-z]){BADGE}|{BADGE}(?=[A-Za-z])")

LETTERS = _RANGES["letters"]
"""Latin, Greek and Cyrillic."""

OPEN = _RANGES["open_vowels"]
TONES = r"\u0300\u0301\u0302\u0303\u0304\u0308\u030c"
FORMULA = r"\u0300-\u030c\u20d7"

SHARED = r"\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20e2\u20e4-\u20f0\ufe20-\ufe2f"
"""Marks that belong to no single script."""

OTHER = _RANGES["other"]
"""Scripts, digits and marks on which these marks have no meaning."""


def invisible(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """Remove invisible characters from a text, and count those inside words.

    Characters with a meaning are kept (`MEANINGFUL`). A byte order mark at the start, and soft hyphens at line ends as
    in a PDF, are not counted; the latter join the parts of a word. A control character between letters becomes a space
    and is not counted, because PDFs contain them. A format character between letters is removed, unless it separates
    words: it becomes a space if all parts are frequent words, the whole is not, and the parts have `MEAN_PIECE` letters
    on average; also in runs of more than `LONG_RUN` characters with parts of that length. This does not apply next to a
    script without spaces.
    """
    if not ANY_UNSEEN.search(text) or not STRAY.search(text):
        return text, 0
    text = edits.cut(text, text.startswith("\ufeff"), len(text))
    if "\u00ad" in text:
        ends = len(LINE_END.findall(text))
        text = edits.sub(LINE_END, "" if 4 * ends <= len(text.split()) else " ", text)
    if CONTROL.search(text):
        text = edits.sub(BETWEEN, lambda stray: " " if CONTROL.search(stray[0]) else stray[0], text)
    strays = sum(map(len, (BETWEEN if SPACELESS.search(text) else INSIDE).findall(text)))
    spaces = [space for run in PARTED.finditer(text) for space in _spaces(run)] if strays else []
    return edits.sub(STRAY, "", edits.put(text, spaces)), strays


def _spaces(run: re.Match[str]) -> list[Change]:
    """The changes of format characters between words to spaces, in a run without white space."""
    strays = [stray.span() for stray in STRAY.finditer(run.string, *run.span())]
    edges = [run.start(), *(edge for stray in strays for edge in stray), run.end()]
    pieces = [run.string[start:end] for start, end in zip(edges[::2], edges[1::2])]
    letters = sum(map(len, pieces))
    if letters < MEAN_PIECE * len(pieces) or SPACELESS.search(run[0]):
        return []
    if (len(strays) < 3 or len(run[0]) <= LONG_RUN) and not _are_words([piece.strip(MARKS) for piece in pieces]):
        return []
    return [(start, end, " ") for start, end in strays]


def _are_words(pieces: list[str]) -> bool:
    """Whether there are three or more parts, all frequent words; "time\u00adless" is one word."""
    import numpy as np  # only such texts need it, and the weights

    from unpoison.text.gibberish import are_frequent

    edges = np.cumsum([0, *map(len, pieces)])
    *known, whole = are_frequent("".join(pieces), np.append(edges[:-1], 0), np.append(edges[1:], edges[-1])).tolist()
    return len(pieces) > 2 and all(known) and not whole


def hidden_words(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """Remove tag characters from a text; also returns the messages they spell, and their number.

    Tag characters mirror ASCII and are never displayed, but language models read them. The flags of England, Scotland
    and Wales, which consist of them, are kept.
    """
    runs = [match for match in TAGS.finditer(text) if match[1] is None] if ANY_TAG.search(text) else []
    if not runs:
        return text, [], 0
    marks = [i for run in runs for i in range(run.start(), run.end()) if 0x20 <= ord(text[i]) & 0x7F < 0x7F]
    messages = list(MESSAGE.finditer("".join(chr(ord(text[i]) & 0x7F) for i in marks)))
    for message in messages:
        edits.mark_message(marks[message.start() : message.end()])
    count = sum(run.end() - run.start() for run in runs)
    return edits.put(text, [(*run.span(), "") for run in runs]), [message[0] for message in messages], count


def compose_nfkc(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """Convert a text to NFKC, except `KEPT_FORMS` and East Asian punctuation, and count the styled letters.

    Fullwidth letters in East Asian text are not counted. Runs of marks are first truncated to eight, because sorting
    marks takes quadratic time.
    """
    if text.isascii():
        return text, 0
    marks = _marks(text)
    if marks.any.search(text):
        text = edits.sub(marks.endless, r"\1", text)
    styled = 0
    if STYLED.search(text):
        letters = "".join(STYLED.findall(text))
        styled = len(re.sub(r"[\uff10-\uff5a]", "", letters) if SPACELESS.search(text) else letters)
        text = edits.sub(BADGE_RUN, lambda run: run[0].translate(BADGES), text)
    if is_normalized("NFKC", text):
        return text, styled
    changes, offset = list[Change](), 0
    for number, piece in enumerate(KEPT.split(text)):
        changes += [] if number % 2 else recompose(piece, offset, finely=edits.traced)
        offset += len(piece)
    return edits.put(text, changes), styled


def strip_marks(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """Remove marks that do not belong to their letter, and count them.

    After `compose_nfkc`, a mark that forms a letter with its base is part of it (e and acute are one letter). Of the
    others, these are kept: one tone on a vowel that has an accent or is open (Yoruba, Ewe, Navajo), one accent on a
    single letter (the mean of x), and the marks of a particular script.
    """
    if text.isascii():
        return text, 0
    patterns = _marks(text)
    if not patterns.any.search(text):
        return text, 0
    cut = edits.sub(patterns.heaped, r"\1", text)
    cut = edits.sub(patterns.foreign, "", cut)
    cut = edits.sub(patterns.loose, "", cut)
    return cut, len(text) - len(cut)


def blanks(text: str, edits: Edits = UNTRACED) -> str:
    """Collapse white space to a line break if it contains one, otherwise a space; none at the ends."""
    if not SINGLE.fullmatch(text):
        text = edits.sub(BREAK, "\n", edits.sub(BLANK, " ", text))
    start = len(text) - len(text.lstrip(" \n"))
    return edits.cut(text, start, max(start, len(text.rstrip(" \n"))))


RARE = re.compile("[\U00010000-\U0001f000]")


class _Marks:
    """The patterns of all combining marks up to a code point; compiled when a text first needs them."""

    def __init__(self, last: int) -> None:
        points = (p for p in range(0x300, last + 1) if category(chr(p)) in ("Mn", "Me") and not 0xFE00 <= p <= 0xFE0F)
        every = _char_class(points)
        self.any = re.compile(rf"[{every}{SHARED}]")
        self.endless = re.compile(rf"([{every}]{{8}})[{every}]+")
        tone = rf"(?<=[{OPEN}])[{TONES}]"
        alone = rf"(?<=(?<![\w{every}])[{LETTERS}])[{FORMULA}](?![\w{every}])"
        self.heaped = re.compile(rf"({tone})[{every}]+")
        self.foreign = re.compile(rf"(?<=[{LETTERS}])(?!{tone})(?!{alone})[{every}]+")
        self.loose = re.compile(rf"(?<![^{OTHER}])(?!(?<=[0-9])[\u0305\u0307](?![{every}]))[{SHARED}]+")


def _marks(text: str) -> _Marks:
    """The patterns for a text; those that also know the marks of rare scripts take far longer."""
    return _patterns(0x1F000 if RARE.search(text) else 0xFFFF)


_patterns = cache(_Marks)
