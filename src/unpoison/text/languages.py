"""Words by language: by which a text is told from English, and those of numbers, dates and units (`data/values.yaml`).

Only evidence for another language counts: names, numbers, tables and code have no function words, and count as English.
Short texts such as questions work too; for a text in two languages the more frequent one is returned. Words of values
are compared without case and accents, so that a text and its folded copy have the same positions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple

from unpoison.text.tokens import word_list
from unpoison.utils.assets import read_data

__all__ = [
    "FUNCTION_WORDS", "HAN", "LANGUAGES", "MAX_NUMBER_CHARS", "duration_unit", "fold", "has_decimal_comma", "is_mixed",
    "mentions", "other_language", "phrases", "pieces", "table", "word_value",
]  # fmt: skip

MAX_CHARS = 4000
"""Maximum characters that are read: the first thousand words reveal the language."""

ENGLISH = word_list("english")
"""Function words of questions and running text, but not of lists of names. "in", "an" and "a" are also German."""

LISTED = ("de", "es", "fr", "it", "pt", "nl", "sv", "da", "pl", "cs", "tr", "id", "ro", "hu", "fi", "sw")
FUNCTION_WORDS = {name: word_list(f"in_{name}") for name in LISTED} | {"und-Cyrl": word_list("in_ru")}
"""Frequent words by language, of two letters or more: single letters are initials and formulas in English.

Danish covers Norwegian, Indonesian covers Malay.
"""

PARTICLES = word_list("particles")
"""Foreign words in names that are common in English texts: they count only together with others."""

ASKING = word_list("asking")
"""Words of the lists that begin a question: one of them suffices."""

WORD = re.compile(r"[^\W\d_]+|[¿¡]")

QUOTED = re.compile(
    r"""["\u201c\u201e\u00ab][^"\u201c\u201d\u00bb\n]{1,80}["\u201c\u201d\u00bb]"""
    r"""|(?<!\w)['\u2018\u201a][^'\u2018\u2019\n]{1,80}['\u2018\u2019](?!\w)"""
)
"""A short quotation: an English question may quote German."""

LATIN = re.compile("[A-Za-zªº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")

SCRIPTS = {name: re.compile(f"[{letters}]+") for name, letters in read_data("characters.json")["scripts"].items()}

FOREIGN = re.compile("[\u0370-\u1dff\u3040-\u318f\u3400-\u9fff\uac00-\ud7af]{2,}")
"""Letters of another script, with their marks; a single one belongs to a formula."""

RUN = re.compile(r"[^\W\d_]{2,}")

MIN_WORDS, SHARE, FEW = 12, 0.15, 4
"""For an unlisted language: minimum lower-case words, and the minimum share with letters that English lacks; of few
words, half.
"""


def other_language(text: str) -> str | None:
    """The language of a text that is not English, as a BCP 47 tag.

    "de"; "und-Cyrl" if only the script is known; "und" for an unlisted language. None for English, and without evidence
    for another language. O(n) time for the first `MAX_CHARS` characters.

    >>> other_language("Wer hat den Brief geschrieben?"), other_language("who wrote the letter to Ada de la Cruz")
    ('de', None)
    """
    text = text[:MAX_CHARS]
    unquoted = WORD.findall(QUOTED.sub(" ", text))
    written = unquoted if len(unquoted) > 1 else WORD.findall(text)
    return (None if text.isascii() else _script(text)) or _language(written)


def has_decimal_comma(text: str) -> bool:
    """Whether 1,250 is little more than one in the language of a text, as in most but English and those of Asia."""
    return other_language(text) not in (None, "zh", "ja", "ko") and not _POINTED.search(text)


_POINTED = re.compile("[\u0590-\u05ff\u0900-\u109f]{2,}")
"""Hebrew, and the scripts of India and South East Asia, whose languages have a decimal point."""


def is_mixed(text: str) -> bool:
    """Whether a text in Latin letters has a tenth as many of another script, as in "feature को enable करें"."""
    text = text[:MAX_CHARS]
    return not text.isascii() and 10 * sum(map(len, FOREIGN.findall(text))) >= sum(map(len, LATIN.findall(text)))


