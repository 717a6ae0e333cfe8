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
from typing import NamedTuple

from unpoison.text.languages import has_decimal_comma, phrases
from unpoison.text.moments import Moments, Qualifier, Value
from unpoison.text.questions import Kind
from unpoison.text.tokens import word_list, word_set
from unpoison.text.units import CURRENCIES, JOINING, MEASURES, Quantity, single, to_count, unit_name, word_value

__all__ = ["MAX_CHARS", "read_values", "values"]

MAX_CHARS = 20_000
"""Maximum characters of a text that are searched."""


def values(text: str) -> tuple[Value, ...]:
    """The values of a text, in order and without overlap. The last 4,096 results are cached."""
    return read_values(text[:MAX_CHARS]).values


class ReadValues(NamedTuple):
    """The values of a text in order, the parts that belong to none, and the regions that values and parts take."""

    values: tuple[Value, ...]
    loose: frozenset[Qualifier]
    taken: tuple[tuple[int, int], ...]


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
    return _Reader(text, date, years, alone, dots or has_decimal_comma(text)).read()


_SHAPES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("iban", re.compile(r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b")),
    ("phone", re.compile(r"(?<![\w.,:])(?:\+\d{1,3}|\(?0\d{1,5}\)?)[\s/()-]{0,3}\d[\d\s/()-]{4,16}\d\b(?![.:]\d)")),
    ("code", re.compile(r"\b(?=[A-Z0-9-]{0,30}\d{3})(?=[A-Z0-9-]{0,30}[A-Z])[A-Z0-9][A-Z0-9-]{4,30}[A-Z0-9]\b")),
)
_DATES = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}([./])\d{1,2}\1\d{4}")

_AMOUNTS = ("money", "share", "number")
_OF_AMOUNTS = {"until": "most", "since": "least"}
"""Bounds of time that also bound amounts: from 5 euros, until version 2."""
_DOUBTFUL = re.compile(r"[1-9]\d{0,2},\d{3}")
"""In languages with a decimal comma, this may be a number of thousands as in English."""

NEAR_BY = {"direction": 12, "bound": 6, "rate": 6, "term": 8}
"""Maximum characters between a value and what qualifies it; 4 for other dimensions."""

_UNNAMED = word_list("no_units")
"""Words after a number that are not units."""
_SHORT_SCALES = {"k": 10**3, "mn": 10**6, "bn": 10**9, "tn": 10**12}
_MONEY_SCALES = _SHORT_SCALES | {"m": 10**6, "b": 10**9, "mm": 10**6}
_COUNTRIES = word_set("us a au c ca hk nz r s canadian australian singapore")
_DEGREES = word_set("degree degrees ° grad degres grados gradi graden")
_DAYS = ("tag", "tage", "tagen", "dag", "dagen", "工作日", "営業日")
_MONEY = frozenset(CURRENCIES.values())
_TIMES = frozenset(name for name, (kind, *_) in MEASURES.items() if kind == "time")
_SMALLER = {"year": "month", "week": "day", "day": "hour", "hour": "minute", "minute": "second"}
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_RAISED = {"²": 2, "³": 3, "2": 2, "3": 3}
_ADJECTIVES = word_set("working business calendar full whole volle lange long bank")
_PER = phrases("per").single_words()
_BEFORE_ARTICLE = word_set("within after for about only until in than")


