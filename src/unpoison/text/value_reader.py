"""Typed values: durations, dates, times, sums of money, measures, account and phone numbers, in twelve languages.

A value has everything that belongs to it: unit, bound ("at least"), rate ("a day"), zone, direction, kind of day. Two
values of one kind are equal if all of that agrees, compatible if only one of them has a part, and rivals if a part
differs. The pieces of a text are read once from left to right, and a value takes all of its pieces, so that no part of
a date or a composed number is mistaken for another number. Rules only, linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Set
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from unpoison.text.languages import HAN, has_decimal_comma, phrases, table, word_value
from unpoison.text.moments import Moments, Value, kind_of
from unpoison.text.questions import Kind
from unpoison.text.tokens import word_set
from unpoison.text.units import JOINING, MEASURES, NO_UNITS, Qualifier, Quantity, period_of, single, to_count

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
    text: str, *, asked: str = "", years: bool = False, alone: bool = False, dots: bool = False
) -> ReadValues:
    """Read a text.

    Args:
        text: Any text.
        asked: The kind that is asked for: if "date", the name of a month alone is one; if "duration", "1h30" is one.
        years: Whether four digits alone are a year.
        alone: Whether the text is an answer, whose article ("a week") and hyphenated numbers count.
        dots: Whether "1.250" is a thousand and more, as in most languages other than English.
    """
    return _Reader(text, asked, years, alone, dots or has_decimal_comma(text)).read()


_SHAPES: dict[Kind, re.Pattern[str]] = {kind: re.compile(shape) for kind, shape in table("shapes").items()}
_DATES = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}([./])\d{1,2}\1\d{4}")

_AMOUNTS = ("money", "share", "number")
_OF_AMOUNTS = {"until": "most", "since": "least"}
"""Bounds of time that also bound amounts: from 5 euros, until version 2."""
_LEADING = ("by", "until", "since")
"""Bounds whose words stand before a value, but in Turkish, Chinese and Japanese: "opened on 4 May by the mayor"."""
_DOUBTFUL = re.compile(r"[1-9]\d{0,2},\d{3}")
"""In languages with a decimal comma, this may be a number of thousands as in English."""

NEAR_BY = {"direction": 20, "bound": 6, "rate": 6, "term": 8}
"""Maximum characters between a value and what qualifies it; 4 for other dimensions."""

_PER = phrases("per").single_words()
_ARTICLES = word_set("a an un una el le the 了")
_BEFORE_ARTICLE = word_set("within after for about only until in than")


class _Reader(Moments):
    """Reads all kinds of values from left to right."""

    def __init__(self, text: str, asked: str, years: bool, alone: bool, dots: bool) -> None:
        super().__init__(text, asked, years, alone, dots)
        self.text, self.at = text, {piece.start: i for i, piece in enumerate(self.pieces)}
        self.parts: list[tuple[Qualifier, int, int]] = []
        self.covered = set[int]()  # pieces of what qualifies values

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
        turns = [turn[1:] for turn in self.parts if turn[0][0] == "direction"]
        turned, turning = {last - 1 for _, last in turns}, {self.pieces[first].start for first, _ in turns}
        self.covered -= turned
        self.found = [self._changed(value, turned, turning) for value in self.found]
        for n, (left, right) in enumerate(pairwise(self.found)):
            between = self.text[left.end : right.start].strip()
            if right.unit == "time" and isinstance(left.key, Quantity) and (between.isalpha() or not between):
                self.found[n] = left.reaching(*(right.whole or (right.start, right.end)))  # 20 drops twice a day
        taken = [*((value.start, value.end) for value in self.found), *self.taken]
        return ReadValues(tuple(self.found), loose, tuple(sorted(taken)))

    def _shapes(self) -> dict[int, int]:
        ends = dict[int, int]()
        for kind, pattern in _SHAPES.items():
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
        sign, at = self.sign(at)
        money, at = self.currency(at)
        if not money and (end := self._fraction(begun, at)):
            return end
        ordinal = not self.alone and phrases("ordinals").at(words, at) is not None
        number = None if ordinal else self.number(at) or (None if money else self._article(at))
        if number is None or (words[begun] == "one" and begun and words[begun - 1] == "no"):
            return self._times(begun)
        value, end = number
        if (period := self.unit_of_rate(end)) and (again := phrases("once_in").at(words, end + 1)):  # üç ayda bir
            rate = ("rate", period_of(value, period))
            return self._add("number", begun, again[1], to_count(Fraction(again[0]), "time"), rate)
        named = begun > 1 and words[begun - 1] == "-" and self.glued(begun) and words[begun - 2].isalpha()  # SI-8
        if not self.alone and ((named and sign == 1) or (begun and words[begun - 1] == "§")):
            return end
        if words[end : end + 2] == ["out", "of"] and (whole := self.number(end + 2)) and whole[0]:
            return self._add("share", begun, whole[1], to_count(value / whole[0] * 100, "%"))
        if phrases("over").get(words[end]) and value and (top := self.number(end + 1)):
            return self._add("share", begun, top[1], to_count(top[0] / value * 100, "%"))
        value, end = self.scaled(value, end, bool(money))
        unit, behind, parts = (money, end, []) if money else self.unit(end)
        if unit in MEASURES and (half := self.and_a_half(behind)):
            value, behind = value + Fraction(1, 2), half
        value, behind = self.longer(value, unit, behind)
        key = to_count(sign * value, unit)
        spoken = words[begun - 1] if begun else ""
        if spoken.isalpha() and spoken not in NO_UNITS and unit not in MEASURES and "." in words[at] and not self.dots:
            key = key._replace(written=words[at])  # Python 3.1 is not Python 3.10
        elif self.dots and _DOUBTFUL.fullmatch(words[at]):
            key = key._replace(written=words[at])
        kind: Kind = kind_of(key)
        if unit.startswith("degree"):
            self.taken.append((self.pieces[end].start, self.pieces[behind - 1].end))
        if kind == "number" and not key.kind and unit != "time":
            behind = end  # a noun stays among the words
        self._add(kind, begun, max(behind, end), key, *parts)
        return self._rate(max(behind, end), bool(unit) and behind == end)

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
        skip = end + (words[end] in ("a", "an", "of", "d'") and self.named_unit(end + 1) != "")
        if unit := self.named_unit(skip):
            key = to_count(value, unit)
            return self._rate(self._add(kind_of(key), begun, skip + 1, key), noun=False)
        if (value.denominator == 2 and value > 1) or (found[0] == "1/2" and top == 1 and not self.alone):
            return 0
        return self._add("share", begun, end, to_count(100 * value, "%"))

    def _article(self, at: int) -> tuple[Fraction, int] | None:
        """An article that means one before a unit, or a number word that is also another word."""
        words = self.words
        found = phrases("homographs").at(words, at)
        if found is None or not self.named_unit(found[1]):
            return None
        if words[at] in ("a", "an") and not ((self.alone and at == 0) or words[at - 1] in _BEFORE_ARTICLE):
            return None  # "a year" is also a rate
        return Fraction(found[0]), found[1]

    def _times(self, at: int) -> int:
        """How often: "twice a week"; "once" only before a rate."""
        found = phrases("times").at(self.words, at)
        if found is None:
            return 0
        rated = self.per(found[1], once=True) is not None
        if found[0] == 1 and not rated and not (self.alone and self.size <= 2):
            return 0
        self._add("number", at, found[1], to_count(Fraction(found[0]), "time"))
        return self._rate(found[1], noun=False)

    def _rate(self, end: int, noun: bool) -> int:
        """The end of a rate behind a value, such as "a day" or "per user", which becomes a part of it."""
        words = self.words
        for start in range(end, end + 1 + noun + (words[end] == "/")):
            found = self.per(start, once=self.found[-1].unit == "time")
            if found is None or (start > end and not words[end].isalpha()):
                continue
            self.found[-1] = self._qualify(self.found[-1], ("rate", found[0]), start, found[1])
            return end if start > end else found[1]
        return end

    def _qualify(self, value: Value, part: Qualifier, first: int, last: int) -> Value:
        """A value with a part, which these pieces name."""
        region = self.pieces[first].start, self.pieces[last - 1].end
        self.taken.append(region)
        self.covered.update(range(first, last))
        return value.reaching(*region)._replace(parts=value.parts | {part})

    def _part(self, at: int) -> int:
        """A phrase that qualifies a value."""
        words = self.words
        found = phrases("parts").at(words, at)
        if found is None and (rate := self.per(at)) is not None and words[at] not in _PER:
            found = ("rate", rate[0]), rate[1]
            counted = any(word[:1].isdecimal() or word_value(word) for word in words[at + 1 : rate[1]])
            counted = counted or (self.alone and self.size == rate[1] - at)  # "weekly" is once a week
            if counted and at not in self.covered:
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
        for n in range(len(self.found) - 1):
            left, right = self.found[n : n + 2]
            first, after = self.at.get(left.start, 0), self.at.get(right.start, 0)
            opened = first > 0 and starts.get(self.words[first - 1]) is not None
            like = left.kind == right.kind or (isinstance(left.key, Quantity) and isinstance(right.key, Quantity))
            joint = self.pieces[after - 1]
            if not like or left.part("range") or after < 2 or self.pieces[after - 2].end > left.end:
                continue
            if joint.start < left.end or (joins.get(joint.text) is None and not (joint.text in JOINING and opened)):
                continue
            if isinstance(left.key, Quantity) and isinstance(right.key, Quantity) and not left.key.unit:
                left = left._replace(key=to_count(left.key.value, right.key.unit), kind=right.kind)
            left = left.reaching(right.start, right.end)
            self.found[n] = self._qualify(left, ("range", "from"), first - opened, after)
            self.found[n + 1] = self._qualify(right, ("range", "to"), first - opened, after)
            self.parts = [p for p in self.parts if p[1] not in (after - 1, first - 1)]

    def _attach(self) -> frozenset[Qualifier]:
        """Give each part to the nearest value; return those that belong to none."""
        near_by = NEAR_BY | ({"bound": 12} if self.alone else {})  # in an answer, a word may stand between
        starts, ends = [value.start for value in self.found], [value.end for value in self.found]
        loose, counts = set(), [n for n, value in enumerate(self.found) if isinstance(value.key, Quantity)]
        for part, first, last in self.parts:
            start, end = self.pieces[first].start, self.pieces[last - 1].end
            follows = HAN.search(self.words[first]) or self.words[first] in ("kadar", "itibaren")
            reach = near_by.get(part[0], 4)
            near = range(bisect_left(ends, start - reach), bisect_right(starts, end + reach))
            gaps = [
                (max(value.start - end, start - value.end, 0), n)
                for n, value in zip(near, self.found[near.start : near.stop])
                if _fits(part, value, start) and (start < value.start or part[1] not in _LEADING or follows)
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
                self.found[n] = self._qualify(value, own, first, last)
        return frozenset(loose)

    def _changed(self, value: Value, turned: Set[int], turning: Set[int]) -> Value:
        """A value with "by" or "to" as a part, if something rose or fell, or if the answer begins so.

        Args:
            value: Any value.
            turned: The last pieces of what says that something rose or fell.
            turning: Where these phrases begin.
        """
        at, direction = self.at.get(value.start, 0), value.part("direction")
        if not isinstance(value.key, Quantity) or value.part("range") or not (direction or self.alone):
            return value
        begun = at - 1
        while begun > 0 and not self._how(begun) and (self.words[begun] in _ARTICLES or begun in self.covered):
            begun -= 1
        how, limits = self._how(begun), phrases("parts").at(self.words, begun)
        if direction:
            how = how or ("by" if begun in turned or not turning.isdisjoint((value.end, value.end + 1)) else "")
        elif begun or (limits and limits[0] != ("bound", "by")) or value.kind not in ("money", "share"):
            return value
        if how and how != "by" and limits:  # "hasta": no limit of a price that has risen
            value = value._replace(parts=value.parts - {("bound", "most")})
        return self._qualify(value, ("change", how), max(begun, 0), at + 1) if how else value

    def _how(self, at: int) -> str:
        """Whether the piece before an amount says by how much or to what it changed, and is no longer phrase."""
        part = phrases("parts").at(self.words, at)
        longer = part is not None and not _ARTICLES.issuperset(self.words[at + 1 : part[1]])
        return "" if longer else phrases("changes").get(self.words[at]) or ""


def _fits(part: Qualifier, value: Value, start: int) -> bool:
    """Whether a part can belong to a value of its kind."""
    dimension = part[0]
    if value.kind in ("iban", "phone", "code"):
        return False
    if dimension in ("era", "season", "phase"):
        return value.kind in ("date", "number") or value.unit == "century"
    if dimension == "days":
        return value.unit == "day"
    if part[1] in ("before", "until", "by", "after", "since"):
        return value.kind not in _AMOUNTS or (part[1] in _OF_AMOUNTS and start < value.start)
    if dimension in ("heading", "side"):
        return value.kind == "number" and bool(value.unit) and 0 <= start - value.end <= 2
    if isinstance(value.key, Quantity):
        return dimension != "tax" or value.kind == "money" or not value.key.kind
    return dimension not in ("direction", "near", "rate", "tax")