def _script(text: str) -> str | None:
    """The script of most letters, unless it is Latin; single letters belong to formulas."""
    rest = LATIN.sub(" ", text)
    counts = {name: sum(map(len, letters.findall(rest))) for name, letters in SCRIPTS.items()}
    dense = counts["zh"] + counts["ja"] + counts["ko"]
    if dense + sum(map(len, RUN.findall(rest))) <= sum(map(len, LATIN.findall(text))):
        return None
    if counts["ja"] * 8 > dense:
        return "ja"
    name = max(counts, key=lambda script: counts[script])
    return name if counts[name] else "und"


def _language(written: list[str]) -> str | None:
    """The language whose function words clearly outnumber those of English, and are not only parts of names."""
    words = [word.lower() for word in written]
    english = sum(word in ENGLISH for word in words) - (words[:1] == ["was"])  # "Was kostet das?"
    if not words or 4 * english >= len(words):
        return None
    lists = _lists()
    counts = {name: sum(word in known for word in words) for name, known in lists.items()}
    name = max(counts, key=lambda language: counts[language])
    needed = 1 if words[0] in ASKING or words[0] in ("¿", "was") else 2
    if counts[name] >= needed and 2 * counts[name] > 3 * english and 8 * counts[name] >= len(words):
        certain = lists[name] - PARTICLES
        return name if any(word in certain for word in words) else None
    plain = [word for word in written if word[0].islower() and len(word) > 1]
    accented = sum(not word.isascii() for word in plain)
    enough = accented >= SHARE * len(plain) and (len(plain) >= MIN_WORDS or 2 * accented >= len(plain) >= FEW)
    return "und" if enough and 20 * english < len(words) else None


@cache
def _lists() -> dict[str, frozenset[str]]:
    return {name: listed - ENGLISH for name, listed in FUNCTION_WORDS.items()}


HAN = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Chinese and Japanese, which put no space between words."""

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "und-Cyrl", "tr", "zh", "ja")
"""The languages of the data; Russian is known by its script."""

TIMES = ("ms", "second", "minute", "hour", "day", "week", "month", "year")


class _Folding(dict[int, str]):
    """Each character by its lower case without accents, if that is one character."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        decomposed = unicodedata.normalize("NFKD", character.lower())
        base = "".join(c for c in decomposed if not unicodedata.combining(c))
        if character.isdecimal():
            base = str(unicodedata.decimal(character))
        elif character.isnumeric() or len(base) != 1:
            base = character.lower() if len(character.lower()) == 1 else character
        self[code] = base
        return base


_FOLDING = _Folding(dict.fromkeys(map(ord, "\u2019\u2018\u02bc"), "'"))
_FOLDING |= dict.fromkeys(map(ord, "\u2013\u2014\u2212\u2010\u2011"), "-") | {0x301C: "~", 0xFF5E: "~", 0x131: "i"}


