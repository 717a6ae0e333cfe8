"""Invisible characters, stacked combining marks, and NFKC in parts (fullwidth, mathematical, circled letters)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from unicodedata import category, is_normalized, normalize

from unpoison.text.alignment import UNTRACED, Change, Edits

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


BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
BLANK = re.compile(rf"(?:(?![{BREAKS}])[\s\u2800])+")
BREAK = re.compile(rf" ?[{BREAKS}][{BREAKS} ]*")
SINGLE = re.compile(r" ?(?:[^\s\u2800]++[ \n])*+[^\s\u2800]*+")
"""Words with one space or one line break between them."""

IGNORED = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters that are no white space
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e0fff"
    r"\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # no characters at all
)
"""Unicode's default-ignorable code points, control characters, annotation marks and noncharacters; without the tag
characters, which `hidden_words` reads."""

PICTURE = r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
ARABIC = r"\u0620-\u06ff\u0750-\u077f\u0870-\u08ff"
JOINING = (
    r"\u0620\u0626\u0628\u062a-\u062e\u0633-\u063f\u0641-\u0647\u0649\u064a\u066e\u066f\u0678-\u0687\u069a-\u06bf"
    r"\u06c1\u06c2\u06cc\u06ce\u06d0\u06d1\u06fa-\u06fc\u0750-\u0758\u075c-\u076a"
)
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
UNSPACED = (
    r"\u0e00-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3131-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\U00020000-\U0003ffff"
)
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

KEPT_FORMS = (
    r"\u00a8\u00af\u00b2-\u00b4\u00b8\u00b9\u00bc-\u00be\u02d8-\u02dd\u037a\u0384\u0385\u1fbd-\u1fc1\u1fcd-\u1fcf"
    r"\u1fdd-\u1fdf\u1fed-\u1fef\u1ffd\u1ffe\u2017\u2026\u203e\u2070\u2074-\u207e\u2080-\u208e\u2120"
    r"\u2122\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff\u3131-\u3163\u3165-\u318e\u0e33\u0eb3\ufdf0-\ufdfd"
)
"""Characters whose meaning or look NFKC would change: superscript digits (ten squared is not 102), fractions, circled
numbers, free-standing accents, the ellipsis, trade marks, single Korean letters, the Thai and Lao vowel am, Arabic
words in one character."""

WIDE_MARKS = r"\uff01\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff5e"
EAST = r"\u2e80-\u30ff\u3131-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff66-\uff9d"
KEPT = re.compile(rf"([{KEPT_FORMS}]+|(?<=[{EAST}])[{WIDE_MARKS}]+|(?<![{WIDE_MARKS}])[{WIDE_MARKS}]++(?=[{EAST}]))")

STYLED = re.compile(
    r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\u1d2c-\u1d2e\u1d30-\u1d3a\u1d3c-\u1d4d\u2071\u207f\u2090-\u209c\u2102"
    r"\u210a-\u2113\u2115\u2119-\u211d\u2124\u2128-\u212d\u212f-\u2131\u2133-\u2134\u249c-\u24e9"
    r"\U0001d400-\U0001d7ff\U0001f110-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189]+"
)
"""Styled letters and digits: fullwidth, mathematical, circled, squared, superscript."""

BADGES = {first + i: chr(ord("A") + i) for first in (0x1F150, 0x1F170) for i in range(26)}
"""White letters on black circles and squares, which NFKC does not change."""

BADGE = r"[\U0001f150-\U0001f169\U0001f170-\U0001f189]"
BADGE_RUN = re.compile(rf"{BADGE}{{2,}}|(?<=[A-Za-z]){BADGE}|{BADGE}(?=[A-Za-z])")

LETTERS = (
    r"A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0370-\u0373\u0376-\u03ff\u0400-\u0481\u048a-\u052f"
    r"\u1d00-\u1dbf\u1e00-\u1fff\u2c60-\u2c7f\ua722-\ua7ff"
)
"""Latin, Greek and Cyrillic."""

OPEN = "\u0254\u0186\u025b\u0190\u0259\u018f\u026a\u028a\u028b\u0268\u0289" + "".join(
    c for c in map(chr, range(0xC0, 0x250)) if normalize("NFD", c)[0] in "aeiouyAEIOUY" and len(normalize("NFD", c)) > 1
)
OPEN += "".join(c for c in map(chr, range(0x1EA0, 0x1EFA)) if normalize("NFD", c)[0] in "aeiouyAEIOUY")
TONES = r"\u0300\u0301\u0302\u0303\u0304\u0308\u030c"
FORMULA = r"\u0300-\u030c\u20d7"

SHARED = r"\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20e2\u20e4-\u20f0\ufe20-\ufe2f"
"""Marks that belong to no single script."""

OTHER = (
    r"\s!-@\[-`{-~"
    r"\u0590-\u06ff\u0750-\u077f\u08a0-\u08ff\u0900-\u109f\u10d0-\u11ff\u1780-\u17ff\u3040-\u30ff\u3131-\u318e"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
)
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
