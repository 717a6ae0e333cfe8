"""Texts in an encoding that a language model reads as easily as plain letters: escapes, base64, letters turned round.

Only what turns out to be words is decoded, so code, addresses and keys stay as they are.
"""

from __future__ import annotations

import codecs
import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable

from unpoison.text.alignment import UNTRACED, Edits
from unpoison.text.invisible import MESSAGE
from unpoison.text.tokens import ENGLISH_318

__all__ = ["decode_text"]

MIN_RUN_CHARS = 24
"""Characters of a run in base64 or of hexadecimal digits that may be a message."""

BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}={{0,2}}")
HEXADECIMAL = re.compile(rf"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{{2}}){{{MIN_RUN_CHARS // 2},}}(?![0-9A-Za-z])")

ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})|=([0-9A-F]{2})|\\(1[0-7]{2})")
ONE = r"(?:\\u\{?[0-9a-fA-F]{4}\}?|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|=[0-9A-F]{2}|\\1[0-7]{2})"
ESCAPED = re.compile(rf"(?:{ONE}[^\n\\%=]{{0,40}}?){{2,}}{ONE}")
"""A stretch in which escapes follow each other closely."""

WRAPPED = re.compile(rf"(?:[^ \n]{{0,{MIN_RUN_CHARS - 1}}}+[ \n])*+[^ \n]{{0,{MIN_RUN_CHARS - 1}}}+")
"""Most texts: without a run of that length."""

SPACE = 0x20
ESCAPE_GOES_ON = re.compile(r"[a-z\\\\%=]")
"""Behind an escape that stands for a letter of a word; `x=41 y=42` has none."""

SPACED = re.compile(r"(?<!\S)(?:\S(?: \S){0,23}+(?:[ \t]{2,}|[ \t]*\n\s*)){4,}\S(?: \S)*+(?!\S)")
"""Words whose letters are parted by one space, themselves by more."""
SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")

OVERRIDDEN = re.compile("\u202e([^\u202c\u202e\n]+)\u202c?")
"""Characters that a mark shows from right to left."""
MIN_OVERRIDDEN_WORDS = 3
"""Words of a message that is written backwards."""
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")

LINE = re.compile(r"[^\n]{20,}")
LATIN = re.compile(r"[A-Za-z]{2}")
WORD = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")
"""No letters of a number or a code."""
MAX_LINE_CHARS = 2_000
"""Characters of a line whose words say whether it is turned round."""

SENSE, NONSENSE = 0.18, 0.08
"""Shares of function words: at least so many in a line that makes sense, at most so many in one that does not."""

MIN_WORDS = 5

MIN_FUNCTION_WORDS = 2
"""Different function words of a line that is turned round."""

FUNCTION = frozenset(word for word in ENGLISH_318 if len(word) > 1)
PLAINLY = re.compile(
    r"(?<![^\W_])(?:the|of|and|to|in|is|are|was|for|that|with|you|de|la|que|der|die|und|le|les)(?![^\W_])",
    re.IGNORECASE,
)
"""Words by one of which nearly every line shows at once that it is no cipher."""


def decode_text(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    r"""A text with what is encoded in it in place, and how many stretches were.

    - Base64 and hexadecimal digits that spell at least five words.
    - Escapes such as `%69`, `\u0069`, `\x69` or `=69` that follow each other and part words or stand for
      letters inside them.
    - Words whose letters stand apart.
    - What is written backwards and shown the right way round by a mark (U+202E).
    - Lines of English words written backwards, whole or word by word, or in ROT13.

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
    """Whether there is white space between four words whose letters are parted by one space."""
    return sum(map(text.count, ("\n", "\t", "  "))) >= 4


def _has_escapes(text: str) -> bool:
    """Whether there are the signs of three escapes."""
    return sum(map(text.count, "%\\=")) >= 3


def _unbroken(text: str) -> bool:
    """Whether a run may be long enough to be a message."""
    return WRAPPED.fullmatch(text) is None


def _has_override(text: str) -> bool:
    """Whether a mark turns the direction of writing."""
    return "\u202e" in text


def _overridden(run: str) -> str | None:
    """What is shown, where that makes more sense than what is written."""
    inside = run.strip("\u202e\u202c")
    shown = inside[::-1]
    plainly = len(inside.split()) < MIN_OVERRIDDEN_WORDS or _sense(inside) > 0 or not _sense(shown)
    return None if plainly or RIGHT_TO_LEFT.search(inside) else shown


def _join_letters(run: str) -> str | None:
    plain = SINGLE_SPACE.sub("", run)
    return plain if _sense(plain) >= SENSE else None


def _unescape(run: str) -> str | None:
    """A run without its escapes, where these hide letters or part words."""
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
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _decode_octets(b64decode(body[: len(body) - (len(body) % 4 == 1)] + "=" * (-len(body) % 4)))
    except Error:
        return None


def _of_hexadecimal(run: str) -> str | None:
    return _decode_octets(bytes.fromhex(run.removeprefix("0x")))


def _decode_octets(octets: bytes) -> str | None:
    """What octets say, where they say anything."""
    try:
        plain = octets.decode()
    except UnicodeDecodeError:
        return None
    if BASE64.fullmatch(plain):
        return _of_base64(plain)
    return plain if MESSAGE.search(plain) else None


def _restore_line(line: str) -> str | None:
    """A line the right way round, where only the other way makes sense."""
    if not LATIN.search(line) or PLAINLY.search(line):
        return None
    begin = line[:MAX_LINE_CHARS]
    if len(WORD.findall(begin)) < MIN_WORDS or _sense(begin) > NONSENSE:
        return None
    turns = [turn for turn in (_backwards, _words_backwards, _rot13) if _speaks(turn(begin))]
    # Words backwards make sense from behind too, but for the full stop, which is in front then.
    best = sorted(turns, key=lambda turn: turn(line)[:1] in ".,;:!?")[:1]
    return best[0](line) if best else None


def _speaks(line: str) -> bool:
    """Whether a line makes sense by several function words: codes repeat one."""
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
"""Whether a text may have such stretches at all, which takes little; what they look like; and what they say."""
