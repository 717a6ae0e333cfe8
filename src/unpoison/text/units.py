"""Numbers in digits and words in twelve languages, and units: their kind, factor to its base unit, and system."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from unpoison.text.languages import fold, phrases, pieces, table
from unpoison.text.tokens import word_set

__all__ = [
    "CURRENCIES", "JOINING", "MEASURES", "Numbers", "Quantity", "near", "single", "to_count", "unit_name", "word_value",
]  # fmt: skip

MAX_NUMBER_CHARS = 60
"""Characters of the longest word that is read as a number."""

ROUNDED = Fraction(2, 100)
"""Maximum relative difference of equal measures in different systems, because conversions are rounded."""

ABOUT = Fraction(3, 100)
"""Maximum relative difference of a value from one that is said to be approximate."""


class Quantity(NamedTuple):
    """A number with its unit ("" for none), and the amount in the base unit of its kind.

    Units of one `system` convert exactly, others only approximately. `written` is set for a possible version number.
    """

    value: Fraction
    unit: str = ""
    amount: Fraction = Fraction(0)
    kind: str = ""
    system: str = ""
    written: str = ""


MEASURES: dict[str, tuple[str, Fraction, str]] = {
    name: (named.split()[0], Fraction(str(factor)), named.split()[1])
    for named, rows in table("measures").items()
    for factor, names in rows.items()
    for name in names.split(", ")
}
"""Name to (kind, factor, system). Units of one system convert exactly, others approximately."""

CURRENCIES = {name: kind for name, (kind, factor, system) in MEASURES.items() if kind == system and len(kind) == 3}
"""The currency of each unit of money."""


def single(word: str) -> str:
    """A word without the ending of its plural. Constant time."""
    if word in MEASURES:
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def unit_name(word: str) -> str:
    """The name in `MEASURES` of the unit that a folded word names in any of the languages; "" if none."""
    named = phrases("units").get(word) or single(word)
    return named if named in MEASURES or named == "time" else ""


def to_count(value: Fraction, unit: str) -> Quantity:
    """A number with its amount in the base unit of its kind. Constant time."""
    if unit[:2] in ("2 ", "3 "):
        kind, factor, system = MEASURES[unit[2:]]
        power = int(unit[0])
        return Quantity(value, unit, value * factor**power, "area" if power == 2 else "volume3", system)
    if "/" in unit:
        numerator, denominator = (MEASURES[part] for part in unit.split("/"))
        kind = f"{numerator[0]}/{denominator[0]}"
        return Quantity(value, unit, value * numerator[1] / denominator[1], kind, numerator[2])
    kind, factor, system = MEASURES.get(unit, ("", Fraction(1), ""))
    return Quantity(value, unit, value * factor, kind, system)


def near(left: Quantity, right: Quantity, *, about: bool = False) -> bool:
    """Whether two measures of a kind are equal; approximately, across systems of units or if one is said so."""
    endless = 10**9 % left.value.denominator or 10**9 % right.value.denominator  # a third is 33.3 %
    error = ABOUT if about else ROUNDED * (left.system != right.system or endless > 0)
    return abs(left.amount - right.amount) <= error * max(abs(left.amount), abs(right.amount))


JOINING = word_set("and und et y e en i con")
"""Words between the parts of a number or of a duration."""

_VULGAR = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4), "⅓": Fraction(1, 3), "⅔": Fraction(2, 3)}

_HALVED = re.compile(r"(?:anderthalb|([a-z]{2,10}?)(?:einhalb|enhalf|enhalve))([a-z]{0,12})")
"""A whole number, 1 if it is not named, and a half in one word, with a scale: anderthalbtausend, tweeënhalve."""


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
        """The number that begins here, in digits or words, and its end: two and a half million, half a million."""
        words = self.words
        found = self._part_of_scale(at) or self._plain_number(at)
        if found is None:
            return None
        value, at = found
        if (half := phrases("and_half").at(words, at)) is not None:  # of the scale: dos millones y medio
            value, at = value + Fraction(phrases("scales").get(words[at - 1]) or 1) / 2, half[1]
        while (scale := phrases("scales").at(words, at)) is not None:
            value, at = value * int(scale[0]), scale[1]
        return value, at

    def _part_of_scale(self, at: int) -> tuple[Fraction, int] | None:
        """A fraction just before the name of a large number, whose end it gives: half of "half a million"."""
        at += 1 in (phrases(name).get(self.words[at]) for name in ("numbers", "homographs"))  # eine halbe Million
        part = phrases("fractions").at(self.words, at)
        end = 0 if part is None else part[1] + (self.words[part[1]] in ("a", "-"))
        return (Fraction(part[0]), end) if part is not None and phrases("scales").at(self.words, end) else None

    def _plain_number(self, at: int) -> tuple[Fraction, int] | None:
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
        if words[at] == "hundred":
            value, at = value * 100, at + 1
        return value, at

    def _number_words(self, at: int) -> tuple[Fraction, int] | None:
        """A number in words: three hundred and fifty, quatre-vingt-dix, zweihundert, nineteen ninety nine."""
        words, begun = self.words, at
        if words[at] in _VULGAR:
            return _VULGAR[words[at]], at + 1
        if (halved := _HALVED.fullmatch(words[at])) and (whole := word_value(halved[1] or "uno")):
            scale = phrases("scales").get(halved[2]) if halved[2] else 1
            return None if scale is None else ((whole[0] + Fraction(1, 2)) * int(scale), at + 1)
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
        for name in ("numbers", "ordinals", "scales"):
            if (found := phrases(name).at(words, at)) is not None:
                return (int(found[0]),), found[1]
        return word_value(words[at]), at + 1


def _digits(raw: str, dots: bool) -> Fraction | None:
    """The value of digits: `1,000` and `1'000` are a thousand, `8,50` and `8.5` are not; None if it is no number."""
    if re.fullmatch(r"[1-9]\d{0,2}(?:(?:,\d{3})+(?:\.\d+)?|(?:'\d{3})+(?:[.,]\d+)?)", raw):
        return Fraction(raw.replace("'", "").replace(",", ".") if "'" in raw else raw.replace(",", ""))
    grouped = re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?", raw)
    if grouped and (dots or raw.count(".") > 1 or "," in raw):
        return Fraction(raw.replace(".", "").replace(",", "."))
    return Fraction(raw.replace(",", ".")) if re.fullmatch(r"\d+(?:[.,]\d+)?", raw) else None


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
