"""Decodes texts that a language model or its tools read as easily as plain ones: base64, escapes, codes, ROT13.

Only encoded words are decoded, so code, addresses and keys are unchanged.
"""

from __future__ import annotations

import re
from base64 import b32decode
from collections.abc import Callable, Iterable
from contextlib import suppress
from operator import methodcaller
from string import ascii_lowercase, ascii_uppercase
from sys import maxunicode
from typing import Any

from unpoison.text.alignment import UNTRACED, Edits
from unpoison.text.files import file_of, octets_of, readings_of
from unpoison.text.invisible import MESSAGE
from unpoison.text.tokens import ENGLISH_318, word_list

__all__ = ["CODES", "decode_text", "of_codes", "spelled"]

MIN_RUN_CHARS, SAMPLE = 24, 2_048
"""Minimum characters of a message in base64 or hexadecimal digits; octets that are tried in all encodings first."""

BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}+={{0,6}}")
BASE32 = re.compile(r"(?:[A-Z2-7]+|[a-z2-7]+)=*")
WRAPPED_BASE64 = re.compile(
    rf"{BASE64.pattern}(?:\r?\n[A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}+={{0,2}})*+"
    r"(?:\r?\n[A-Za-z0-9+/_-]++={0,2}(?=[ \t\r]{0,9}(?:\n|\Z)))?+"
)
"""In one line or several, the last of which may be short."""
HEXADECIMAL = re.compile(rf"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{{2}}){{{MIN_RUN_CHARS // 2},}}(?![0-9A-Za-z])")

ESCAPE = re.compile(
    r"(?:\\u|%u)([0-9a-fA-F]{4})|\\u\{([0-9a-fA-F]{1,6})\}|\\U00([01][0-9a-fA-F]{5})"
    r"|(?:\\x|%)([0-9a-fA-F]{2})|=([0-9A-F]{2})|\\([01][0-7]{2})"
)
OCTET, OCTAL = 4, 6
"""The groups from which on a code is an octet, and octal."""
ONE = f"(?:{re.sub(r'[(](?![?])', '(?:', ESCAPE.pattern)})"
ESCAPED = re.compile(rf"(?:{ONE}[^\n\\%=]{{0,40}}?){{2,}}{ONE}[a-z]?")
"""Three or more escapes close together, with what goes on behind the last."""

SHIFTED = re.compile(r"\+[A-Za-z0-9+/]{3,}+-?+|&[A-Za-z0-9+,]{3,}+-")
UTF7 = re.compile(rf"(?:(?:{SHIFTED.pattern})[^\n+&]{{0,40}}+)++")
"""Letters in UTF-7, and in that of the names of mail folders."""
DATA_URL = re.compile(r"data:[^,\s\"'<>()]{0,200},[^\s\"'<>()]+", re.IGNORECASE)

WRAPPED = re.compile(rf"(?:[^ \n]{{0,{MIN_RUN_CHARS - 1}}}+[ \n])*+[^ \n]{{0,{MIN_RUN_CHARS - 1}}}+")
"""Texts without a run of this length, as most are."""

SPACE, PERCENT = 0x20, 0x25
ESCAPE_GOES_ON = re.compile(r"[a-z\\\\%=]")
"""What follows an escaped letter inside a word; not in `x=41 y=42`."""
ESCAPED_LETTER = re.compile(r"[46][1-9A-Fa-f]|[57][0-9Aa]")
"""What follows an escaped `%` that encodes a letter."""

CODE = re.compile(r"(?:0[xob]|U\+|chr\()?([0-9a-fA-F]{2,8})\)?(?!\w)")
CODES = re.compile(rf"(?<![\w.])(?:{CODE.pattern}[\s,;:|+-]{{1,3}}+){{{MIN_RUN_CHARS},}}{CODE.pattern}(?!\.\d)")
"""The numbers of letters, with a mark of their base or without."""
BASES = (2, 8, 10)
NO_LETTERS, MOST = re.compile(r"[\W_]"), 0.3
"""What is no letter, and the share of it in a text that numbers spell; in numbers that spell none it is larger."""
MORSE = re.compile(rf"(?<!\S)(?:[.-]{{1,6}}+[ /|\n]{{1,3}}+){{{MIN_RUN_CHARS},}}[.-]{{1,6}}+(?!\S)")
DIGITS = str.maketrans(".-", "01")
MORSE_WORDS = re.compile(r" *[/|\n] *|  +")
MORSE_LETTERS = "  etianmsurwdkgohvf l pjbxcyzq  54 3   2       16       7   8 90"
"""Each at the number whose binary digits, behind the first, are its signs: a point is 0, a line 1."""

