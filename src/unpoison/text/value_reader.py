"""Typed values: durations, dates, times, sums of money, measures, account and phone numbers, in twelve languages.

A value has everything that belongs to it: unit, bound ("at least"), rate ("a day"), zone, direction, kind of day. Two
values of one kind are equal if all of that agrees, compatible if only one of them has a part, and rivals if a part
differs. The pieces of a text are read once from left to right, and a value takes all of its pieces, so that no part of
a date or a composed number is mistaken for another number. Rules only, linear time.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from unpoison.text.languages import other_language
from unpoison.text.lexicon import phrases
from unpoison.text.normalisation import word_set
from unpoison.text.questions import Kind
from unpoison.text.units import (
    CURRENCIES,
    JOINING,
    MEASURES,
    Numbers,
    Quantity,
    single,
    to_count,
    unit_name,
    word_value,
)

__all__ = ["HALVES", "MAX_CHARS", "Value", "read_values", "values"]

MAX_CHARS = 20_000
"""Maximum characters of a text that are searched."""

NEAR_BY = {"direction": 12, "bound": 6, "rate": 6}
"""Maximum characters between a value and what qualifies it; 4 for other dimensions."""

Qualifier: TypeAlias = tuple[str, str]
"""A dimension and its value, such as ("bound", "least")."""


class Value(NamedTuple):
    """A value in a text.

    Attributes:
        kind: Its kind.
        start, end: Its position.
        key: Its normalised value: a `Quantity`, (year, month, day), (minutes,), or its characters.
        parts: What qualifies it, by dimension.
    """

    kind: Kind
    start: int
    end: int
    key: Quantity | tuple[int | None, ...] | str
    parts: frozenset[Qualifier] = frozenset()

    @property
    def unit(self) -> str:
        """The unit of a quantity."""
        return self.key.unit if isinstance(self.key, Quantity) else ""

    def part(self, dimension: str) -> str:
        """What it has of a dimension; "" for nothing."""
        return next((value for name, value in self.parts if name == dimension), "")


class ReadValues(NamedTuple):
    """The values of a text in order, the parts that belong to none, and the regions that values and parts take."""

    values: tuple[Value, ...]
    loose: frozenset[Qualifier]
    taken: tuple[tuple[int, int], ...]


_SHAPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("iban", re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")),
    ("phone", re.compile(r"(?<![\w.,:])(?:\+\d{1,3}|\(?0\d{1,5}\)?)[\s/()-]{0,3}\d[\d\s/()-]{4,16}\d\b(?![.:]\d)")),
    ("code", re.compile(r"\b(?=[A-Z0-9-]{0,30}\d{3})(?=[A-Z0-9-]{0,30}[A-Z])[A-Z0-9][A-Z0-9-]{4,30}[A-Z0-9]\b")),
)
_DATES = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}([./])\d{1,2}\1\d{4}")
_OF = word_set("of de del of, . , den er º o st nd rd th te")
_BEFORE_MONTHS = word_set("in of by until till since before after early late mid through during to from im en w")
_UNNAMED = word_set(
    "a an the in on at to of or and by for from with as is are was were per than that who which but not no more less "
    "over under ago later before after since until till it its they he she there about out each every only bc bce ad "
    "ce am pm x und oder am im um et ou par pour y o e en por para per pro na w i tot bis der die das le la les el los"
)
"""Words after a number that are not units."""

_SHORT_SCALES = {"k": 10**3, "mn": 10**6, "bn": 10**9, "tn": 10**12}
_MONEY_SCALES = _SHORT_SCALES | {"m": 10**6, "b": 10**9, "mm": 10**6}
_COUNTRIES = word_set("us a au c ca hk nz s canadian australian singapore")
_DEGREES = word_set("degree degrees ° grad degres grados gradi graden")
_DAYS = ("tag", "tage", "tagen", "dag", "dagen", "工作日", "営業日")
_MONEY = frozenset(CURRENCIES.values())
_SMALLER = {"year": "month", "week": "day", "day": "hour", "hour": "minute", "minute": "second"}
_DUTCH_HOURS = word_set("elf twee drie vier vijf zes tien twaalf")
_TIME = re.compile(r"(\d{1,2})(?:([:.])([0-5]\d)(?::\d\d)?)?")
_MINUTES = re.compile(r"[0-5]\d")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
HALVES = {"am": 0, "morning": 0, "pm": 720, "afternoon": 720, "evening": 720, "night": 720}
_ADJECTIVES = word_set("working business calendar full whole volle lange long bank")


def values(text: str) -> tuple[Value, ...]:
    """The values of a text, in order and without overlap. The last 4,096 results are cached."""
    return read_values(text[:MAX_CHARS]).values


@lru_cache(maxsize=4096)
def read_values(
    text: str, *, date: bool = False, years: bool = False, alone: bool = False, dots: bool = False
) -> ReadValues:
    """Read a text.

    Args:
        text: Any text.
        date: Whether a date is asked for, so that the name of a month alone is a date.
        years: Whether four digits alone are a year.
        alone: Whether the text is an answer, whose article ("a week") and hyphenated numbers count.
        dots: Whether "1.250" is a thousand and more, as in most languages other than English.
    """
    return _Reader(text, date, years, alone, dots or other_language(text) is not None).read()


class _Reader(Numbers):
    """Reads pieces from left to right."""

    def __init__(self, text: str, date: bool, years: bool, alone: bool, dots: bool) -> None:
        super().__init__(text, dots)
        self.text, self.date, self.years, self.alone = text, date, years, alone
        self.found: list[Value] = []
        self.parts: list[tuple[Qualifier, int, int]] = []
        self.taken: list[tuple[int, int]] = []

    def read(self) -> ReadValues:
        shaped = self._shapes()
        at = 0
        rules = (self._moment, self._weekday, self._clock, self._count, self._daypart, self._part)
        while at < self.size:
            start = self.pieces[at].start
            if start in shaped:
                while at < self.size and self.pieces[at].start < shaped[start]:
                    at += 1
                continue
            at = next((end for rule in rules if (end := rule(at))), at + 1)
        self.found.sort(key=lambda value: value.start)
        self._ranges()
        loose = self._attach()
        taken = [*((value.start, value.end) for value in self.found), *self.taken]
        return ReadValues(tuple(self.found), loose, tuple(sorted(taken)))

    def _shapes(self) -> dict[int, int]:
        ends: dict[int, int] = {}
        for kind, pattern in _SHAPES:
            for match in pattern.finditer(self.text):
                start, end = match.span()
                if _DATES.match(match[0]) or any(s < end and start < e for s, e in ends.items()):
                    continue
                key = re.sub(r"[\s/()-]", "", match[0])
                if key.isascii():
                    ends |= {piece.start: end for piece in self.pieces if start <= piece.start < end}
                    self.found.append(Value(kind, start, end, key))
        return ends

    def _add(self, kind: Kind, at: int, end: int, key: Any, *parts: Qualifier) -> int:
        start, stop = self.pieces[at].start, self.pieces[end - 1].end
        self.found.append(Value(kind, start, stop, key, frozenset(parts)))
        return end

    def _moment(self, at: int) -> int:
        """The end of the date that begins here; 0 if there is none."""
        words = self.words
        if (numeric := _numeric_date(words[at], self.dots)) is not None:
            return self._add("date", at, at + 1, *numeric)
        begun, day = at, None
        number = self.number(at)
        if number and number[0].denominator == 1 and words[number[1]] in ("年", "月") and words[at].isdecimal():
            return self._han_moment(at)
        if number and number[0].denominator == 1 and 1 <= number[0] <= 31:
            day, at = int(number[0]), number[1]
            while words[at] in _OF and at < number[1] + 3:
                at += 1
        month = phrases("months").at(words, at)
        if month is None:
            return self._year(begun)
        named, at = at, month[1]
        at += words[at] == "."
        if day is None and (number := self.number(at)) and 1 <= number[0] <= 31 and number[0].denominator == 1:
            day, at = int(number[0]), number[1]
        behind = at
        while words[behind] in (",", *_OF) and behind < at + 2:
            behind += 1
        year = int(words[behind]) if _is_year(words[behind]) else None
        alone = self.date and len(words[named]) > 2
        if year is None and day is None and not alone and (named == 0 or words[named - 1] not in _BEFORE_MONTHS):
            return 0  # a name, or the verb "may"
        if year is not None:
            at = behind + 1 + (words[behind + 1] == "года")
        return self._add("date", begun, at, (year, month[0], day))

    def _han_moment(self, at: int) -> int:
        """A date such as 2026年3月15日, 3月15日 or 2026年."""
        words, begun = self.words, at
        given: dict[str, int] = {}
        for name, marks in (("year", "年"), ("month", "月"), ("day", "日号號")):
            if words[at].isdecimal() and words[at + 1] and words[at + 1] in marks:
                given[name], at = int(words[at]), at + 2
        if not given or (set(given) == {"year"} and given["year"] < 1000) or set(given) == {"day"}:
            return 0
        return self._add("date", begun, at, (given.get("year"), given.get("month"), given.get("day")))

    def _year(self, at: int) -> int:
        """A year alone, if a date is asked for."""
        words = self.words
        number = self.number(at) if self.years and (self.date or words[at].isdecimal()) else None
        if number is None or number[0].denominator != 1 or not _is_year(str(number[0])):
            return 0
        follows = words[number[1]]
        spans = follows == "-" and _is_year(words[number[1] + 1])
        if unit_name(follows) not in ("", "year") or (follows in "-%:" and self.glued(number[1] + 1) and not spans):
            return 0
        if follows == "s" and self.glued(number[1]):  # the 1990s
            return self._add("date", at, number[1] + 1, (int(number[0]), None, None), ("decade", "yes"))
        return self._add("date", at, number[1], (int(number[0]), None, None))

    def _weekday(self, at: int) -> int:
        found = phrases("weekdays").at(self.words, at)
        return 0 if found is None else self._add("weekday", at, found[1], (found[0],))

    def _clock(self, at: int) -> int:
        """The end of the time of day that begins here; 0 if there is none."""
        words, quarters = self.words, phrases("quarters")
        if (named := phrases("hours").at(words, at)) is not None:
            return self._add("clock", at, named[1], (60 * named[0],))
        if words[at] == "half" and words[at + 1] in _DUTCH_HOURS:
            return self._time(at, at + 2, 60 * (self._hour(at + 1) or 0) - 30, exact=False)
        if (early := quarters.at(words, at)) is not None and (hour := self._hour(early[1])) is not None:
            end = early[1] + 1 + (phrases("clock").get(words[early[1] + 1]) is not None)
            return self._time(at, end, 60 * hour + early[0], exact=False)
        time = _TIME.fullmatch(words[at])
        given = int(time[1]) if time else self._hour(at)
        if given is None or given > 24:
            return 0
        minutes, sign, end = 60 * given + int(time[3] or 0 if time else 0), time[2] if time else None, at + 1
        asked, mark = phrases("clock", "at").before(words, at), phrases("clock").at(words, end)
        marked = "" if mark is None or mark[0] == "at" else str(mark[0])
        if mark is not None and marked:
            end = mark[1]
            if (
                not sign
                and _MINUTES.fullmatch(words[end])
                and (words[end + 1] == "分" or not unit_name(words[end + 1]))
            ):
                minutes, sign, end = minutes + int(words[end]), ":", end + 1 + (words[end + 1] == "分")
        late = quarters.at(words, end) if not sign and (marked != "hours" or given > 3 or asked) else None
        if late is not None:
            return self._time(at, late[1], minutes + late[0], exact=False)
        half = phrases("dayparts").at(words, end)
        if not (sign == ":" or half or marked == "always" or (asked and (marked or sign))):
            counted = words[end].isalpha() or unit_name(words[end]) or words[end] in (*CURRENCIES, "-", "/", "°")
            alone = words[end] in ("", ".", ",") or words[at - 1] not in ("at", "le", "o", "um")
            if not (asked and words[at].isdecimal() and alone and not counted):
                return 0
        return self._time(at, end, minutes, exact=given > 12 or words[at][0] == "0" or words[at + 1] == "uhr")

    def _hour(self, at: int) -> int | None:
        """The hour that one piece gives in digits or words."""
        word = self.words[at]
        value = (int(word),) if word.isdecimal() and len(word) <= 2 and word.isascii() else word_value(word)
        if not value and word in ("una", "une", "uma", "ein", "eins", "one"):
            value = (1,)
        return value[0] if len(value) == 1 and value[0] <= 24 else None

    def _time(self, at: int, end: int, minutes: int, exact: bool) -> int:
        """Add a time; without a part of the day, and if not exact, its half of the day is open."""
        half = phrases("dayparts").at(self.words, end)
        german = phrases("weekdays").at(self.words, end + 1) and self.words[end + 1].endswith(("tag", "woch"))
        if half is not None and not german:  # um 8 am Montag
            end, minutes, exact = half[1], minutes % 720 + HALVES[half[0]], True
            end += self.words[end] == "." and self.words[end - 1] in ("m", "m.")
        before = self.found[-1] if self.found else None
        if not exact and before and before.kind == "daypart" and self.pieces[at].start - before.end <= 4:
            self.found.pop()
            minutes, exact = minutes % 720 + HALVES[str(before.key)], True
            at = next(i for i in range(at, -1, -1) if self.pieces[i].start <= before.start)
        zone = phrases("zones").at(self.words, end)
        parts = [("zone", str(zone[0]))] if zone is not None else []
        end = zone[1] if zone is not None else end
        if not exact and 0 < minutes < 780:
            parts.append(("half", "open"))
        return self._add("clock", at, end, (minutes % 1440 if minutes != 1440 else 0,), *parts)

    def _daypart(self, at: int) -> int:
        found = phrases("dayparts").at(self.words, at)
        if found is None or (found[0] in ("am", "pm") and self.words[at].isascii()):
            return 0
        return self._add("daypart", at, found[1], found[0])

    def _part(self, at: int) -> int:
        """A phrase that qualifies a value."""
        words = self.words
        found = phrases("parts").at(words, at)
        if found is None and (rate := phrases("rates").at(words, at)) is not None:
            found = ("rate", rate[0]), rate[1]
        if found is None:
            return 0
        end = found[1]
        if words[at] in ("less", "more", "fewer", "over") and words[at - 1] in ("or", "and") and at:
            return 0
        self.parts.append((found[0], at, end))
        return end

    def _count(self, at: int) -> int:
        """The end of the quantity that begins here; 0 if there is none."""
        words, begun = self.words, at
        sign, at = self._sign(at)
        money, at = self._currency(at)
        if not money and (end := self._fraction(begun, at)):
            return end
        ordinal = not self.alone and phrases("ordinals").at(words, at) is not None
        number = None if ordinal else self.number(at) or (None if money else self._article(at))
        if number is None or (words[begun] == "one" and begun and words[begun - 1] == "no"):
            return self._times(begun)
        value, end = number
        named = begun > 1 and words[begun - 1] == "-" and self.glued(begun) and words[begun - 2].isalpha()  # SI-8
        if not self.alone and ((named and sign == 1) or (begun and words[begun - 1] == "§")):
            return end
        if words[end : end + 2] == ["out", "of"] and (whole := self.number(end + 2)) and whole[0]:
            return self._add("share", begun, whole[1], to_count(value / whole[0] * 100, "%"))
        value, end = self._scaled(value, end, bool(money))
        unit, behind, parts = (money, end, []) if money else self._unit(end)
        if unit in ("hour", "year") and (half := self._and_a_half(behind)):
            value, behind = value + Fraction(1, 2), half
        value, behind = self._longer(value, unit, behind)
        key = to_count(sign * value, unit)
        spoken = words[begun - 1] if begun else ""
        if spoken.isalpha() and spoken not in _UNNAMED and not unit and "." in words[at] and not self.dots:
            key = key._replace(written=words[at])  # Python 3.1 is not Python 3.10
        kind: Kind = _kind(key)
        if kind == "number" and not key.kind and unit != "time":
            behind = end  # a noun stays among the words
        self._add(kind, begun, max(behind, end), key, *parts)
        return self._rate(max(behind, end), bool(unit) and behind == end)

    def _sign(self, at: int) -> tuple[int, int]:
        if (minus := phrases("minus").at(self.words, at)) is not None:
            return -1, minus[1]
        if self.words[at] in ("-", "+") and self.glued(at + 1) and not self.glued(at):
            return (1 if self.words[at] == "+" else -1), at + 1
        return 1, at

    def _scaled(self, value: Fraction, end: int, money: bool) -> tuple[Fraction, int]:
        """A number with what follows it: 12.2 bn, two and a half, 5/8."""
        words, scales = self.words, _MONEY_SCALES if money else _SHORT_SCALES
        if words[end] in scales and (money or self.glued(end)):
            value, end = value * scales[words[end]], end + 1
        if words[end : end + 3] == ["and", "a", "half"]:
            return value + Fraction(1, 2), end + 3
        if words[end] == "/" and (bottom := self.number(end + 1)) and self.glued(end) and bottom[0]:
            return value / bottom[0], bottom[1]
        return value, end

    def _currency(self, at: int) -> tuple[str, int]:
        """The currency before a number, "" if there is none, and its end."""
        words = self.words
        if words[at] in _COUNTRIES and words[at + 1] == "$":
            return ("$" if words[at] == "us" else f"{words[at][:1]}$"), at + 2
        named = phrases("units").get(words[at]) if words[at] else None
        if words[at] in CURRENCIES or named in CURRENCIES:
            number = words[at + 1][:1].isdecimal()
            return (named if named in CURRENCIES else words[at], at + 1) if number else ("", at)
        return "", at

    def _times(self, at: int) -> int:
        """How often: "twice a week"; "once" only before a rate."""
        found = phrases("times").at(self.words, at)
        if found is None:
            return 0
        rated = phrases("rates").at(self.words, found[1]) is not None
        if found[0] == 1 and not rated and not (self.alone and self.size <= 2):
            return 0
        self._add("number", at, found[1], to_count(Fraction(found[0]), "time"))
        return self._rate(found[1], noun=False)

    def _fraction(self, begun: int, at: int) -> int:
        """Half an hour, a quarter, two thirds."""
        words = self.words
        found = phrases("fractions").at(words, at)
        top = Fraction(1)
        if found is None:
            first = (1,) if phrases("homographs").get(words[at]) == 1 else word_value(words[at])
            part = phrases("fractions").get(single(words[at + 1])) if len(first) == 1 else None
            if part is None:
                return 0
            top, found = Fraction(first[0]), (part, at + 2)
        elif found[0] not in ("1/2", "3/2"):
            return 0  # "third", "quarter" alone
        value, end = top * Fraction(found[0]), found[1]
        end += words[end] in ("-", "'")
        skip = end + (words[end] in ("a", "an", "of") and words[end + 1] in ("hour", "year", "day", "month"))
        unit = unit_name(words[skip])
        if (dozen := phrases("dozens").at(words, end + (words[end] == "a"))) is not None:
            return self._add("number", begun, dozen[1], to_count(12 * value, ""))
        if _is_time(unit):
            return self._rate(self._add("duration", begun, skip + 1, to_count(value, unit)), noun=False)
        if (value.denominator == 2 and value > 1) or (found[0] == "1/2" and top == 1 and not self.alone):
            return 0
        return self._add("share", begun, end, to_count(100 * value, "%"))

    def _article(self, at: int) -> tuple[Fraction, int] | None:
        """An article that means one before a unit, or a number word that is also another word."""
        words = self.words
        found = phrases("homographs").at(words, at)
        if found is None:
            return None
        unit = unit_name(words[found[1]])
        if not (_is_time(unit) or unit in CURRENCIES):
            return None
        if words[at] in ("a", "an") and not ((self.alone and at == 0) or words[at - 1] in _BEFORE_ARTICLE):
            return None  # "a year" is also a rate
        return Fraction(found[0]), found[1]

    def _and_a_half(self, at: int) -> int:
        """The end of "and a half", "et demie", "y media" after a unit; 0 if it is not there."""
        joined = self.words[at] in JOINING
        at += joined + (self.words[at + 1] in ("a", "eine"))
        found = phrases("fractions").at(self.words, at) if joined else None
        return found[1] if found is not None and found[0] == "1/2" else 0

    def _longer(self, value: Fraction, unit: str, end: int) -> tuple[Fraction, int]:
        """A duration with the smaller units that follow: 1 h 30 min."""
        number = self.number(end + (self.words[end] in JOINING)) if unit in _SMALLER else None
        smaller = self._unit(number[1]) if number else ("", 0, [])
        if number is None or smaller[0] != _SMALLER[unit]:
            return value, end
        return value + number[0] * MEASURES[smaller[0]][1] / MEASURES[unit][1], smaller[1]

    def _unit(self, at: int) -> tuple[str, int, list[Qualifier]]:
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
        if words[at] in _COUNTRIES and single(words[at + 1]) == "dollar":
            return ("$" if words[at] == "us" else words[at][:1] + "$"), at + 2, parts
        named = phrases("units").at(words, at)
        if named is not None and named[1] > at + 1:
            return str(named[0]), named[1], parts
        power = _POWERS.get(words[at], 0)
        at += power > 0
        name = unit_name(words[at])
        if words[at] == "in" and words[at + 1]:
            return "", begun, []  # the preposition
        return self._compound_unit(name, at, power, parts) if name else (self._noun(at), begun, [])

    def _noun(self, at: int) -> str:
        """The noun after a number, which is its unit; "" if it is another word."""
        word = self.words[at]
        tables = ("parts", "weekdays", "rates")
        known = word in _UNNAMED or word in _SHORT_SCALES or any(phrases(name).at(self.words, at) for name in tables)
        return single(word) if word.isalpha() and not known else ""

    def _compound_unit(
        self, name: str, at: int, power: int, parts: list[Qualifier]
    ) -> tuple[str, int, list[Qualifier]]:
        """A known unit with what follows it: squared, divided by time, a kind of day."""
        words = self.words
        if words[at + 1] in ("²", "³"):
            power, at = (2 if words[at + 1] == "²" else 3), at + 1
        after = phrases("parts").at(words, at + 1)
        if name == "day" and after is not None and after[0][0] == "days":
            return name, after[1], [*parts, after[0]]
        kind = MEASURES[name][0] if name in MEASURES else ""
        if power and kind == "length":
            return f"{power} {name}", at + 1, parts
        other = unit_name(words[at + 2])
        if words[at + 1] in ("/", "per") and other in MEASURES and kind not in ("", "time", "share", *_MONEY):
            return f"{name}/{other}", at + 3, parts
        return name, at + 1, parts

    def _rate(self, end: int, noun: bool) -> int:
        """The end of a rate behind a value, such as "a day" or "per user", which becomes a part of it."""
        words = self.words
        for start in range(end, end + 1 + noun + (words[end] == "/")):
            found = phrases("rates").at(words, start)
            if found is None and words[start] in ("/", "per", "pro", "par", "por", "each", "je"):
                unit = unit_name(words[start + 1])
                plain = words[start + 1].isalpha() and words[start + 1] not in _UNNAMED
                name = unit if unit in MEASURES else single(words[start + 1]) if plain else ""
                found = (name, start + 2) if name else None
            if found is None or (start > end and not words[end].isalpha()):
                continue
            self.found[-1] = self.found[-1]._replace(parts=self.found[-1].parts | {("rate", str(found[0]))})
            self.taken.append((self.pieces[start].start, self.pieces[found[1] - 1].end))
            return end if start > end else found[1]
        return end

    def _ranges(self) -> None:
        """Mark the ends of ranges: "9 am to 5 pm", "Monday to Friday", "3-1"."""
        joins, starts = phrases("ranges", "join"), phrases("ranges", "start")
        index = {piece.start: i for i, piece in enumerate(self.pieces)}
        for n in range(len(self.found) - 1):
            left, right = self.found[n : n + 2]
            first, after = index.get(left.start, 0), index.get(right.start, 0)
            opened = first > 0 and starts.get(self.words[first - 1]) is not None
            like = left.kind == right.kind or (isinstance(left.key, Quantity) and isinstance(right.key, Quantity))
            joint = self.pieces[after - 1]
            if not like or left.part("range") or after < 2 or self.pieces[after - 2].end > left.end:
                continue
            if joint.start < left.end or (joins.get(joint.text) is None and not (joint.text in JOINING and opened)):
                continue
            if isinstance(left.key, Quantity) and isinstance(right.key, Quantity) and not left.key.unit:
                left = left._replace(key=to_count(left.key.value, right.key.unit), kind=right.kind)
            self.found[n] = left._replace(parts=left.parts | {("range", "from")})
            self.found[n + 1] = right._replace(parts=right.parts | {("range", "to")})
            self.taken.append((left.end, right.start))
            self.parts = [p for p in self.parts if p[1] not in (after - 1, first - 1)]
            if opened:
                self.taken.append((self.pieces[first - 1].start, left.start))

    def _attach(self) -> frozenset[Qualifier]:
        """Give each part to the nearest value; return those that belong to none."""
        loose, counts = set(), [n for n, value in enumerate(self.found) if isinstance(value.key, Quantity)]
        for part, first, last in self.parts:
            start, end = self.pieces[first].start, self.pieces[last - 1].end
            gaps = [
                (max(value.start - end, start - value.end, 0), n)
                for n, value in enumerate(self.found)
                if max(value.start - end, start - value.end) <= NEAR_BY.get(part[0], 4) and _fits(part, value, start)
            ]
            if not gaps and part[1] in ("least", "most") and self.alone and len(counts) == 1:
                gaps = [(0, counts[0])]  # maximum wind without tugs: 18 m/s
            if not gaps:
                loose.add(part)
                continue
            _, n = min(gaps)
            value = self.found[n]
            if not value.part(part[0]):
                self.found[n] = value._replace(parts=value.parts | {part})
                self.taken.append((start, end))
        return frozenset(loose)


_BEFORE_ARTICLE = word_set("within after for about only until in than")


def _fits(part: Qualifier, value: Value, start: int) -> bool:
    """Whether a part can belong to a value of its kind."""
    dimension = part[0]
    if value.kind in ("iban", "phone", "code"):
        return False
    if dimension in ("era", "season", "phase"):
        return value.kind in ("date", "number")
    if dimension == "days":
        return value.unit == "day"
    if dimension == "rate":
        return isinstance(value.key, Quantity)
    if part[1] in ("before", "until", "after", "since"):
        return value.kind not in ("money", "share", "number")
    if dimension in ("heading", "side"):
        return value.kind == "number" and bool(value.unit) and 0 <= start - value.end <= 2
    return dimension != "direction" or isinstance(value.key, Quantity)


def _is_time(unit: str) -> bool:
    return unit in MEASURES and MEASURES[unit][0] == "time"


def _kind(key: Quantity) -> Kind:
    if key.kind in _MONEY or key.unit in CURRENCIES:
        return "money"
    return "duration" if key.kind == "time" else "share" if key.unit == "%" else "number"


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isascii() and word.isdecimal() and 1000 <= int(word) < 2100


def _numeric_date(raw: str, day_first: bool) -> tuple[Any, ...] | None:
    """Read 1999-03-03, 1.9.2026, and 3/4/2020, whose order is unknown in English; the key and parts."""
    split = re.split(r"[-./]", raw)
    if len(split) != 3 or not all(part.isascii() and part.isdecimal() for part in split):
        return None
    first, second, third = map(int, split)
    if len(split[0]) == 4:
        return ((first, second, third),) if second <= 12 and third <= 31 else None
    if len(split[2]) != 4 or "-" in raw or not (first <= 31 and second <= 31):
        return None
    if "." in raw or first > 12 or day_first:
        return ((third, second, first),) if second <= 12 else None
    open_order = second <= 12 and first != second
    return ((third, first, second), ("order", "open")) if open_order else ((third, first, second),)
