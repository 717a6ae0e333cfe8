"""Typed values: durations, dates, times, sums of money, measures, account and phone numbers, in twelve languages.

A value has everything that belongs to it: unit, bound ("at least"), rate ("a day"), zone, direction, kind of day. Two
values of one kind are equal if all of that agrees, compatible if only one of them has a part, and rivals if a part
differs. The pieces of a text are read once from left to right, and a value takes all of its pieces, so that no part of
a date or a composed number is mistaken for another number. Rules only, linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from unpoison.text.amounts import Amounts
from unpoison.text.languages import other_language
from unpoison.text.lexicon import phrases
from unpoison.text.moments import Qualifier, Value
from unpoison.text.questions import Kind
from unpoison.text.units import JOINING, Quantity, to_count

__all__ = ["MAX_CHARS", "read_values", "values"]

MAX_CHARS = 20_000
"""Maximum characters of a text that are searched."""

NEAR_BY = {"direction": 12, "bound": 6, "rate": 6}
"""Maximum characters between a value and what qualifies it; 4 for other dimensions."""


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


class _Reader(Amounts):
    """Reads all kinds of values from left to right."""

    def __init__(self, text: str, date: bool, years: bool, alone: bool, dots: bool) -> None:
        super().__init__(text, date, years, alone, dots)
        self.text = text
        self.parts: list[tuple[Qualifier, int, int]] = []

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
