"""Exact numbers with units, dates, times of day, ranges and scores in a short text.

The tokens are read once from left to right: every quantity consumes all of its tokens, so that no part of a score, a
range or a composed number is mistaken for a separate number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from unpoison.text.normalisation import Token, word_set
from unpoison.text.units import MEASURES, Quantity, near, single, to_count

__all__ = ["Figure", "Moment", "quantities"]


class Moment(NamedTuple):
    """A point in time as far as it is given; `swapped` if the order of day and month is unknown."""

    year: int | None
    month: int | None
    day: int | None
    swapped: bool = False


class Figure(NamedTuple):
    """Several numbers together: a "range" (or score), or a "clock" in minutes (unit "half" if am or pm is unknown)."""

    kind: str
    parts: tuple[Fraction, ...]
    unit: str = ""


class Quantities(NamedTuple):
    """The quantities of a text in order, and the tokens that are left."""

    moments: tuple[Moment, ...]
    counts: tuple[Quantity | Figure, ...]
    rest: tuple[Token, ...]


_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"), 1)
    for name in names.split()
}  # fmt: skip
_BEFORE_MONTHS = word_set("in of by until till since before after early late mid through during to from")
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: E501, SIM905
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split()  # noqa: E501, SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_SMALL = {word: value for words in (_UNITS, _ORDINALS) for value, word in enumerate(words)}
_TEN = {word: 10 * value for value, word in enumerate(_TENS, 2)}
_TEN |= {word[:-1] + "ieth": value for word, value in _TEN.items()}
_SCALES = {"dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALES |= {word + "s": value for word, value in _SCALES.items()}
_SHORT_SCALES = {"k": 10**3, "mn": 10**6, "bn": 10**9, "tn": 10**12}
_MONEY_SCALES = _SHORT_SCALES | {"m": 10**6, "b": 10**9, "mm": 10**6}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}

_NAMES = {name: f"{kind}*{factor}" for name, (kind, factor, _) in MEASURES.items()}
_CURRENCIES = frozenset("$€£¥₹")
_COUNTRIES = word_set("us a au c ca hk nz s canadian australian singapore")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_BEGINNINGS = frozenset((*_SMALL, *_TEN, *_SCALES, *_MONTHS, *_TIMES, *_CURRENCIES, *_COUNTRIES)) | word_set(
    "hundred hundreds minus negative - +"
)
"""The first tokens of quantities, beside those that begin with a digit."""

_UNNAMED = word_set(
    "a an the in on at to of or and by for from with as is are was were per than that who which but not no more less "
    "over under ago later before after since until till it its they he she there about out each every only bc bce ad "
    "ce am pm"
)
"""Words after a number that are not units."""

_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_PLAIN = re.compile(r"[0-9]+(?:[.,][0-9]+)?")


def quantities(tokens: Sequence[Token], *, date: bool, number: bool) -> Quantities:
    """The dates and counts of a text.

    Args:
        tokens: Its tokens.
        date: Whether a date is asked for, so that the name of a month alone is a date.
        number: Whether a number is asked for, so that "1875" is not a year.

    Returns:
        Each token is in at most one quantity. Linear time.
    """
    return _Reader([token.text for token in tokens], tokens, date, number).read()


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, words: list[str], tokens: Sequence[Token], date: bool, number: bool) -> None:
        self.words = [*words, "", "", "", ""]  # lookahead needs no bounds check
        self.tokens = tokens
        self.date, self.number = date, number
        self.moments: list[Moment] = []
        self.counts: list[Quantity | Figure] = []
        self.rest: list[Token] = []

    def read(self) -> Quantities:
        at = 0
        while at < len(self.tokens):
            word = self.words[at]
            able = word in _BEGINNINGS or word[0].isdecimal()
            end = (self._moment(at) or self._count(at)) if able else 0
            if not end:
                self.rest.append(self.tokens[at])
            at = end or at + 1
        return Quantities(tuple(self.moments), tuple(self.counts), tuple(self.rest))

    def _moment(self, at: int) -> int:
        """The end of the date that begins here; 0 if there is none."""
        words = self.words
        day = None
        if (number := self._number(at)) and number[0].denominator == 1 and 1 <= number[0] <= 31:
            day, at = int(number[0]), number[1]
            at += words[at] == "of"
        elif raw := _parse_date(words[at]):
            self.moments.append(raw)
            return at + 1
        if words[at] not in _MONTHS:
            return 0
        month, named = _MONTHS[words[at]], at
        at += 1 + (words[at + 1] == ".")
        if day is None and (number := self._number(at)) and 1 <= number[0] <= 31 and number[0].denominator == 1:
            day, at = int(number[0]), number[1]
        behind = at + (words[at] in (",", "of"))
        year = int(words[behind]) if _is_year(words[behind]) else None
        if year is None and day is None and not self.date and (named == 0 or words[named - 1] not in _BEFORE_MONTHS):
            return 0  # a name, or the verb "may"
        self.moments.append(Moment(year, month, day))
        return at if year is None else behind + 1

    def _count(self, at: int) -> int:
        """The end of the quantity that begins here; 0 if there is none."""
        words, begun = self.words, at
        sign = 1
        if words[at] in ("minus", "negative") or (
            words[at] in "-+" and self._is_glued(at + 1) and not self._is_glued(at)
        ):
            sign, at = (1 if words[at] == "+" else -1), at + 1
        money, at = self._money(at)
        if words[at] in _TIMES and not money:
            self.counts.append(to_count(Fraction(_TIMES[words[at]]), "time"))
            return at + 1
        if not money and sign == 1 and (end := self._read_composite(at)):
            return end
        number = self._number(at)
        if number is None or (words[begun] == "one" and begun and words[begun - 1] == "no"):
            return 0
        value, end = number
        scales = _MONEY_SCALES if money else _SHORT_SCALES
        if words[end] in scales and (money or self._is_glued(end)):
            value, end = value * scales[words[end]], end + 1
        if words[end] in ("am", "pm") or (words[end] == "o'clock"):
            hour = value % 12 + (12 if words[end] == "pm" else 0)
            self.counts.append(Figure("clock", (hour * 60,), "half" if words[end] == "o'clock" else ""))
            return end + 1

        alone = end == at + 1 and words[at].isdecimal()
        if alone and words[end] == "s" and self._is_glued(end) and words[at].endswith("0"):  # the 1990s
            self.counts.append(Figure("decade", (value,)))
            return end + 1
        unit, behind = (money, end) if money else self._unit(end)
        if alone and unit not in _NAMES and not self.number and sign == 1 and _is_year(words[at]) and not money:
            self.moments.append(Moment(int(words[at]), None, None))
            return end
        if self.date and not unit and sign == 1 and value.denominator == 1 and _is_year(str(value)):
            self.moments.append(Moment(int(value), None, None))  # nineteen ninety-nine
            return end
        return self._add_measure(begun, at, sign * value, unit, behind)

    def _money(self, at: int) -> tuple[str, int]:
        """The currency sign that begins here, "" if none, and its end."""
        word = self.words[at]
        if word in _COUNTRIES and self.words[at + 1] == "$":
            return ("$" if word == "us" else f"{word[:1]}$"), at + 2
        return (word, at + 1) if word and word in _CURRENCIES else ("", at)

    def _add_measure(self, begun: int, at: int, value: Fraction, unit: str, end: int) -> int:
        """Add a number with its unit, or the range that it begins."""
        words = self.words
        spoken = words[begun - 1] if begun else ""
        then = 2 if words[end] == "out" and words[end + 1] == "of" else 1
        if then == 2 or words[end] in ("to", "-") or (words[end] == "and" and spoken == "between"):
            second = self._number(end + then)
            if second and not (words[end] == "-" and self._is_glued(end + 1) and not self._is_glued(end)):
                upper_unit, behind = self._unit(second[1])
                if then == 2 and second[0]:
                    self.counts.append(to_count(value / second[0], ""))
                    return second[1]
                self.counts.append(
                    Figure("range", (value, second[0]), _NAMES.get(upper_unit or unit, upper_unit or unit))
                )
                return behind
        measured = to_count(value, unit)
        named = spoken.isalpha() and spoken not in _UNNAMED
        if named and not unit and "." in words[at] and not self.number:
            measured = measured._replace(written=words[at])  # Python 3.1 is not Python 3.10
        again = spoken == "(" and measured in self.counts  # 5 (five)
        if not again and not any(
            isinstance(c, Quantity) and c.kind == measured.kind != "" and near(c, measured) for c in self.counts
        ):
            self.counts.append(measured)  # unless it repeats another one in other units
        return end

    def _read_composite(self, at: int) -> int:
        """Read several numbers in one token: times of day, scores, ranges, telephone numbers, two years."""
        raw = self.words[at]
        parts = re.split(r"[:-]", raw)
        if len(parts) == 1 or not raw[0].isdecimal():
            return 0
        clock = ":" in raw and "-" not in raw and len(parts[0]) <= 2 and all(part.isdecimal() for part in parts)
        if clock and len(parts[1]) == 2 and int(parts[0]) <= 24 and int(parts[1]) < 60:
            minutes, half = int(parts[0]) * 60 + int(parts[1]), self.words[at + 1]
            if half in ("am", "pm"):
                minutes = minutes % 720 + (720 if half == "pm" else 0)
            given = half in ("am", "pm")
            open_half = not given and 1 <= int(parts[0]) <= 12 and raw[0] != "0"
            self.counts.append(Figure("clock", (Fraction(minutes),), "half" if open_half else ""))
            return at + 1 + given
        unit, end = self._unit(at + 1)
        if len(parts) == 2 and _is_year(parts[0]) and _is_year(parts[1]) and not self.number:
            self.moments += [Moment(int(part), None, None) for part in parts]
            return at + 1
        values = tuple(value for part in parts if (value := _value(part)) is not None)
        if len(values) < len(parts):
            return 0
        self.counts.append(Figure("range", values, _NAMES.get(unit, unit)))
        return end

    def _number(self, at: int) -> tuple[Fraction, int] | None:
        """The number that begins here, in digits or words, and its end."""
        words = self.words
        raw = words[at]
        if not raw[:1].isdecimal() or not raw.isascii():
            return self._read_words(at)
        value = _value(raw)
        if value is None:
            return None
        at += 1
        if raw.isdecimal() and len(raw) <= 3:  # 1 000 000
            while len(words[at]) == 3 and words[at].isdecimal() and not self._is_glued(at):
                value, at = value * 1000 + int(words[at]), at + 1
        if words[at] in ("st", "nd", "rd", "th") and self._is_glued(at):
            return value, at + 1
        while words[at] in _SCALES:
            value, at = value * _SCALES[words[at]], at + 1
        if words[at] == "hundred":
            value, at = value * 100, at + 1
        return value, at

    def _read_words(self, at: int) -> tuple[Fraction, int] | None:
        """A number in words: three hundred and fifty, forty-two, nineteen ninety nine."""
        words, begun = self.words, at
        total, current, last = Fraction(0), Fraction(0), ""
        while True:
            word = words[at]
            if word in ("and", "-") and last and (word == "-" or last in ("hundred", "scale")):
                if not (words[at + 1] in _SMALL or words[at + 1] in _TEN):
                    break
                word, at = words[at + 1], at + 1
                if words[at - 1] == "-" and last not in ("ten", "hundred", "scale"):
                    at -= 1
                    break
            small, ten = _SMALL.get(word), _TEN.get(word)
            if word == "second" and last not in ("ten", "hundred"):
                small = 2 if not last else None
            value = small if small is not None else ten
            if value is not None:
                if last in ("", "hundred", "scale") or (last == "ten" and small is not None and 0 < small < 10):
                    current += value
                elif not total and 10 <= current <= 20 and value >= 10:
                    current = current * 100 + value  # a year
                else:
                    break
                last = "ten" if ten is not None else "unit"
            elif word in ("hundred", "hundreds") and last in ("", "unit", "ten"):
                current, last = (current or Fraction(1)) * 100, "hundred"
            elif word in _SCALES:
                total, current, last = total + (current or Fraction(1)) * _SCALES[word], Fraction(0), "scale"
            else:
                break
            at += 1
        return (total + current, at) if at > begun else None

    def _unit(self, at: int) -> tuple[str, int]:
        """The unit that begins here and where it ends; a noun is a unit, and also stays among the words."""
        words, begun = self.words, at
        at += words[at] == "-" and self._is_glued(at) and self._is_glued(at + 1)
        if words[at] in ("degree", "degrees", "°"):
            scale = {"c": "celsius", "f": "fahrenheit"}.get(words[at + 1], words[at + 1])
            has_scale = scale in ("celsius", "fahrenheit", "kelvin")
            return (f"degree {scale}", at + 2) if has_scale else ("degree", at + 1)
        if words[at] == "per" and words[at + 1] == "cent":
            return "%", at + 2
        if words[at] in _COUNTRIES and single(words[at + 1]) == "dollar":
            return ("$" if words[at] == "us" else words[at][:1] + "$"), at + 2
        power = _POWERS.get(words[at], 0)
        at += power > 0
        name = single(words[at])
        if name == "in" and words[at + 1]:
            return "", begun  # the preposition
        if name not in MEASURES:
            plain = name.isalpha() and name not in _UNNAMED and name not in _SHORT_SCALES
            return (name if plain else ""), begun
        if power and MEASURES[name][0] == "length":
            return f"{power} {name}", at + 1
        if words[at + 1] in ("/", "per") and single(words[at + 2]) in MEASURES:
            return f"{name}/{single(words[at + 2])}", at + 3
        return name, at + 1

    def _is_glued(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].glued


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isascii() and word.isdecimal() and 1000 <= int(word) < 2100


def _parse_date(raw: str) -> Moment | None:
    """Read 1999-03-03, and 3/4/2020, in which the order of day and month is unknown."""
    parts = raw.split("-") if "-" in raw else raw.split("/")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    first, second, third = map(int, parts)
    if len(parts[0]) == 4:
        return Moment(first, second, third)
    if len(parts[2]) != 4 or "-" in raw:
        return None
    return (
        Moment(third, second, first) if first > 12 else Moment(third, first, second, second <= 12 and first != second)
    )


def _value(raw: str) -> Fraction | None:
    """The value of digits; None for several numbers, a version, or no number."""
    if _THOUSANDS.fullmatch(raw):
        return Fraction(raw.replace(",", ""))
    if _PLAIN.fullmatch(raw):
        return Fraction(raw.replace(",", "."))
    top, _, bottom = raw.partition("/")
    if bottom.isdecimal() and top.isdecimal() and int(bottom):
        return Fraction(int(top), int(bottom))
    return None
