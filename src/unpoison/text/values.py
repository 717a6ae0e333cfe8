"""Compares typed values, and finds the value that answers a question.

A question asks for a kind of value ("how long", "Wann", "IBAN"), and a text contains values of some kinds
(`text.value_reader`). Only values of one kind can contradict each other. Two values are equal if everything about them
agrees, compatible if only one of them has a part, and rivals if a part differs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from unpoison.text.alignment import Region
from unpoison.text.languages import FUNCTION_WORDS, has_decimal_comma, other_language, table
from unpoison.text.moments import HALVES, Value
from unpoison.text.questions import MAX_QUESTION_CHARS, Kind, Wanted
from unpoison.text.sentences import STOP_WORDS, sentences, stem
from unpoison.text.tokens import READ_WORD
from unpoison.text.units import MEASURES, PHYSICAL, Qualifier, Quantity, near, rounds, to_count
from unpoison.text.value_reader import MAX_CHARS, read_values, values

__all__ = [
    "Verdict", "agree", "answers_kind", "compare_all", "find_value", "fits", "measures", "one_of_each",
    "question_coverage", "several", "values", "without_limit", "without_values",
]  # fmt: skip

Verdict: TypeAlias = Literal["equal", "compatible", "open", "risky", "rival"]
"""`open`: both can be right ("more than 5" and "7"); `risky`: probably rivals."""

FITTING: dict[str, frozenset[str]] = {kind: frozenset(row.split()) for kind, row in table("fitting").items()}
"""The kinds that answer a question for a kind; by default only the kind itself."""

_ALSO_FOUND = {**FITTING, "date": frozenset(("clock", "weekday", "duration")), "money": frozenset[str]()}
"""Of these, the kinds to search for in a passage without a value of the kind itself."""

_DIGITS = re.compile(r"\d{2,}")
"""A number that can be a code."""

_NAMES: dict[str, re.Pattern[str]] = {kind: re.compile(shape) for kind, shape in table("names").items()}
"""Names of people and streets, for questions in a language other than English."""


def answers_kind(answer: str, kind: Kind) -> bool | None:
    """Whether an answer contains a value of a kind; None if its words leave that open ("for ever", "free")."""
    if not kind or kind in _NAMES:
        return None
    often = (one for one in read_values(answer[:MAX_CHARS], alone=True).values if one.unit == "time")  # "fortnightly"
    said = {found for found, *_ in _candidates(answer[:MAX_CHARS], kind)} | {value.kind for value in often}
    found = said - {"weekday", "daypart"}  # "every Tuesday": by its hour
    if kind in found or (found and found <= FITTING.get(kind, frozenset((kind,)))):
        return True
    return False if found or kind in ("iban", "phone", "code") else None


def measures(unit: str, asked: Wanted) -> bool:
    """Whether a unit is asked for, measures what is asked for, or any will do."""
    return asked.unit in ("", unit, MEASURES[unit][0] if unit in MEASURES else unit)


def fits(answer: str, asked: Wanted) -> bool | None:
    """As `answers_kind`, and whether one of its values measures what is asked for, if any has a unit."""
    units = [value.unit for value in values(answer) if value.unit]
    other = asked.kind == "number" and units and not any(measures(unit, asked) for unit in units)
    return False if other else answers_kind(answer, asked.kind)


def agree(left: str, right: str, kind: Kind, question: str = "") -> Verdict | None:
    """How the values of a kind of two answers are related, or the one value of an answer to the nearest of several.

    None if one has no such value, or both have several. Values in the question do not count.
    """
    both = (_fitting(left, kind, question), _fitting(right, kind, question))
    few, many = sorted(both, key=lambda found: (not one_of_each(found), len(found)))
    if not kind or not one_of_each(few):
        return None
    nearest = [
        max((_compare_pieces(value, other) for other in _alike(value, many)), key=RANK.__getitem__)
        for value in few
        if any(_group(other) == _group(value) for other in many)
    ]
    return min(nearest, key=RANK.__getitem__, default=None)


def several(answer: str, kind: Kind, question: str = "") -> bool:
    """Whether an answer contains more than one value of a kind, without those in the question."""
    return len(_fitting(answer, kind, question)) > 1


def _fitting(answer: str, kind: Kind, question: str) -> list[Value]:
    """The values of a kind; if there are none, values of fitting kinds. A noun after a number is no unit here."""
    named = {question[value.start : value.end] for value in values(question)}
    local = has_decimal_comma(question)
    read = read_values(answer[:MAX_CHARS], asked=kind, years=kind == "date", dots=local).values
    found = [value for value in without_limit(read, question) if answer[value.start : value.end] not in named]
    exact = [value for value in found if value.kind == kind and kind != "number"]
    return exact or [value for value in found if value.kind in FITTING.get(kind, ())]


def without_limit(found: Sequence[Value], question: str) -> tuple[Value, ...]:
    """Values without the bound that a question asks for: its answers "4" and "up to 12" are two limits."""
    asked = read_values(question[:MAX_QUESTION_CHARS]).loose & {("bound", "least"), ("bound", "most")}
    return tuple(value._replace(parts=value.parts - asked) for value in found)


def _compare_pieces(left: Value, right: Value) -> Verdict:
    """Two values of which one may be a number of pieces: beside another number, a noun is no unit."""
    verdict = compare(left, right)
    return verdict if verdict == "open" else compare(_bare(left), _bare(right))


def _bare(value: Value) -> Value:
    """A value without a unit that is no measure."""
    key = value.key
    plain = isinstance(key, Quantity) and value.kind != "money" and key.unit not in ("", "time") and not key.kind
    return value._replace(key=Quantity(key.value, "", key.value)) if plain and isinstance(key, Quantity) else value


def without_values(text: str, answer: str) -> str:
    """A text without the values of an answer, however they are written and whatever qualifies them."""
    given = values(answer)
    for value in reversed(values(text)):
        if any(_group(value) == _group(one) and _compare_keys(value, one) in ("equal", "compatible") for one in given):
            text = text[: value.start] + text[value.end :]
    return text


_OPEN = frozenset(("more", "less", "least", "most"))
"""Bounds of an amount; "after 40 minutes" is no bound, and rivals "24 hours"."""

_BOUNDS: dict[frozenset[str], Verdict] = {
    frozenset(pair.split()): verdict for verdict, row in table("bounds").items() for pair in row.split(", ")
}
"""How two bounds are related."""


def compare(left: Value, right: Value) -> Verdict:
    """Two values of one kind: equal if all parts agree, compatible if one has a part more, rivals if one differs."""
    core = _compare_keys(left, right)
    if core == "open" and isinstance(left.key, Quantity):
        return core
    bounds = _compare_bounds(left, right)
    if core in ("rival", "risky"):
        bounded = any(v.part("bound") in _OPEN or (v.kind == "date" and v.part("bound")) for v in (left, right))
        return "open" if core == "rival" and bounded and bounds == "compatible" and not _excluded(left, right) else core
    mine, theirs = (dict(value.parts) for value in (left, right))
    compared = {"bound", "rate"} if left.unit == "time" else {"bound"}
    both = {n: (mine[n].split("/"), theirs[n]) for n in mine.keys() & theirs.keys() - compared}  # -300/-240: Eastern
    if any(set(own).isdisjoint(other.split("/")) for own, other in both.values()) or bounds == "rival":
        return "rival"
    strict = core == "equal" and {mine.get("bound"), theirs.get("bound")} in ({None, "more"}, {None, "less"})  # over 18
    missing = (mine.keys() ^ theirs.keys()) - {"order", "half", "near"}
    if bounds == "risky" or strict or missing & {"range", "decade"}:
        ends = left.kind in ("clock", "date") and "range" in missing  # it opens at 9, or closes at 13
        return "open" if ends else "risky"
    return "compatible" if core == "compatible" or missing else core


def _frequency(value: Value) -> Quantity:
    """How often per second: twice a year, or once in six months."""
    count, _, unit = value.part("rate").rpartition(" ")
    period = to_count(Fraction(count or 1), unit)
    times = value.key.value if isinstance(value.key, Quantity) else Fraction(0)
    return period._replace(amount=times / (period.amount or 1))


def _compare_bounds(left: Value, right: Value) -> Verdict:
    bounds = frozenset((left.part("bound"), right.part("bound")))
    if len(bounds) == 1:
        return "equal"
    return "compatible" if "" in bounds else _BOUNDS.get(bounds, "risky")


def _excluded(left: Value, right: Value) -> bool:
    """Whether one value is outside of the bound of the other, or both have bounds."""
    for bounded, plain in ((left, right), (right, left)):
        bound, mine, its = bounded.part("bound"), _order(bounded), _order(plain)
        if bound and not plain.part("bound") and mine[0] == its[0]:
            lower = bound in ("more", "least", "after", "since")
            return its[1] < mine[1] if lower else its[1] > mine[1]
    return bool(left.part("bound") and right.part("bound"))


def _order(value: Value) -> tuple[str, tuple[Any, ...]]:
    """What values can be ordered with this one, and its place among them."""
    if isinstance(value.key, Quantity):
        return value.key.kind or value.key.unit, (value.key.amount,)
    return f"{value.kind} {[part is None for part in value.key]}", tuple(part or 0 for part in value.key)


def _compare_keys(left: Value, right: Value) -> Verdict:
    first, second = left.key, right.key
    if isinstance(first, Quantity) and isinstance(second, Quantity):
        if left.unit == right.unit == "time" and left.part("rate") and right.part("rate"):
            return "equal" if near(_frequency(left), _frequency(right)) else "rival"
        core, said = _compare_counts(first, second), left.part("near") or right.part("near")
        about = bool(said) or rounds(first, second) or rounds(second, first)
        alike = about and _order(left)[0] == _order(right)[0] and near(first, second, about=True)
        return "compatible" if alike and core == "rival" else core
    if left.kind == right.kind == "date":
        return _compare_dates(left, right)
    if left.kind == right.kind == "phone":
        return _compare_phones(*sorted((str(first), str(second))))
    if left.kind == right.kind == "clock":
        return _compare_times(left, right)
    if left.kind == right.kind == "daypart" and {"am", "pm"} & {first, second} and first != second:
        return "compatible" if HALVES[str(first)] == HALVES[str(second)] else "rival"
    return "equal" if first == second else "rival"


def _compare_phones(abroad: str, home: str) -> Verdict:
    """Equal, or compatible if one is the other with the code of a country in place of a zero."""
    local = home.removeprefix("0")
    coded = abroad[0] == "+" and home[0] == "0" and abroad.endswith(local) and 2 <= len(abroad) - len(local) <= 4
    return "equal" if abroad == home else "compatible" if coded else "rival"


def _compare_times(left: Value, right: Value) -> Verdict:
    """Times of day; one whose half of the day is open is compatible with both."""
    first, second = (int(value.key[0] or 0) for value in (left, right))
    halves = left.part("half"), right.part("half")
    if first == second:
        return "equal"
    return "compatible" if (halves[0] or halves[1]) and first % 720 == second % 720 else "rival"


def _compare_dates(left: Value, right: Value) -> Verdict:
    """Dates agree if all parts given by both agree, and one gives all parts of the other."""
    first, second = left.key, right.key
    given, also_given = ([x is not None for x in date] for date in (first, second))
    parts = list(zip(given, also_given, strict=True))
    nested = all(a <= b for a, b in parts) or all(a >= b for a, b in parts)
    agree = all(a == b for a, b in zip(first, second, strict=True) if a is not None and b is not None)
    swapped = left.part("order") or right.part("order")
    if agree and nested and (not swapped or left.part("order") == right.part("order")):
        return "equal" if given == also_given else "compatible"
    turned = [(key[0], key[2], key[1]) if one.part("order") else key for one, key in ((left, first), (right, second))]
    if swapped and (turned[0] == second or turned[1] == first or first == second):
        return "open"  # 3/4/2020 is a day in March or April
    return "risky" if agree else "rival"


def _apart(left: Quantity, right: Quantity) -> bool:
    """Whether two quantities measure different things: 600 mg and two tablets, 1.5 litres and 2 kilowatts."""
    named = left.kind != right.kind and left.unit and right.unit and {left.unit, right.unit} != {"£", "pound"}
    return bool(named and {left.kind, right.kind} & PHYSICAL)


def _alike(value: Value, others: Sequence[Value]) -> list[Value]:
    """The values to compare with one: those of its group, if there are any without those that measure other things."""
    group = [other for other in others if _group(other) == _group(value)]
    key = value.key
    return [
        o for o in group if not (isinstance(key, Quantity) and isinstance(o.key, Quantity) and _apart(key, o.key))
    ] or group


def _compare_counts(left: Quantity, right: Quantity) -> Verdict:
    """Measures are converted; other units must be equal, or missing in one."""
    if left.written != right.written and "," in left.written + right.written and left.value == right.value:
        return "risky"  # 1,000 is one or a thousand
    if left.value != right.value and _apart(left, right):
        return "open"
    if left.kind and right.kind:
        if {left.unit, right.unit} == {"£", "pound"}:
            return "equal" if left.value == right.value else "rival"
        return "equal" if left.kind == right.kind and near(left, right) else "rival"
    if left.unit and right.unit and left.unit != right.unit:
        degrees = left.unit.startswith("degree") and right.unit.startswith("degree")
        if degrees and "degree" in (left.unit, right.unit):
            return "compatible" if left.value == right.value else "rival"
        return "rival" if degrees or left.value != right.value else "risky"  # an unknown unit
    shares = "share" in (left.kind, right.kind) and left.amount == right.amount  # 40% is .4
    if left.value != right.value and not shares:
        return "rival"
    return "risky" if left.written and right.written and left.written != right.written else "equal"


RANK: dict[Verdict, int] = {"rival": 0, "risky": 1, "open": 2, "compatible": 3, "equal": 4}


def compare_all(left: Sequence[Value], right: Sequence[Value]) -> Verdict | None:
    """The relation of the values of two answers, by kind and matched in pairs; None if they have no kind in common."""
    kinds = {_group(value) for value in left} & {_group(value) for value in right}
    if not kinds:
        return "open" if all(any(_group(v) in _TEMPORAL for v in side) for side in (left, right)) else None
    worst: Verdict = "equal"
    for kind in kinds:
        sides = [[day for one in side if _group(one) == kind for day in _days(one)][:32] for side in (left, right)]
        worst = min(worst, _match(*sorted(sides, key=len)), key=RANK.__getitem__)
    if worst == "equal" and {_group(value) for value in left} != {_group(value) for value in right}:
        return "compatible"
    return worst


_SPANS = {8: (1, 5, {("range", "from")}, {("range", "to")}), 9: (6, 7, set[Qualifier](), set[Qualifier]())}


def _days(value: Value) -> list[Value]:
    """A value; the days that names of several days mean, such as weekdays."""
    if value.kind != "weekday" or (span := _SPANS.get(int(value.key[0] or 0))) is None:
        return [value]
    return [value._replace(key=(day,), parts=value.parts | part) for day, part in zip(span[:2], span[2:], strict=True)]


_TEMPORAL = frozenset(("date", "weekday", "clock", "daypart"))


def _group(value: Value) -> str:
    return "count" if isinstance(value.key, Quantity) else value.kind


def one_of_each(found: Sequence[Value]) -> bool:
    """Whether no two values are of one kind."""
    return len({_group(value) for value in found}) == len(found)


def _match(few: list[Value], many: list[Value]) -> Verdict:
    """A subset of the values may be another answer."""
    even, rest = len(few) == len(many), list(many)
    worst: Verdict = "equal"
    for value in few:
        best = max(_alike(value, rest), key=lambda other: RANK[compare(value, other)])
        worst = min(worst, compare(value, best), key=RANK.__getitem__)
        rest.remove(best)
    return worst if even or worst in ("rival", "open") else "risky"


def find_value(question: str, text: str, asked: Wanted) -> tuple[str, str, float] | None:
    """The value of a passage that most likely answers a question, by the surrounding words.

    Args:
        question: The question.
        text: The passage.
        asked: The kind of value that the question asks for.

    Returns:
        The value, its sentence, and the share of the question's words in the passage, in (0, 1]; None if it contains no
        such value or none of these words. A value in the question is no answer. A value of another fitting kind
        ("Wann?" "um 9:30") is returned if there is none of the kind itself.
    """
    text = text[:MAX_CHARS]
    question_words = _question_words(question[:MAX_QUESTION_CHARS])
    present = set(map(_root, READ_WORD.findall(text))) & question_words
    fitting, named = _ALSO_FOUND.get(asked.kind, frozenset()), {question[v.start : v.end] for v in values(question)}
    best: tuple[bool, float, int, str, str] | None = None
    for start, end in sentences(text) if present else ():
        sentence = text[start:end]
        places = [match.span() for match in READ_WORD.finditer(sentence) if _root(match[0]) in present]
        own = {_root(sentence[begin:stop]) for begin, stop in places}
        for kind, (first, last), unit, whole in _candidates(sentence, asked.kind):
            other = (kind != asked.kind and kind not in fitting) or not measures(unit, asked)
            if other or sentence[first:last] in named:
                continue
            distance = min((max(first - stop, begin - last, 0) for begin, stop in places), default=len(sentence))
            score = len(own) + 0.5 * (len(present) - len(own)) + 1 / (2 + distance)
            exact = kind == asked.kind or asked.kind == "number"
            if best is None or (exact, score) > best[:2]:
                best = (exact, score, first, sentence[slice(*whole)], sentence)
    return None if best is None else (best[3], best[4], len(present) / len(question_words))


def question_coverage(question: str, text: str) -> float:
    """The share of a question's words, without function words, that a text contains in any inflection, in [0, 1]."""
    words = _question_words(question[:MAX_QUESTION_CHARS])
    return len(words.intersection(map(_root, READ_WORD.findall(text[:MAX_CHARS])))) / len(words) if words else 1.0


