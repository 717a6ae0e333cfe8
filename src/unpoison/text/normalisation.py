"""Normalisation of texts for comparison, and of a short text to folded tokens.

`squad`, `trim_text` and `lower_text` are the rules of published evaluations. `fold_text` and `tokens` keep signs and
the vowels of every script, for rules that compare numbers, units and names.
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import NamedTuple

from unpoison.text.tokens import UNSPACED, without_accents

__all__ = ["Token", "fold_text", "lower_text", "roman", "separate_words", "squad", "tokens", "trim_text", "word_set"]

PUNCTUATION = str.maketrans("", "", string.punctuation)
"""For `str.translate`: deletes ASCII punctuation."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


_UNSPACED = re.compile(rf"([{UNSPACED}\u3005-\u3007])")


def separate_words(text: str) -> str:
    """The text with spaces around every character of a script without spaces, and around CJK punctuation."""
    apart = _UNSPACED.sub(r" \1 ", text)
    return " ".join(re.sub(r"([\u3000-\u3004\u3008-\u303f\uff01-\uff0f\uff1a-\uff20])", r" \1 ", apart).split())


def trim_text(text: object) -> str:
    """N1: strip, drop one final period (never the only character), lower-case."""
    stripped = str(text).strip()
    return (stripped[:-1] if len(stripped) > 1 and stripped.endswith(".") else stripped).lower()


def lower_text(text: object) -> str:
    """N2: strip, lower-case."""
    return str(text).strip().lower()


def squad(text: object) -> str:
    """N3: lower-case, without ASCII punctuation and articles, words separated by one space."""
    return " ".join(_ARTICLES.sub(" ", str(text).lower().translate(PUNCTUATION)).split())


class Token(NamedTuple):
    """A word, a number or a sign, and whether it follows the previous one without a space."""

    text: str
    glued: bool


def word_set(words: str) -> frozenset[str]:
    """The words of a text as a set. Linear time."""
    return frozenset(words.split())


_MARKED = re.compile(r"[\u00b2\u00b3\u00b9\u2070-\u2079]+")
_VULGAR = re.compile(r"(?<=[0-9])(?=[\u00bc-\u00be\u2150-\u215e])")
_ROMAN = re.compile(r"(?<=[\w.] )(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?![\w'.+-])")
_DOTTED = re.compile(r"(?<![^\W_])([a-z])\.\s?(?=[a-z](?![^\W_]))")
_WORD = r"[^\s\x00-@\[-`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u206f\u20a0-\u20cf\u2190-\u22ff\u3000-\u3020]"
_TOKEN = re.compile(rf"[0-9]+(?:[.,:/-][0-9]+)*|{_WORD}(?:{_WORD}|[0-9])*(?:'{_WORD}+)?|\S")


def fold_text(text: str) -> str:
    """Lower case, compatibility forms, ASCII digits, no accents on Latin, Greek and Cyrillic, single spaces.

    Roman numerals after a word become numbers. Other scripts keep their combining marks, which are vowels or
    distinguish consonants. Linear time.
    """
    text = " ".join(text.replace("\u2019", "'").replace("\u2032", "'").replace("\u2033", '"').split())
    text = _ROMAN.sub(lambda match: str(roman(match[0])) if match[0] else "", text)
    text = _MARKED.sub(lambda match: "^" + unicodedata.normalize("NFKD", match[0]), _VULGAR.sub(" ", text))
    if text.isascii():  # of the marks below it can only contain "&"
        return " ".join(_DOTTED.sub(r"\1", text.lower().replace("&", " and ")).split())
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in without_accents(plain))
    for mark, ascii_mark in (("\u2044", "/"), ("\u2013", "-"), ("\u2014", " - "), ("\u2212", "-"), ("\u2010", "-"),
                             ("&", " and "), ("\u2011", "-")):  # fmt: skip
        plain = plain.replace(mark, ascii_mark)
    return " ".join(_DOTTED.sub(r"\1", plain).split())


def roman(letters: str) -> int:
    """The value of a Roman numeral. Constant time."""
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[letter] for letter in letters]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def tokens(text: str) -> list[Token]:
    """The tokens of a folded text. Linear time."""
    words = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    ends = [-1, *(end for _, _, end in words)]
    return [Token(word, start == end) for (word, start, _), end in zip(words, ends, strict=False)]