def fold(text: str) -> str:
    """Lower case without accents, one character for each, so that positions stay. Linear time."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


class WordPiece(NamedTuple):
    """A word, a number or a sign of a folded text."""

    text: str
    start: int
    end: int


_NUMBERS = (
    r"\d{1,4}(?P<mark>[-/.])\d{1,2}(?P=mark)\d{2,4}(?![\d./-]\d)|\d{1,2}:\d\d(?::\d\d)?(?!\d)"
    r"|\d{1,2}(?:,\d\d)+,\d{3}(?!\d)|\d{1,3}(?:[.,']\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:\.\d+){2,}|\d+(?:[.,]\d+)?"
)
_WORD = r"(?:[^\W\d_\u3040-\u30ff\u3400-\u9fff]|[\u0900-\u0903\u093a-\u094f\u0955-\u0957])"  # vowels of Devanagari


def pieces(text: str) -> list[WordPiece]:
    """The pieces of a folded text. Linear time."""
    return [WordPiece(match[0], *match.span()) for match in _pattern().finditer(text)]


@cache
def _pattern() -> re.Pattern[str]:
    unspaced = sorted((word for word in _words(_data()) if HAN.search(word)), key=len, reverse=True)
    return re.compile(rf"{_NUMBERS}|{_WORD}+'(?={_WORD})|{_WORD}+|{'|'.join(map(re.escape, unspaced))}|\S")


def _words(rows: Any) -> set[str]:
    if isinstance(rows, str):
        return {fold(word) for word in rows.split(", ")}
    return set().union(*map(_words, rows.values()))


@cache
def _data() -> Mapping[str, Any]:
    read: Mapping[str, Any] = read_data("values.yaml")
    return read


class Phrases:
    """The rows of a table, for phrases at a position of a text, the longest first."""

    def __init__(self, rows: Mapping[Any, str]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], Any]]] = {}
        for value, written in rows.items():
            for phrase in map(fold, written.split(", ")):
                words = tuple(piece.text for piece in pieces(phrase))
                self._by_first.setdefault(words[0], []).append((words, value))
        for found in self._by_first.values():
            found.sort(key=lambda entry: -len(entry[0]))

    def at(self, words: Sequence[str], position: int) -> tuple[Any, int] | None:
        """The value of the longest phrase at a position, and its end."""
        word = words[position]
        known = self._by_first
        for phrase, value in known.get(word if word in known else word.removesuffix("'"), ()):  # 15 Mart'a kadar
            if len(phrase) == 1 or tuple(words[position : position + len(phrase)]) == phrase:
                return value, position + len(phrase)
        return None

    def before(self, words: Sequence[str], position: int) -> bool:
        """Whether a phrase of at most three words ends before a position."""
        starts = range(max(position - 3, 0), position)
        return any((found := self.at(words, start)) is not None and found[1] == position for start in starts)

    def get(self, word: str) -> Any:
        """The value of one word; None if it has none."""
        return next((value for phrase, value in self._by_first.get(word, ()) if len(phrase) == 1), None)

    def single_words(self) -> dict[str, Any]:
        """The phrases of one word."""
        return {word: value for word in self._by_first if (value := self.get(word)) is not None}


def table(*path: str) -> Any:
    """The rows of a table of the data, as they are written."""
    rows: Any = _data()
    for name in path:
        rows = rows[name]
    return rows


@cache
def phrases(*path: str) -> Phrases:
    """A table of the data; of a table of tables ("parts"), pairs of both names are the values."""
    rows = table(*path)
    if isinstance(rows, str):
        return Phrases({path[-1]: rows})
    return Phrases(rows) if all(isinstance(inner, str) for inner in rows.values()) else _joined(rows)


def _joined(tables: Mapping[str, Mapping[str, str]]) -> Phrases:
    joined = Phrases({})
    for name, rows in tables.items():
        for first, found in Phrases(rows)._by_first.items():
            joined._by_first.setdefault(first, []).extend((words, (name, value)) for words, value in found)
    for found in joined._by_first.values():
        found.sort(key=lambda entry: -len(entry[0]))
    return joined


def mentions(table: str, text: str) -> bool:
    """Whether a text has a phrase of a table."""
    words = [piece.text for piece in pieces(fold(text))]
    return any(phrases(table).at(words, position) for position in range(len(words)))


def duration_unit(word: str) -> str:
    """The unit of time that a word of any of the languages names; "" if none."""
    name = phrases("units").get(fold(word))
    return name if name in TIMES else ""


MAX_NUMBER_CHARS = 60
"""Characters of the longest word that is read as a number."""


def word_value(word: str) -> tuple[int, ...]:
    """The values of the number words that a word is made of ("zweihundertfünfzig"); empty if it is none."""
    return _word_value(word) if len(word) <= MAX_NUMBER_CHARS else ()


@lru_cache(maxsize=4096)
def _word_value(word: str) -> tuple[int, ...]:
    simple = phrases("numbers").get(word)
    if simple is not None:
        return (int(simple),)
    if len(word) < 6 or not word.isalpha():
        return ()
    whole, one = _morphemes()
    return tuple(_morpheme_values()[part] for part in one.findall(word)) if whole.fullmatch(word) else ()


@cache
def _morpheme_values() -> dict[str, int]:
    known = phrases("numbers").single_words() | phrases("scales").single_words()
    values = {word: int(Fraction(value)) for word, value in known.items() if len(word) > 2 and word.isalpha()}
    return values | {"ein": 1, "een": 1, "uno": 1, "un": 1}


@cache
def _morphemes() -> tuple[re.Pattern[str], re.Pattern[str]]:
    any_of = "|".join(sorted(_morpheme_values(), key=len, reverse=True))
    return re.compile(rf"(?:{any_of})(?:(?:und|en|y)?(?:{any_of}))+"), re.compile(rf"({any_of})(?:und|en|y)?")
