"""Decodes texts that a language model reads as easily as plain ones: escapes, base64, reversed text, ROT13.

Only encoded words are decoded, so code, addresses and keys are unchanged.
"""

from __future__ import annotations

import codecs
import re
from base64 import b64decode
from collections.abc import Callable

from unpoison.text.alignment import UNTRACED, Edits
from unpoison.text.invisible import MESSAGE
from unpoison.text.tokens import ENGLISH_318

__all__ = ["decode_text", "octets_of"]

MIN_RUN_CHARS = 24
"""Minimum characters of a message in base64 or hexadecimal digits."""

BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}={{0,2}}")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
HEXADECIMAL = re.compile(rf"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{{2}}){{{MIN_RUN_CHARS // 2},}}(?![0-9A-Za-z])")

ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|=([0-9A-F]{2})|\\(1[0-7]{2})")
ONE = r"(?:\\u\{?[0-9a-fA-F]{4}\}?|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|=[0-9A-F]{2}|\\1[0-7]{2})"
ESCAPED = re.compile(rf"(?:{ONE}[^\n\\%=]{{0,40}}?){{2,}}{ONE}")
"""Three or more escapes close together."""

WRAPPED = re.compile(rf"(?:[^ \n]{{0,{MIN_RUN_CHARS - 1}}}+[ \n])*+[^ \n]{{0,{MIN_RUN_CHARS - 1}}}+")
"""Texts without a run of this length, as most are."""

SPACE = 0x20
ESCAPE_GOES_ON = re.compile(r"[a-z\\\\%=]")
"""What follows an escaped letter inside a word; not in `x=41 y=42`."""

SPACED = re.compile(r"(?<!\S)(?:\S(?: \S){0,23}+(?:[ \t]{2,}|[ \t]*\n\s*)){4,}\S(?: \S)*+(?!\S)")
"""Words with one space between letters, and more white space between words."""
SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")

OVERRIDDEN = re.compile("\u202e([^\u202c\u202e\n]+)\u202c?")
"""Characters that are displayed from right to left because of a mark."""
MIN_OVERRIDDEN_WORDS = 3
"""Minimum words of a message written backwards."""
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")

LINE = re.compile(r"[^\n]{20,}")
LATIN = re.compile(r"[A-Za-z]{2}")
WORD = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")
"""A word of letters only, without digits beside them."""
MAX_LINE_CHARS = 2_000
"""Maximum characters of a line that are checked for reversed words."""

SENSE, NONSENSE = 0.18, 0.08
"""The minimum share of function words in a meaningful line, and the maximum in a meaningless one."""

MIN_WORDS = 5

MIN_FUNCTION_WORDS = 2
"""Minimum distinct function words of a decoded line."""

FUNCTION = frozenset(word for word in ENGLISH_318 if len(word) > 1)
PLAINLY = re.compile(
    r"(?<![^\W_])(?:the|of|and|to|in|is|are|was|for|that|with|you|de|la|que|der|die|und|le|les)(?![^\W_])",
    re.IGNORECASE,
)
"""Frequent words; a line with one of them is not encoded, and most lines have one."""