@lru_cache(maxsize=256)
def _question_words(question: str) -> frozenset[str]:
    function_words = STOP_WORDS.union(FUNCTION_WORDS.get(other_language(question) or "", ()))
    asking = (word for word in READ_WORD.findall(question) if word.lower() not in function_words)
    return frozenset(map(_root, asking)) - STOP_WORDS - {"long", "many", "much"}


_ARTICLES = frozenset().union(*FUNCTION_WORDS.values())
"""Function words, which begin no name: "Die Ausbildung"."""


def _candidates(sentence: str, kind: Kind) -> list[tuple[Kind, Region, str, Region]]:
    """Kind, position and unit of the candidates for a kind, and the region of all that belongs to them."""
    if kind in _NAMES:
        spans = [match.span() for match in _NAMES[kind].finditer(sentence)]
        return [(kind, s, "", s) for s in spans if sentence[slice(*s)].split()[0].lower() not in _ARTICLES]
    return [
        (v.kind, (v.start, v.end), v.unit, v.whole or (v.start, v.end))
        for v in read_values(sentence, asked=kind).values
        if (kind, v.kind) != ("code", "number") or _DIGITS.fullmatch(sentence, v.start, v.end)
    ]


def _root(word: str) -> str:
    """The stem of a word; of a long word its first letters, so that inflections in other languages do not matter."""
    stemmed = stem(word)
    return stemmed if len(stemmed) < 7 or stemmed in STOP_WORDS else stemmed[:6]
