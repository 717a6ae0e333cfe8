"""Numbers in digits and words in twelve languages, and units: their kind, factor to its base unit, and system."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from unpoison.text.languages import fold, phrases, pieces, table, word_value
from unpoison.text.tokens import word_list, word_set

__all__ = [
    "CURRENCIES", "JOINING", "MEASURES", "NO_UNITS", "PHYSICAL", "Numbers", "Qualifier", "Quantity", "Units", "near",
    "period_of", "rounds", "single", "to_count", "unit_name",
]  # fmt: skip

Qualifier: TypeAlias = tuple[str, str]
"""A dimension and its value, such as ("bound", "least")."""

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

PHYSICAL = frozenset(kind for kind, *_ in MEASURES.values()) - {"time", "share", "points", *CURRENCIES.values()}
"""Kinds of things measured, of which one says nothing about another, or about a number of pieces."""


def single(word: str) -> str:
    """A word without the ending of its plural. Constant time."""
    plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss") and word not in MEASURES
    return word[:-1] if plural else word


def unit_name(word: str) -> str:
    """The name in `MEASURES` of the unit that a folded word names in any of the languages; "" if none."""
    known = phrases("units")
    named = known.get(word) or known.get(re.sub("[dt][iu]r$", "", word)) or single(word)  # iki yıldır
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


def rounds(left: Quantity, right: Quantity) -> bool:
    """Whether a measure, of two significant digits or more, is another one rounded: 2.1 kg and 2,130 g."""
    digits = abs(left.value * 10**9)
    if left.kind not in PHYSICAL or left.kind != right.kind or not left.value or digits.denominator > 1:
        return False
    step = Fraction(10 ** (len(str(digits)) - len(str(digits).rstrip("0"))), 10**9)
    exact = right.amount * left.value / left.amount
    return abs(left.value) >= 10 * step and 2 * abs(exact - left.value) <= step


JOINING = word_set("and und et y e en i con")
"""Words between the parts of a number or of a duration."""

_VULGAR = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4), "⅓": Fraction(1, 3), "⅔": Fraction(2, 3)}

_HALVED = re.compile(r"(?:anderthalb|([a-z]{2,10}?)(?:einhalb|enhalf|enhalve))([a-z]{0,12})")
"""A whole number, 1 if it is not named, and a half in one word, with a scale: anderthalbtausend, tweeënhalve."""

_DOTTED = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2}|(?<!\d)\d++,\d\d?")
"""Numbers by which a text shows that its full stops separate thousands."""

MAX_DIGITS, LARGEST = 60, 10**30
"""Characters of the longest number in digits, and a number that no word multiplies: Python refuses to read or write
integers of thousands of digits."""


class Numbers:
    """The pieces of a text, and the numbers in it.

    Args:
        text: Any text.
        dots: Whether "1.250" is a thousand and more, as in most languages other than English; also if other numbers of
            the text show it.
    """

    def __init__(self, text: str, dots: bool) -> None:
        self.pieces = pieces(fold(text))
        self.words = [*(piece.text for piece in self.pieces), *[""] * 8]  # lookahead needs no bounds check
        self.size, self.dots = len(self.pieces), dots or any(map(_DOTTED.fullmatch, self.words))

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
        while value < LARGEST and (scale := phrases("scales").at(words, at)) is not None:
            value, at = value * int(scale[0]), scale[1]
        return value, at

    def _part_of_scale(self, at: int) -> tuple[Fraction, int] | None:
        """A fraction just before the name of a large number, whose end it gives: half of "half a million"."""
        at += 1 in (phrases(name).get(self.words[at]) for name in ("numbers", "homographs"))  # eine halbe Million
        part = phrases("fractions").at(self.words, at)
        end = 0 if part is None else part[1] + (self.words[part[1]] in ("a", "-"))
        return (Fraction(part[0]), end) if part is not None and phrases("scales").at(self.words, end) else None

    def _plain_number(self, at: int) -> tuple[Fraction, int] | None:
        words, raw = self.words, self.words[at]
        if not raw[:1].isdecimal() or not raw.isascii():
            article = phrases("homographs").get(raw) == 1 and words[at + 1][:1].isdecimal()  # subió un 5 %
            return None if article else self._number_words(at)
        money = any(unit_name(word) in CURRENCIES for word in (words[at - 1], words[at + 1]) if word)
        value = _digits(raw, self.dots or money)
        if value is None:
            return None
        at += 1
        if raw.isdecimal() and len(raw) <= 3:  # 1 000 000
            while value < LARGEST and len(words[at]) == 3 and words[at].isdecimal() and not self.glued(at):
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
            if not given or (step > at and words[at] == "-" and last % 10) or last >= 1000 <= given[0]:
                break  # mil millones: a scale multiplies all before it
            for value in given:
                if value >= 1000:
                    total, current = total + max(current, Fraction(1)) * value, Fraction(0)
                elif value == 100:
                    current = max(current % 1000, Fraction(1)) * 100 if current < 100 else current + 100
                elif (
                    not 0 < last < 100
                    or (last >= 20 and last % 10 == 0 and value < (20 if last in (60, 80) else 10))
                    or (len(given) > 1 and (value >= 20 or last < 10))
                    or (last == 10 and words[step][:1] in "一二三四五六七八九")
                ):
                    current += value
                elif last < 10 and value == 10:
                    current += 9 * last  # 三百二十
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
        for name in ("numbers", "ordinals", "scales"):
            if (found := phrases(name).at(self.words, at)) is not None:
                return (int(found[0]),), found[1]
        return word_value(self.words[at]), at + 1


def _digits(raw: str, dots: bool) -> Fraction | None:
    """The value of digits: `1,000` and `1'000` are a thousand, `8,50` and `8.5` are not; None if it is no number."""
    if len(raw) > MAX_DIGITS:
        return None
    if re.fullmatch(r"[1-9]\d?(?:,\d\d)+,\d{3}", raw):  # 1,00,000 in India
        return Fraction(raw.replace(",", ""))
    if re.fullmatch(r"[1-9]\d{0,2}(?:(?:,\d{3})+(?:\.\d+)?|(?:'\d{3})+(?:[.,]\d+)?)", raw):
        return Fraction(raw.replace("'", "").replace(",", ".") if "'" in raw else raw.replace(",", ""))
    grouped = re.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?", raw)
    if grouped and (dots or raw.count(".") > 1 or "," in raw):
        return Fraction(raw.replace(".", "").replace(",", "."))
    return Fraction(raw.replace(",", ".")) if re.fullmatch(r"\d+(?:[.,]\d+)?", raw) else None


NO_UNITS = word_list("no_units")
"""Words after a number that are not units."""
SHORT_SCALES = {"k": 10**3, "mn": 10**6, "bn": 10**9, "tn": 10**12}
COUNTRIES = word_set("us a au c ca hk nz r s canadian australian singapore")
_DEGREES = word_set("degree degrees ° grad degres grados gradi graden")
_DAYS = ("tag", "tage", "tagen", "dag", "dagen", "工作日", "営業日")
MONEY = frozenset(CURRENCIES.values())
TIMES = frozenset(name for name, (kind, *_) in MEASURES.items() if kind == "time")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_RAISED = {"²": 2, "³": 3, "2": 2, "3": 3}
_ADJECTIVES = word_set("working business calendar full whole volle lange long bank")

_MONEY_SCALES = SHORT_SCALES | {"m": 10**6, "b": 10**9, "mm": 10**6}
_MINUTES = re.compile(r"[0-5]\d")
_SMALLER = {"year": "month", "week": "day", "day": "hour", "hour": "minute", "minute": "second"}


class Units(Numbers):
    """Reads the units of numbers, and what a rate is for.

    Args:
        text: Any text.
        dots: As for `Numbers`.
        alone: Whether the text is an answer, whose price may end in hundredths.
    """

    def __init__(self, text: str, dots: bool, alone: bool) -> None:
        super().__init__(text, dots)
        self.alone = alone

    def named_unit(self, at: int) -> str:
        """The unit of time, money or measure that begins here; of the measures, not one of one or two letters."""
        unit = unit_name(self.words[at])
        return unit if unit in TIMES or unit in CURRENCIES or (unit in MEASURES and len(self.words[at]) > 2) else ""

    def unit_of_rate(self, at: int) -> str:
        """The unit of time that begins here, also in the form that it has in a rate."""
        return next((n for n in (phrases("rates").get(self.words[at]), unit_name(self.words[at])) if n in TIMES), "")

    def unit(self, at: int) -> tuple[str, int, list[Qualifier]]:
        """The unit that begins here, where it ends, and what qualifies it; a noun also stays a word."""
        words, begun, parts = self.words, at, list[Qualifier]()
        at += words[at] == "-" and self.glued(at) and self.glued(at + 1)
        if words[at] in _DEGREES:
            scale = {"c": "celsius", "f": "fahrenheit"}.get(words[at + 1], words[at + 1])
            known = scale in ("celsius", "fahrenheit", "kelvin")
            return (f"degree {scale}", at + 2, []) if known else ("degree", at + 1, [])
        qualified = phrases("parts").at(words, at)
        if qualified is not None and qualified[0][0] == "days":
            if words[at].endswith(_DAYS):
                return "day", qualified[1], [qualified[0]]
            parts, at = [qualified[0]], qualified[1]
        elif words[at] in _ADJECTIVES and unit_name(words[at + 1]):
            at += 1
        if words[at] in COUNTRIES and single(words[at + 1]) == "dollar":
            return ("$" if words[at] == "us" else words[at][:1] + "$"), at + 2, parts
        named = phrases("units").at(words, at)
        if named is not None and named[1] > at + 1:
            return str(named[0]), named[1], parts
        power = _POWERS.get(words[at], 0)
        at += power > 0
        name = unit_name(words[at].rstrip("²³"))
        if words[at] == "in" and words[at + 1]:
            return "", begun, []  # the preposition
        return self._compound(name, at, power, parts) if name else (self._noun(at), begun, [])

    def _compound(self, name: str, at: int, power: int, parts: list[Qualifier]) -> tuple[str, int, list[Qualifier]]:
        """A known unit with what follows it: squared, divided by time, a kind of day."""
        words = self.words
        last = at + (words[at + 1] in _RAISED and self.glued(at + 1))  # m² is one piece, and m2 are two
        power = power or _RAISED.get(words[last][-1:], 0)
        after = phrases("parts").at(words, at + 1)
        if name == "day" and after is not None and after[0][0] == "days":
            return name, after[1], [*parts, after[0]]
        kind = MEASURES[name][0] if name in MEASURES else ""
        if power and kind == "length":
            return f"{power} {name}", last + 1, parts
        per = self.per(at + 1) if kind not in ("", "time", "share", "points", *MONEY) else None
        if per is not None and per[0] in MEASURES and (kind in ("length", "data") or per[0] not in TIMES):
            return f"{name}/{per[0]}", per[1], parts
        return name, at + 1, parts

    def _noun(self, at: int) -> str:
        """The noun after a number, which is its unit; "" if it is another word."""
        word = self.words[at]
        tables = ("parts", "weekdays", "rates")
        known = word in NO_UNITS or word in SHORT_SCALES or any(phrases(name).at(self.words, at) for name in tables)
        return single(word) if word.isalpha() and not known else ""

    def per(self, at: int, *, once: bool = False) -> tuple[str, int] | None:
        """What a rate is for, and its end: "a day", "per 100 ml", "every two weeks", "once in two weeks"."""
        words = self.words
        if (named := phrases("rates").at(words, at)) is not None:
            return named[0], named[1]
        step = phrases("every").at(words, at)
        opened = step or phrases("per").at(words, at) or (phrases("in").at(words, at) if once else None)
        if opened is not None:
            number = self.number(opened[1]) or phrases("fractions").at(words, opened[1])
            count, end = number or (Fraction(step[0] if step else 1), opened[1])
            unit = unit_name(words[end]) if not number or words[opened[1]] not in NO_UNITS else ""
            if unit in MEASURES and (unit in TIMES or not step):
                return period_of(Fraction(count), unit), end + 1
            plain = not (number or step or once) and words[end].isalpha() and words[end] not in NO_UNITS
            if plain and not unit:
                return single(words[end]), end + 1
        return None

    def sign(self, at: int) -> tuple[int, int]:
        """1 or -1 by the sign before a number, and its end."""
        if (minus := phrases("minus").at(self.words, at)) is not None:
            return -1, minus[1]
        if self.words[at] in ("-", "+") and self.glued(at + 1) and not self.glued(at):
            return (1 if self.words[at] == "+" else -1), at + 1
        return 1, at

    def currency(self, at: int) -> tuple[str, int]:
        """The currency or percent sign before a number, "" if there is none, and its end."""
        words = self.words
        if words[at] in COUNTRIES and words[at + 1] == "$":
            return ("$" if words[at] == "us" else f"{words[at][:1]}$"), at + 2
        named = phrases("units").get(words[at]) if words[at] else None
        if words[at] in CURRENCIES or named in CURRENCIES:
            number = words[at + 1][:1].isdecimal()
            return (named if named in CURRENCIES else words[at], at + 1) if number else ("", at)
        return ("%", at + 1) if named == "%" and at + 1 < self.size and self.number(at + 1) else ("", at)

    def scaled(self, value: Fraction, end: int, money: bool) -> tuple[Fraction, int]:
        """A number with what follows it: 12.2 bn, two and a half, 5/8, 3 1/2."""
        words, scales = self.words, _MONEY_SCALES if money else SHORT_SCALES
        if words[end] in scales and (money or self.glued(end)):
            value, end = value * scales[words[end]], end + 1
        if words[end] == "/" and (bottom := self.number(end + 1)) and self.glued(end) and bottom[0]:
            return value / bottom[0], bottom[1]
        if words[end + 1] == "/" and words[end] in ("1", "2", "3") and words[end + 2] in ("2", "3", "4"):
            return value + Fraction(int(words[end]), int(words[end + 2])), end + 3
        return value, end

    def and_a_half(self, at: int) -> int:
        """The end of "and a half", "et demie", "y media" after a unit; 0 if it is not there."""
        joined = self.words[at] in JOINING
        at += joined + (self.words[at + 1] in ("a", "eine"))
        found = phrases("fractions").at(self.words, at) if joined else None
        return found[1] if found is not None and found[0] == "1/2" else 0

    def longer(self, value: Fraction, unit: str, end: int) -> tuple[Fraction, int]:
        """A duration with the smaller units that follow: 1 h 30 min; in an answer, a price with hundredths."""
        priced = unit in CURRENCIES and (self.alone or self.words[end] in JOINING)
        end += self.words[end] == "." and self.words[end + 1].isdecimal() and unit in TIMES  # 1 Std. 30 Min.
        number = self.number(end + (self.words[end] in JOINING)) if unit in _SMALLER or priced else None
        smaller = self.unit(number[1]) if number else ("", 0, [])
        if number and unit == "hour" and _MINUTES.fullmatch(self.words[end]) and not smaller[0]:
            smaller = ("minute", number[1], [])  # 1h30
        if number and priced and not self.words[number[1]].strip(".") and 10 <= number[0] < 100:
            return value + number[0] / 100, number[1]
        if number is None or smaller[0] != _SMALLER.get(unit):
            return value, end
        return value + number[0] * MEASURES[smaller[0]][1] / MEASURES[unit][1], smaller[1]


def period_of(count: Fraction, unit: str) -> str:
    """A unit of time with how many of it, or another name of the same period: 12 months are a year."""
    amount, system = (count * MEASURES[unit][1], MEASURES[unit][2]) if unit in TIMES else (None, "")
    same = (name for name in ("year", "week", "day", "hour") if MEASURES[name][1:] == (amount, system))
    return unit if count == 1 else next(same, f"{count} {unit}")