def decode_text(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    r"""Decode the encoded parts of a text in place, and count them.

    - Base64 and hexadecimal digits that spell at least five words.
    - Escapes such as `%69`, `\u0069`, `\x69` or `=69`, close together, for spaces between words or letters inside.
    - Words with spaced letters.
    - Text written backwards and displayed forwards because of a mark (U+202E).
    - Lines of English words written backwards, as a whole or word by word, or in ROT13.

    Linear time.
    """
    count = 0
    for possible, finders in _FINDERS:
        for pattern, plainly in finders if possible(text) else ():
            found = [(run, plainly(run[0])) for run in pattern.finditer(text)]
            changes = [(*run.span(), plain) for run, plain in found if plain is not None]
            text, count = edits.put(text, changes) if changes else text, count + len(changes)
    return text, count


def _has_word_gaps(text: str) -> bool:
    """Whether there is enough white space between words with spaced letters."""
    return sum(map(text.count, ("\n", "\t", "  "))) >= 4


def _has_escapes(text: str) -> bool:
    """Whether there are enough signs for three escapes."""
    return sum(map(text.count, "%\\=")) >= 3


def _unbroken(text: str) -> bool:
    """Whether a run may be long enough for a message."""
    return WRAPPED.fullmatch(text) is None


def _has_override(text: str) -> bool:
    """Whether a mark changes the direction of writing."""
    return "\u202e" in text


def _overridden(run: str) -> str | None:
    """The displayed text, if it makes more sense than the written one."""
    inside = run.strip("\u202e\u202c")
    shown = inside[::-1]
    plainly = len(inside.split()) < MIN_OVERRIDDEN_WORDS or _sense(inside) > 0 or not _sense(shown)
    return None if plainly or RIGHT_TO_LEFT.search(inside) else shown


def _join_letters(run: str) -> str | None:
    plain = SINGLE_SPACE.sub("", run)
    return plain if _sense(plain) >= SENSE else None


def _unescape(run: str) -> str | None:
    """A run with decoded escapes, if these encode letters or spaces."""
    octets, last, hides, parts = bytearray(), 0, 0, 0
    for escape in ESCAPE.finditer(run):
        code = int(escape[escape.lastindex or 0], 8 if escape[5] else 16)
        hides += code < 0x80 and chr(code).isalnum() and ESCAPE_GOES_ON.match(run, escape.end()) is not None
        parts += code == SPACE
        octets += run[last : escape.start()].encode(errors="replace")
        octets += chr(code).encode(errors="replace") if escape[1] else bytes([code])
        last = escape.end()
    plain = (octets + run[last:].encode(errors="replace")).decode(errors="replace")
    return plain if hides >= 3 or parts >= MIN_WORDS - 1 else None


def _of_base64(run: str) -> str | None:
    if run.isalpha() and (run.islower() or run.isupper()):
        return None
    return _decode_octets(octets_of(run))


def octets_of(encoded: str) -> bytes:
    """The octets of base64; what is not of the alphabet is left out, and what is too short at the end."""
    body = _NOT_BASE64.sub("", encoded.replace("-", "+").replace("_", "/"))
    body = body[: len(body) - (len(body) % 4 == 1)]
    return b64decode(body + "=" * (-len(body) % 4))


def _of_hexadecimal(run: str) -> str | None:
    return _decode_octets(bytes.fromhex(run.removeprefix("0x")))


def _decode_octets(octets: bytes) -> str | None:
    """The text of octets, if it is a message."""
    try:
        plain = octets.decode()
    except UnicodeDecodeError:
        return None
    if BASE64.fullmatch(plain):
        return _of_base64(plain)
    return plain if MESSAGE.search(plain) else None


def _restore_line(line: str) -> str | None:
    """A decoded line, if only the decoded form makes sense."""
    if not LATIN.search(line) or PLAINLY.search(line):
        return None
    begin = line[:MAX_LINE_CHARS]
    if len(WORD.findall(begin)) < MIN_WORDS or _sense(begin) > NONSENSE:
        return None
    turns = [turn for turn in (_backwards, _words_backwards, _rot13) if _speaks(turn(begin))]
    # A line of reversed words also makes sense if reversed as a whole, except that it begins with the full stop.
    best = sorted(turns, key=lambda turn: turn(line)[:1] in ".,;:!?")[:1]
    return best[0](line) if best else None


def _speaks(line: str) -> bool:
    """Whether a line has enough distinct function words; codes repeat one."""
    return _sense(line) >= SENSE and len(FUNCTION.intersection(WORD.findall(line.lower()))) >= MIN_FUNCTION_WORDS


def _sense(line: str) -> float:
    """The share of function words among the words of a line."""
    words = WORD.findall(line.lower())
    return sum(word in FUNCTION for word in words) / (len(words) or 1)


def _backwards(line: str) -> str:
    return line[::-1]


def _words_backwards(line: str) -> str:
    return WORD.sub(lambda word: word[0][::-1], line)


def _rot13(line: str) -> str:
    return codecs.encode(line, "rot13")


_Finder = tuple[re.Pattern[str], Callable[[str], str | None]]

_FINDERS: tuple[tuple[Callable[[str], object], tuple[_Finder, ...]], ...] = (
    (_has_override, ((OVERRIDDEN, _overridden),)),
    (_has_word_gaps, ((SPACED, _join_letters),)),
    (_has_escapes, ((ESCAPED, _unescape),)),
    (_unbroken, ((BASE64, _of_base64), (HEXADECIMAL, _of_hexadecimal))),
    (len, ((LINE, _restore_line),)),
)
"""A cheap test whether a text may contain such an encoding, its pattern, and its decoder."""