SPACED = re.compile(r"(?<!\S)(?:\S(?: \S){0,23}+(?:[ \t]{2,}|[ \t]*\n\s*)){4,}\S(?: \S)*+(?!\S)")
"""Words with one space between letters, and more white space between words."""
SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")

OVERRIDDEN = re.compile("\u202e([^\u202c\u202e\n]+)\u202c?")
"""Characters that are displayed from right to left because of a mark."""
MIN_OVERRIDDEN_WORDS = 3
"""Minimum words of a message written backwards."""
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff]")

LINE = re.compile(r"[^\n]{20,}")
LATIN = re.compile(r"[A-Za-z]{3}")
WORD = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")
"""A word of letters only, without digits beside them."""
MAX_LINE_CHARS = 2_000
"""Maximum characters of a line that are checked for reversed words."""

SENSE, NONSENSE = 0.18, 0.08
"""The minimum share of function words in a meaningful line, and the maximum in a meaningless one."""

MIN_WORDS = 5

CIPHERS = [
    str.maketrans(ascii_lowercase + ascii_uppercase, key + key.upper())
    for key in (*(ascii_lowercase[by:] + ascii_lowercase[:by] for by in (13, 23, 3)), ascii_lowercase[::-1])
]
"""ROT13, the ciphers that Caesar is said to have used, and Atbash."""

MIN_FUNCTION_WORDS, MORE = 2, 4
"""Minimum distinct function words of a decoded line, and where many ciphers are tried."""

FUNCTION = frozenset(word for word in ENGLISH_318 if len(word) > 1)
PLAINLY = re.compile(rf"(?<![^\W_])(?:{'|'.join(sorted(word_list('plainly')))})(?![^\W_])", re.IGNORECASE)
"""Frequent words; a line with one of them is not encoded, and most lines have one."""


