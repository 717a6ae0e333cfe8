"""Numbers in digits and words, in twelve languages."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache, lru_cache

from unpoison.text.lexicon import fold, phrases, pieces
from unpoison.text.normalisation import word_set
from unpoison.text.units import CURRENCIES, unit_name

__all__ = ["JOINING", "Numbers", "word_value"]

JOINING = word_set("and und et y e en i")
"""Words between the parts of a number or of a duration."""

_VULGAR = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4), "⅓": Fraction(1, 3), "⅔": Fraction(2, 3)}


class Numbers:
    """The pieces of a text, and the numbers in it.

    Args:
        text: Any text.
        dots: Whether "1.250" is a thousand and more, as in most languages other than English.
    """

    def __init__(self, text: str, dots: bool) -> None:
        self.pieces = pieces(fold(text))
        self.words = [*(piece.text for piece in self.pieces), *[""] * 8]  # lookahead needs no bounds check
        self.size, self.dots = len(self.pieces), dots

    def glued(self, at: int) -> bool:
        """Whether a piece follows the previous one without a space."""
        return 0 < at < self.size and self.pieces[at].start == self.pieces[at - 1].end

    def number(self, at: int) -> tuple[Fraction, int] | None:
        """The number that begins here, in digits or words, and its end."""
        words = self.words
        raw = words[at]
        if not raw[:1].isdecimal() or not raw.isascii():
            return self._number_words(at)
        money = any(unit_name(word) in CURRENCIES for word in (words[at - 1], words[at + 1]) if word)
        value = _digits(raw, self.dots or money)
        if value is None:
            return None
        at += 1
        if raw.isdecimal() and len(raw) <= 3:  # 1 000 000
            while len(words[at]) == 3 and words[at].isdecimal() and not self.glued(at) and at < self.size:
                value, at = value * 1000 + int(words[at]), at + 1
        if words[at] in ("st", "nd", "rd", "th", "er", "º", "ª") and self.glued(at):
            return value, at + 1
        if words[at] in _VULGAR:
            value, at = value + _VULGAR[words[at]], at + 1
        while (scale := phrases("scales").at(words, at)) is not None:
            value, at = value * int(scale[0]), scale[1]
        if words[at] == "hundred":
            value, at = value * 100, at + 1
        return value, at

    def _number_words(self, at: int) -> tuple[Fraction, int] | None:
        """A number in words: three hundred and fifty, quatre-vingt-dix, zweihundert, nineteen ninety nine."""
        words, begun = self.words, at
        if words[at] in _VULGAR:
            return _VULGAR[words[at]], at + 1
        total, current, last = Fraction(0), Fraction(0), 0
        while words[at]:
            step = at + (last >= 20 and words[at] in ("-", *JOINING))
            step += step > at and words[step] == "-"
            given, end = self._number_word(step)
            if not given or (step > at and words[at] == "-" and last % 10):
                break
            for value in given:
                if value >= 1000:
                    total, current = total + max(current, Fraction(1)) * value, Fraction(0)
                elif value == 100:
                    current = max(current % 1000, Fraction(1)) * 100 if current < 100 else current + 100
                elif (
                    last == 0
                    or last >= 100
                    or (20 <= last < 100 and last % 10 == 0 and value < 10)
                    or (len(given) > 1 and (value >= 20 or last < 10))
                    or (last in (60, 80) and value < 20)
                    or (last == 10 and words[at] and words[step][:1] in "一二三四五六七八九")
                ):
                    current += value
                elif last < 10 and value == 10:
                    current = current * 10
                elif not total and 10 <= current <= 20 and value >= 10:
                    current = current * 100 + value  # a year
                else:
                    given = ()
                    break
                last = value
            if not given:
                break
            at = end
        return (total + current, at) if at > begun else None

    def _number_word(self, at: int) -> tuple[tuple[int, ...], int]:
        """The values of the number word or phrase at a position, and its end."""
        words = self.words
        for table in ("numbers", "ordinals", "scales"):
            if (found := phrases(table).at(words, at)) is not None:
                return (int(found[0]),), found[1]
        return word_value(words[at]), at + 1


def _digits(raw: str, dots: bool) -> Fraction | None:
    """The value of digits: `1,000` and `1'000` are a thousand, `8,50` and `8.5` are not; None if it is no number."""
    if re.fullmatch(r"0?\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:'\d{3})+(?:[.,]\d+)?", raw) and not raw.startswith("0"):
        return Fraction(re.sub("[,']", "", raw))
    grouped = re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?", raw)
    if grouped and (dots or raw.count(".") > 1 or "," in raw):
        return Fraction(raw.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d+(?:[.,]\d+)?", raw):
        return Fraction(raw.replace(",", "."))
    return None


@lru_cache(maxsize=4096)
def word_value(word: str) -> tuple[int, ...]:
    """The values of the number words that a word is made of ("zweihundertfünfzig"); empty if it is none."""
    simple = phrases("numbers").get(word)
    if simple is not None:
        return (int(simple),)
    if len(word) < 6 or not word.isalpha():
        return ()
    morphemes = _morphemes()
    whole, one = morphemes
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
