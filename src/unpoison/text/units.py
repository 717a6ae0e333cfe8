"""Numbers in digits and words in twelve languages, and units: their kind, factor to its base unit, and system."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from unpoison.text.languages import fold, phrases, pieces
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


CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "chf": "chf", "pln": "pln", "rub": "rub",
              "try": "try", "cny": "cny"}  # fmt: skip
"""The currency of each unit."""

MEASURES: dict[str, tuple[str, Fraction, str]] = {
    name: (kind, Fraction(factor), system)
    for (kind, system), rows in {
        ("length", "metric"): {"km kilometer kilometre": "1000", "m meter metre": "1", "cm centimeter centimetre":
                               "0.01", "mm millimeter millimetre": "0.001"},
        ("length", "imperial"): {"mi mile": "1609.344", "yd yard": "0.9144", "ft foot feet": "0.3048",
                                 "in inch inches": "0.0254"},
        ("mass", "metric"): {"kg kilogram kilo": "1000", "g gram gramme gramm": "1", "mg milligram": "0.001",
                             "mcg ug μg µg microgram": "0.000001", "t tonne": "1000000"},
        ("mass", "imperial"): {"lb lbs pound": "453.59237", "oz ounce": "28.349523125", "ton": "907184.74"},
        ("time", "clock"): {"ms": "0.001", "second": "1", "minute": "60", "hour": "3600",
                            "day": "86400", "week": "604800", "fortnight": "1209600"},
        ("time", "calendar"): {"month": "2629800", "year": "31557600", "decade": "315576000",
                               "century centuries": "3155760000"},
        ("volume", "metric"): {"l liter litre": "1", "ml milliliter millilitre": "0.001", "cl": "0.01", "dl": "0.1"},
        ("volume", "imperial"): {"gallon gal": "3.785411784", "quart": "0.946352946", "pint": "0.473176473"},
        ("area", "metric"): {"hectare ha": "10000", "km2 sqkm": "1000000", "m2 sqm": "1"},
        ("area", "imperial"): {"acre": "4046.8564224"},
        ("data", "data"): {"kb kilobyte": "1", "mb megabyte": "1000", "gb gigabyte": "1000000",
                           "tb terabyte": "1000000000", "pb petabyte": "1000000000000"},
        ("length/time", "imperial"): {"mph": "0.44704"},
        ("length/time", "metric"): {"kph kmh": "5/18"},
        ("length/time", "sea"): {"knot": "463/900"},
        ("share", "share"): {"%": "1/100", "‰": "1/1000", "割": "1/10"},
        **{(kind, kind): {sign: "1"} for sign, kind in CURRENCIES.items()},
        ("usd", "usd"): {"$": "1", "cent": "0.01"},
        ("gbp", "gbp"): {"£": "1", "pence": "0.01"},
    }.items()
    for names, factor in rows.items()
    for name in names.split()
}  # fmt: skip
"""Name to (kind, factor, system). Units of one system convert exactly, others approximately."""


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
    error = ABOUT if about else ROUNDED * (left.system != right.system)
    return abs(left.amount - right.amount) <= error * max(abs(left.amount), abs(right.amount))


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
        found = self._plain_number(at)
        dozen = phrases("dozens").at(self.words, at if found is None else found[1])
        return found if dozen is None else ((12 if found is None else found[0] * 12) * Fraction(1), dozen[1])

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
        if words[at].endswith("einhalb") and (whole := word_value(words[at].removesuffix("einhalb"))):
            return whole[0] + Fraction(1, 2), at + 1
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