def decode_text(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    r"""Decode the encoded parts of a text in place, and count them.

    - Base64, base32, hexadecimal digits and data URLs that spell at least five words, in any encoding.
    - Letters by their numbers, as `73 103 110`, and Morse code, that spell as many.
    - Letters in UTF-7, as `+AGk-` or `&AGk-`.
    - Escapes such as `%69`, `\u0069`, `\x69` or `=69`, close together, for spaces between words or letters inside.
    - Words with spaced letters.
    - Text written backwards and displayed forwards because of a mark (U+202E).
    - Lines of English words written backwards, as a whole or word by word, or in other letters: ROT13, Caesar, Atbash.

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
        group = escape.lastindex or 0
        code = int(escape[group], 8 if group == OCTAL else 16)
        goes_on = ESCAPED_LETTER if code == PERCENT else ESCAPE_GOES_ON
        hides += (code == PERCENT or chr(code).isalnum()) and code < 0x80 and bool(goes_on.match(run, escape.end()))
        parts += code == SPACE
        octets += run[last : escape.start()].encode(errors="replace")
        octets += bytes([code]) if group >= OCTET else chr(min(code, maxunicode)).encode(errors="replace")
        last = escape.end()
    plain = (octets + run[last:].encode(errors="replace")).decode(errors="replace")
    return plain if hides >= 3 or parts >= MIN_WORDS - 1 else None


def _of_base64(run: str) -> str | None:
    if BASE32.fullmatch(run):
        bare = run.rstrip("=").upper()
        with suppress(ValueError):
            if plain := _decode_octets(b32decode(bare + "=" * (-len(bare) % 8))):
                return plain
    return None if run.isalpha() and (run.islower() or run.isupper()) else _decode_octets(octets_of(run))


def _of_wrapped(run: str) -> str | None:
    """The text of base64 in lines; where the last is a word, that of each line."""
    if plain := _of_base64(run):
        return plain
    lines = BASE64.sub(lambda line: _of_base64(line[0]) or line[0], run)
    return None if lines == run else lines


def _of_data_url(run: str) -> str | None:
    file = file_of(run, None)
    return None if file is None else _message(list(file.texts))


def _of_utf7(run: str) -> str | None:
    """A run with letters of UTF-7 as they are, if it encodes some that need none."""
    hidden = "".join(map(_unshift, SHIFTED.finditer(run)))
    needless = sum(one.isascii() and one.isalnum() for one in hidden)
    return SHIFTED.sub(_unshift, run) if needless >= MIN_WORDS and 2 * needless >= len(hidden) else None


def _unshift(letters: re.Match[str]) -> str:
    return f"+{letters[0][1:].rstrip('-')}-".replace(",", "/").encode().decode("utf-7", "ignore")


def _of_hexadecimal(run: str) -> str | None:
    return _decode_octets(bytes.fromhex(run.removeprefix("0x")))


def spelled(numbers: Iterable[Any]) -> str | None:
    """The message whose letters have these numbers; None where they spell none, or are none. Linear time."""
    with suppress(ValueError, OverflowError, TypeError):
        plain = "".join(map(chr, numbers))
        if MESSAGE.search(plain) and len(NO_LETTERS.findall(plain)) < MOST * len(plain):
            return plain
    return None


def of_codes(run: str) -> str | None:
    """The message that numbers in any base spell."""
    codes = CODE.findall(run)
    found = (spelled(int(code, base) for code in codes) for base in BASES)
    with suppress(ValueError):
        return next(filter(None, found), None) or _decode_octets(bytes.fromhex("".join(codes)))
    return None


def _of_morse(run: str) -> str | None:
    words = [[int(f"1{sign.translate(DIGITS)}", 2) for sign in word.split()] for word in MORSE_WORDS.split(run)]
    return _message([" ".join("".join(MORSE_LETTERS[sign : sign + 1] for sign in word) for word in words)])


def _decode_octets(octets: bytes) -> str | None:
    """The text of octets, if it is a message in any encoding: with spaces, of which random ones have few."""
    try:
        plain = octets.decode()
    except UnicodeDecodeError:
        plain = ""
    if BASE64.fullmatch(plain):
        return (HEXADECIMAL.fullmatch(plain) and _of_hexadecimal(plain)) or _of_base64(plain)
    if MESSAGE.search(plain):
        return plain
    spaced = max(map(octets.count, (b" ", b"@"))) >= MIN_WORDS - 1
    return _message(readings_of(octets)) if spaced and _message(readings_of(octets[:SAMPLE])) else None


def _message(texts: list[str]) -> str | None:
    """Those of several readings that are messages."""
    return "\n".join(text for text in texts if MESSAGE.search(text)) or None


def _restore_line(line: str) -> str | None:
    """A decoded line, if only the decoded form makes sense."""
    if not LATIN.search(line) or PLAINLY.search(line):
        return None
    begin = line[:MAX_LINE_CHARS]
    if len(WORD.findall(begin)) < MIN_WORDS or _sense(begin) > NONSENSE:
        return None
    turns = [turn for turn, least in _TURNS if _speaks(turn(begin), least)]
    # A line of reversed words also makes sense if reversed as a whole, except that it begins with the full stop.
    best = sorted(turns, key=lambda turn: turn(line)[:1] in ".,;:!?")[:1]
    return best[0](line) if best else None


def _speaks(line: str, least: int) -> bool:
    """Whether a line has enough distinct function words; codes repeat one."""
    return _sense(line) >= SENSE and len(FUNCTION.intersection(WORD.findall(line.lower()))) >= least


def _sense(line: str) -> float:
    """The share of function words among the words of a line."""
    words = WORD.findall(line.lower())
    return sum(word in FUNCTION for word in words) / (len(words) or 1)


_TURNS: list[tuple[Callable[[str], str], int]] = [
    (lambda line: line[::-1], MIN_FUNCTION_WORDS),
    (lambda line: WORD.sub(lambda word: word[0][::-1], line), MIN_FUNCTION_WORDS),
    *((methodcaller("translate", cipher), MORE if i else MIN_FUNCTION_WORDS) for i, cipher in enumerate(CIPHERS)),
]  # fmt: skip

_Finder = tuple[re.Pattern[str], Callable[[str], str | None]]

_FINDERS: tuple[tuple[Callable[[str], object], tuple[_Finder, ...]], ...] = (
    (re.compile("\u202e").search, ((OVERRIDDEN, _overridden),)),
    (_has_word_gaps, ((SPACED, _join_letters),)),
    (re.compile("data:", re.IGNORECASE).search, ((DATA_URL, _of_data_url),)),
    (lambda text: sum(map(text.count, "%\\=")) >= 3, ((ESCAPED, _unescape),)),
    (SHIFTED.search, ((UTF7, _of_utf7),)),
    (re.compile(r"\d\d\)?[\s,;:|+-]{1,3}\S{0,4}\d").search, ((CODES, of_codes),)),
    (re.compile(r"- [.-]").search, ((MORSE, _of_morse),)),
    (lambda text: WRAPPED.fullmatch(text) is None, ((WRAPPED_BASE64, _of_wrapped), (HEXADECIMAL, _of_hexadecimal))),
    (len, ((LINE, _restore_line),)),
)
"""A cheap test whether a text may contain such an encoding, its pattern, and its decoder."""