class _Reader(Moments):
    """Reads all kinds of values from left to right."""

    def __init__(self, text: str, date: bool, years: bool, alone: bool, dots: bool) -> None:
        super().__init__(text, date, years, alone, dots)
        self.text = text
        self.parts: list[tuple[Qualifier, int, int]] = []

    def read(self) -> ReadValues:
        shaped, at = self._shapes(), 0
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
        ends = dict[int, int]()
        for kind, pattern in _SHAPES:
            for match in pattern.finditer(self.text):
                start, end = match.span()
                if _DATES.match(match[0]) or any(s < end and start < e for s, e in ends.items()):
                    continue
                key = re.sub(r"\(0\)|[\s/()-]", "", match[0])
                key = "+" + key[2:] if kind == "phone" and key.startswith("00") else key
                if key.isascii():
                    ends |= {piece.start: end for piece in self.pieces if start <= piece.start < end}
                    self.found.append(Value(kind, start, end, key))
        return ends

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
        if (period := self._unit_of_rate(end)) and (again := phrases("once_in").at(words, end + 1)):  # üç ayda bir
            rate = ("rate", _period(value, period))
            return self._add("number", begun, again[1], to_count(Fraction(again[0]), "time"), rate)
        named = begun > 1 and words[begun - 1] == "-" and self.glued(begun) and words[begun - 2].isalpha()  # SI-8
        if not self.alone and ((named and sign == 1) or (begun and words[begun - 1] == "§")):
            return end
        if words[end : end + 2] == ["out", "of"] and (whole := self.number(end + 2)) and whole[0]:
            return self._add("share", begun, whole[1], to_count(value / whole[0] * 100, "%"))
        if phrases("over").get(words[end]) and value and (top := self.number(end + 1)):
            return self._add("share", begun, top[1], to_count(top[0] / value * 100, "%"))
        value, end = self._scaled(value, end, bool(money))
        unit, behind, parts = (money, end, []) if money else self._unit(end)
        if unit in MEASURES and (half := self._and_a_half(behind)):
            value, behind = value + Fraction(1, 2), half
        value, behind = self._longer(value, unit, behind)
        key = to_count(sign * value, unit)
        spoken = words[begun - 1] if begun else ""
        if spoken.isalpha() and spoken not in _UNNAMED and not unit and "." in words[at] and not self.dots:
            key = key._replace(written=words[at])  # Python 3.1 is not Python 3.10
        elif self.dots and _DOUBTFUL.fullmatch(words[at]):
            key = key._replace(written=words[at])
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

    def _currency(self, at: int) -> tuple[str, int]:
        """The currency or percent sign before a number, "" if there is none, and its end."""
        words = self.words
        if words[at] in _COUNTRIES and words[at + 1] == "$":
            return ("$" if words[at] == "us" else f"{words[at][:1]}$"), at + 2
        named = phrases("units").get(words[at]) if words[at] else None
        if words[at] in CURRENCIES or named in CURRENCIES:
            number = words[at + 1][:1].isdecimal()
            return (named if named in CURRENCIES else words[at], at + 1) if number else ("", at)
        return ("%", at + 1) if named == "%" and at + 1 < self.size and self.number(at + 1) else ("", at)

    def _fraction(self, begun: int, at: int) -> int:
        """Half an hour, a quarter, two thirds."""
        words = self.words
        found = phrases("fractions").at(words, at)
        top = Fraction(1)
        early = phrases("quarters").at(words, at + 1)  # um halb acht
        if self._part_of_scale(at) or (early is not None and self._hour(early[1]) is not None):
            return 0
        if found is None:
            first = (1,) if phrases("homographs").get(words[at]) == 1 else word_value(words[at])
            part = phrases("fractions").at(words, at + 1) or phrases("fractions").at([single(words[at + 1])], 0)
            if part is None or len(first) != 1:
                return 0
            top, found = Fraction(first[0]), (part[0], max(part[1], at + 2))
        elif found[0] not in ("1/2", "3/2"):
            return 0  # "third", "quarter" alone
        value, end = top * Fraction(found[0]), found[1]
        end += words[end] in ("-", "'")
        skip = end + (words[end] in ("a", "an", "of", "d'") and self._named_unit(end + 1) != "")
        if unit := self._named_unit(skip):
            key = to_count(value, unit)
            return self._rate(self._add(_kind(key), begun, skip + 1, key), noun=False)
        if (value.denominator == 2 and value > 1) or (found[0] == "1/2" and top == 1 and not self.alone):
            return 0
        return self._add("share", begun, end, to_count(100 * value, "%"))

    def _article(self, at: int) -> tuple[Fraction, int] | None:
        """An article that means one before a unit, or a number word that is also another word."""
        words = self.words
        found = phrases("homographs").at(words, at)
        if found is None:
            return None
        if not self._named_unit(found[1]):
            return None
        if words[at] in ("a", "an") and not ((self.alone and at == 0) or words[at - 1] in _BEFORE_ARTICLE):
            return None  # "a year" is also a rate
        return Fraction(found[0]), found[1]

    def _named_unit(self, at: int) -> str:
        """The unit of time, money or measure that begins here; of the measures, not one of one or two letters."""
        unit = unit_name(self.words[at])
        return unit if unit in _TIMES or unit in CURRENCIES or (unit in MEASURES and len(self.words[at]) > 2) else ""

    def _unit_of_rate(self, at: int) -> str:
        """The unit of time that begins here, also in the form that it has in a rate."""
        return next((n for n in (phrases("rates").get(self.words[at]), unit_name(self.words[at])) if n in _TIMES), "")

    def _times(self, at: int) -> int:
        """How often: "twice a week"; "once" only before a rate."""
        found = phrases("times").at(self.words, at)
        if found is None:
            return 0
        rated = self._per(found[1], once=True) is not None
        if found[0] == 1 and not rated and not (self.alone and self.size <= 2):
            return 0
        self._add("number", at, found[1], to_count(Fraction(found[0]), "time"))
        return self._rate(found[1], noun=False)

    def _scaled(self, value: Fraction, end: int, money: bool) -> tuple[Fraction, int]:
        """A number with what follows it: 12.2 bn, two and a half, 5/8, 3 1/2."""
        words, scales = self.words, _MONEY_SCALES if money else _SHORT_SCALES
        if words[end] in scales and (money or self.glued(end)):
            value, end = value * scales[words[end]], end + 1
        if words[end] == "/" and (bottom := self.number(end + 1)) and self.glued(end) and bottom[0]:
            return value / bottom[0], bottom[1]
        if words[end + 1] == "/" and words[end] in ("1", "2", "3") and words[end + 2] in ("2", "3", "4"):
            return value + Fraction(int(words[end]), int(words[end + 2])), end + 3
        return value, end

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
        name = unit_name(words[at].rstrip("²³"))
        if words[at] == "in" and words[at + 1]:
            return "", begun, []  # the preposition
        return self._compound_unit(name, at, power, parts) if name else (self._noun(at), begun, [])

    def _compound_unit(
        self, name: str, at: int, power: int, parts: list[Qualifier]
    ) -> tuple[str, int, list[Qualifier]]:
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
        per = self._per(at + 1) if kind not in ("", "time", "share", "points", *_MONEY) else None
        if per is not None and per[0] in MEASURES and (kind in ("length", "data") or per[0] not in _TIMES):
            return f"{name}/{per[0]}", per[1], parts
        return name, at + 1, parts

    def _noun(self, at: int) -> str:
        """The noun after a number, which is its unit; "" if it is another word."""
        word = self.words[at]
        tables = ("parts", "weekdays", "rates")
        known = word in _UNNAMED or word in _SHORT_SCALES or any(phrases(name).at(self.words, at) for name in tables)
        return single(word) if word.isalpha() and not known else ""

    def _and_a_half(self, at: int) -> int:
        """The end of "and a half", "et demie", "y media" after a unit; 0 if it is not there."""
        joined = self.words[at] in JOINING
        at += joined + (self.words[at + 1] in ("a", "eine"))
        found = phrases("fractions").at(self.words, at) if joined else None
        return found[1] if found is not None and found[0] == "1/2" else 0

    def _longer(self, value: Fraction, unit: str, end: int) -> tuple[Fraction, int]:
        """A duration with the smaller units that follow: 1 h 30 min; in an answer, a price with hundredths."""
        priced = unit in CURRENCIES and self.alone
        number = self.number(end + (self.words[end] in JOINING)) if unit in _SMALLER or priced else None
        smaller = self._unit(number[1]) if number else ("", 0, [])
        if number and priced and number[1] >= self.size and 10 <= number[0] < 100:
            return value + number[0] / 100, number[1]
        if number is None or smaller[0] != _SMALLER[unit]:
            return value, end
        return value + number[0] * MEASURES[smaller[0]][1] / MEASURES[unit][1], smaller[1]

    def _rate(self, end: int, noun: bool) -> int:
        """The end of a rate behind a value, such as "a day" or "per user", which becomes a part of it."""
        words = self.words
        for start in range(end, end + 1 + noun + (words[end] == "/")):
            found = self._per(start, once=self.found[-1].unit == "time")
            if found is None or (start > end and not words[end].isalpha()):
                continue
            self.found[-1] = self.found[-1]._replace(parts=self.found[-1].parts | {("rate", found[0])})
            self.taken.append((self.pieces[start].start, self.pieces[found[1] - 1].end))
            return end if start > end else found[1]
        return end

    def _per(self, at: int, *, once: bool = False) -> tuple[str, int] | None:
        """What a rate is for, and its end: "a day", "per 100 ml", "every two weeks", "once in two weeks"."""
        words = self.words
        step = phrases("every").at(words, at)
        opened = step or phrases("per").at(words, at) or (phrases("in").at(words, at) if once else None)
        if opened is not None:
            number = self.number(opened[1]) or phrases("fractions").at(words, opened[1])
            count, end = number or (Fraction(step[0] if step else 1), opened[1])
            unit = unit_name(words[end]) if not number or words[opened[1]] not in _UNNAMED else ""
            if unit in MEASURES and (unit in _TIMES or not step):
                return _period(Fraction(count), unit), end + 1
            plain = not (number or step or once) and words[end].isalpha() and words[end] not in _UNNAMED
            if plain and not unit:
                return single(words[end]), end + 1
        return phrases("rates").at(words, at)

    def _part(self, at: int) -> int:
        """A phrase that qualifies a value."""
        words = self.words
        found = phrases("parts").at(words, at)
        if found is None and (rate := self._per(at)) is not None and words[at] not in _PER:
            found = ("rate", rate[0]), rate[1]
            counted = any(word[:1].isdecimal() or word_value(word) for word in words[at + 1 : rate[1]])
            again = any(start == self.pieces[at].start for start, _ in self.taken)
            if not again and (counted or (self.alone and self.size == rate[1] - at)):  # "weekly" is once a week
                return self._add("number", at, rate[1], to_count(Fraction(1), "time"), found[0])
        if found is None:
            return 0
        if words[at] in ("less", "more", "fewer", "over") and words[at - 1] in ("or", "and") and at:
            return 0
        self.parts.append((found[0], at, found[1]))
        return found[1]

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
        near_by = NEAR_BY | ({"bound": 12} if self.alone else {})  # in an answer, a word may stand between
        loose, counts = set(), [n for n, value in enumerate(self.found) if isinstance(value.key, Quantity)]
        for part, first, last in self.parts:
            start, end = self.pieces[first].start, self.pieces[last - 1].end
            gaps = [
                (max(value.start - end, start - value.end, 0), n)
                for n, value in enumerate(self.found)
                if max(value.start - end, start - value.end) <= near_by.get(part[0], 4) and _fits(part, value, start)
            ]
            if not gaps and part[1] in ("least", "most") and self.alone and len(counts) == 1:
                gaps = [(0, counts[0])]  # maximum wind without tugs: 18 m/s
            if not gaps:
                loose.add(part)
                continue
            _, n = min(gaps)
            value = self.found[n]
            if not value.part(part[0]):
                named = _OF_AMOUNTS if value.kind in _AMOUNTS else {"by": "until"}
                own = (part[0], named.get(part[1], part[1]))
                self.found[n] = value._replace(parts=value.parts | {own})
                self.taken.append((start, end))
        return frozenset(loose)


