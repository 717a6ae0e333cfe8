"""The words of numbers, dates, units and what qualifies them, in twelve languages (`data/values.yaml`).

Words are compared without case and accents, so that a text and its folded copy have the same positions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

__all__ = ["HAN", "LANGUAGES", "duration_unit", "fold", "mentions", "phrases", "pieces"]

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
    r"|\d{1,3}(?:[.,']\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:\.\d+){2,}|\d+(?:[.,]\d+)?"
)
_WORD = r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]"


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
    read: Mapping[str, Any] = yaml.safe_load(files("unpoison").joinpath("data", "values.yaml").read_text("utf-8"))
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
        for phrase, value in self._by_first.get(words[position], ()):
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


@cache
def phrases(*path: str) -> Phrases:
    """A table of the data; of a table of tables ("parts"), pairs of both names are the values."""
    rows: Any = _data()
    for name in path:
        rows = rows[name]
    if isinstance(rows, str):
        return Phrases({path[-1]: rows})
    if all(isinstance(inner, str) for inner in rows.values()):
        return Phrases(rows)
    return _joined(rows)


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
