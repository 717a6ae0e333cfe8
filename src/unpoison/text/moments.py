"""Dates, weekdays and times of day in texts, and what a typed value is."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NamedTuple, Self

from unpoison.text.languages import phrases, word_value
from unpoison.text.questions import Kind
from unpoison.text.tokens import word_set
from unpoison.text.units import CURRENCIES, MONEY, Qualifier, Quantity, Units, to_count, unit_name

__all__ = ["HALVES", "Moments", "Value", "kind_of"]


class Value(NamedTuple):
    """A value in a text.

    Attributes:
        kind: Its kind.
        start, end: Its position.
        key: Its normalised value: a `Quantity`, (year, month, day), (minutes,), or its characters.
        parts: What qualifies it, by dimension.
        whole: The position of the value and of all that qualifies it; None without parts.
    """

    kind: Kind
    start: int
    end: int
    key: Quantity | tuple[int | None, ...] | str
    parts: frozenset[Qualifier] = frozenset()
    whole: tuple[int, int] | None = None

    @property
    def unit(self) -> str:
        """The unit of a quantity."""
        return self.key.unit if isinstance(self.key, Quantity) else ""

    def part(self, dimension: str) -> str:
        """What it has of a dimension; "" for nothing."""
        return next((value for name, value in self.parts if name == dimension), "")

    def reaching(self, start: int, end: int) -> Self:
        """The value, whose whole contains this region."""
        first, last = self.whole or (self.start, self.end)
        return self._replace(whole=(min(first, start), max(last, end)))


def kind_of(key: Quantity) -> Kind:
    """The kind of a value with this quantity."""
    if key.kind in MONEY or key.unit[-1:] in CURRENCIES:  # a$ too
        return "money"
    return "duration" if key.kind == "time" else "share" if key.kind == "share" else "number"


_OF = word_set("of de del of, . , den er º ° o st nd rd th te")
_BEFORE_MONTHS = word_set("in of by until till since before after early late mid through during to from im en w")
_DUTCH_HOURS = ("een", "twee", "drie", "vier", "vijf", "zes", "zeven", "acht", "negen", "tien", "elf", "twaalf")
_TIME = re.compile(r"(\d{1,2})(?:([:.])([0-5]\d)(?::\d\d)?)?")
_MINUTES = re.compile(r"[0-5]\d")
HALVES = {"am": 0, "morning": 0, "pm": 720, "afternoon": 720, "evening": 720, "night": 720}


class Moments(Units):
    """Reads dates and times of day from left to right; each method gives the end of what it has read, or 0.

    Args:
        text: Any text.
        asked: The kind that is asked for: if "date", the name of a month alone is one; if "duration", "1h30" is one.
        years: Whether four digits alone are a year.
        alone: Whether the text is an answer, whose article ("a week") and hyphenated numbers count.
        dots: Whether "1.250" is a thousand and more.
    """

    def __init__(self, text: str, asked: str, years: bool, alone: bool, dots: bool) -> None:
        super().__init__(text, dots, alone)
        self.date, self.years, self.lasting = asked == "date", years, asked == "duration"
        self.found: list[Value] = []
        self.taken: list[tuple[int, int]] = []

    def _add(self, kind: Kind, at: int, end: int, key: Any, *parts: Qualifier) -> int:
        start, stop = self.pieces[at].start, self.pieces[end - 1].end
        self.found.append(Value(kind, start, stop, key, frozenset(parts)))
        return end

    def _moment(self, at: int) -> int:
        """The end of the date that begins here; 0 if there is none."""
        words = self.words
        if (numeric := _numeric_date(words[at], self.dots)) is not None:
            return self._add("date", at, at + 1, *numeric)
        if self.date and (end := self._short_date(at)):
            return end
        begun, day = at, None
        number = self.number(at)
        if number and number[0].denominator == 1 and words[number[1]] in ("年", "月") and words[at].isdecimal():
            return self._han_moment(at)
        if number and number[0].denominator == 1 and 1 <= number[0] <= 31 and "." not in words[at]:
            day, at = int(number[0]), number[1]
            while words[at] in _OF and at < number[1] + 3:
                at += 1
        month = phrases("months").at(words, at)
        if month is None:
            return self._year(begun)
        named, at = at, month[1]
        at += words[at] == "."
        if day is None and (number := self.number(at)) and 1 <= number[0] <= 31 and words[at].isalnum():
            day, at = int(number[0]), number[1]
        behind = at
        while words[behind] in (",", *_OF) and behind < at + 2:
            behind += 1
        year = int(words[behind]) if _is_year(words[behind]) else None
        alone = self.date and len(words[named]) > 2
        if year is None and day is None and not alone and (named == 0 or words[named - 1] not in _BEFORE_MONTHS):
            return 0  # a name, or the verb "may"
        if year is not None:
            _, at = phrases("of_year").at(words, behind + 1) or ("", behind + 1)
        return self._add("date", begun, at, (year, month[0], day))

    def _short_date(self, at: int) -> int:
        """A date such as 15.04. or 15/04; in English, a day and a month in either order."""
        words, mark = self.words, self.words[at + 1]
        parts = words[at].split(".") if mark == "." else [words[at], words[at + 2]] if mark == "/" else []
        if len(parts) != 2 or not (self.glued(at + 1) and all(p.isdecimal() and len(p) <= 2 for p in parts)):
            return 0
        read = _numeric_date(f"{parts[0]}{mark}{parts[1]}{mark}2000", self.dots)
        return (
            self._add("date", at, at + 1 + len(parts) - (mark == "."), (None, *read[0][1:]), *read[1:]) if read else 0
        )

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
        if follows == "s" and self.glued(number[1]):  # the 1990s, and no number of seconds
            return self._add("date", at, number[1] + 1, (int(number[0]), None, None), ("decade", "yes"))
        spans = follows == "-" and _is_year(words[number[1] + 1])
        if unit_name(follows) not in ("", "year") or (follows in "-%:" and self.glued(number[1] + 1) and not spans):
            return 0
        return self._add("date", at, number[1], (int(number[0]), None, None))

    def _weekday(self, at: int) -> int:
        """A weekday, also "every second Friday", with its pace, and the first or last one of a month."""
        words, first, parts = self.words, at, list[Qualifier]()
        if (step := phrases("every").at(words, at)) is not None:
            number = self.number(step[1])
            first = number[1] if number else step[1]
            parts = [("pace", str(number[0] if number else step[0]))]
        found = phrases("weekdays").at(words, first)
        nth = phrases("nth").at(words, at) or phrases("ordinals").at(words, at) if found is None else None
        if nth is not None:
            found, parts = phrases("weekdays").at(words, nth[1]), [("nth", str(nth[0]))]
        return 0 if found is None else self._add("weekday", at, found[1], (found[0],), *parts)

    def _clock(self, at: int) -> int:
        """The end of the time of day that begins here; 0 if there is none."""
        words, quarters = self.words, phrases("quarters")
        if (named := phrases("hours").at(words, at)) is not None:
            return self._add("clock", at, named[1], (60 * named[0],))
        if words[at] == "half" and words[at + 1] in _DUTCH_HOURS:
            return self._time(at, at + 2, 60 * _DUTCH_HOURS.index(words[at + 1]) + 30, exact=False)
        if (early := quarters.at(words, at)) is not None and (hour := self._hour(early[1], ordinal=True)) is not None:
            end = early[1] + 1 + (phrases("clock").get(words[early[1] + 1]) is not None)
            return self._time(at, end, 60 * hour + early[0], exact=False)
        time = _TIME.fullmatch(words[at])
        asked, mark = phrases("clock", "at").before(words, at), phrases("clock").at(words, at + 1)
        given = int(time[1]) if time else self._hour(at, ordinal=asked)
        if given is None or given > 24:
            return 0
        minutes, sign, end = 60 * given + int(time[3] or 0 if time else 0), time[2] if time else None, at + 1
        marked = "" if mark is None or mark[0] == "at" else str(mark[0])
        if self.lasting and marked == "hours" and not asked:
            long = unit_name(words[end]) == "hour" and sign == ":"
            return self._add("duration", at, end + 1, to_count(Fraction(minutes, 60), "hour")) if long else 0
        if mark is not None and marked:
            end = mark[1]
            unit = "" if words[end + 1] == "分" else unit_name(words[end + 1])
            if not sign and not unit and _MINUTES.fullmatch(words[end]):
                minutes, sign, end = minutes + int(words[end]), ":", end + 1 + (words[end + 1] == "分")
        late = quarters.at(words, end) if not sign and (marked != "hours" or given > 3 or asked) else None
        if late is not None:
            return self._time(at, late[1], minutes + late[0], exact=False)
        half = phrases("dayparts").at(words, end)
        sure = sign == ":" or (sign and self.date and minutes % 60 > 12)  # 7.30 is no day of a month
        whole = self.date and self.alone and at == 0 and end >= self.size  # "14h" answers "when?"
        if not (sure or half or marked == "always" or (marked and whole) or (asked and (marked or sign))):
            counted = words[end].isalpha() or unit_name(words[end]) or words[end] in (*CURRENCIES, "-", "/", "°")
            alone = words[end] in ("", ".", ",") or words[at - 1] not in ("at", "le", "o", "um")
            if not (asked and words[at].isdecimal() and alone and not counted):
                return 0
        return self._time(at, end, minutes, exact=given > 12 or words[at][0] == "0" or words[at + 1] == "uhr")

    def _hour(self, at: int, *, ordinal: bool = False) -> int | None:
        """The hour that one piece gives in digits or words, also as "the eighth"."""
        word = self.words[at]
        if ordinal and (named := phrases("ordinals").get(word)) is not None:
            return int(named)
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
    return ((third, first, second), *([("order", "open")] if second <= 12 and first != second else []))