def _period(count: Fraction, unit: str) -> str:
    """A unit of time with how many of it, or another name of the same period: 12 months are a year."""
    amount, system = (count * MEASURES[unit][1], MEASURES[unit][2]) if unit in _TIMES else (None, "")
    same = (name for name in ("year", "week", "day", "hour") if MEASURES[name][1:] == (amount, system))
    return unit if count == 1 else next(same, f"{count} {unit}")


def _kind(key: Quantity) -> Kind:
    if key.kind in _MONEY or key.unit[-1:] in CURRENCIES:  # a$ too
        return "money"
    return "duration" if key.kind == "time" else "share" if key.kind == "share" else "number"


def _fits(part: Qualifier, value: Value, start: int) -> bool:
    """Whether a part can belong to a value of its kind."""
    dimension = part[0]
    if value.kind in ("iban", "phone", "code"):
        return False
    if dimension in ("era", "season", "phase"):
        return value.kind in ("date", "number")
    if dimension == "days":
        return value.unit == "day"
    if part[1] in ("before", "until", "by", "after", "since"):
        return value.kind not in _AMOUNTS or (part[1] in _OF_AMOUNTS and start < value.start)
    if dimension in ("heading", "side"):
        return value.kind == "number" and bool(value.unit) and 0 <= start - value.end <= 2
    if isinstance(value.key, Quantity):
        return dimension != "tax" or value.key.kind in ("", *_MONEY)
    return dimension not in ("direction", "near", "rate", "tax")
