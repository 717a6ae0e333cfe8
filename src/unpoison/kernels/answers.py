"""Whether two answers to one question say the same, rule each other out, or can both be right. Rules, no model.

Numbers, dates, units, yes and no, containment, lists, initials and spelling are compared by rules that need to know
nothing of the world. Where names differ and no rule applies, the result is a guess that says so (`sure` is false), for
a model to better: only somebody who knows the world can say that Holland is the Netherlands.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import Stemmer
from rapidfuzz.distance import Levenshtein

from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["LONGEST", "Relation", "relation"]

LONGEST = 400
"""Characters of an answer that are compared."""

CLOSE = 0.88
"""From this share of equal letters on, two names are spellings of one."""

FEWEST_LETTERS = 6
"""Shorter names differ by a letter without being misspelt."""

SHORT = 6
"""Content words up to which an answer is a name or phrase, of which there is one, rather than an explanation."""

ROUNDED = 0.02
"""How far two converted measures may lie apart and still be one."""


class Relation(NamedTuple):
    """How two answers relate, as probabilities that sum to 1.

    Attributes:
        same: They say the same.
        rival: They cannot both be right.
        compatible: They differ, and both can be right.
        sure: Whether a rule decided; otherwise the figures are a guess from the words that they share.
    """

    same: float
    rival: float
    compatible: float
    sure: bool = True


SAME = Relation(0.96, 0.02, 0.02)
RIVAL = Relation(0.03, 0.94, 0.03)
COMPATIBLE = Relation(0.15, 0.10, 0.75)
NEARLY = Relation(0.60, 0.30, 0.10, sure=False)
OTHER_NAME = Relation(0.10, 0.77, 0.13, sure=False)
UNRELATED = Relation(0.10, 0.40, 0.50, sure=False)

ALIKE = 0.6
"""Answers that share this much of their words, and yet each have one of their own, are more likely one than two."""


def relation(question: str, left: str, right: str) -> Relation:
    """Compare two answers to a question; symmetric, and an answer is the same as itself.

    Args:
        question: Its words mean nothing in an answer, and it says whether a date or number is asked for.
        left: An answer, of which the first `LONGEST` characters are read.
        right: Another, or the same.

    Returns:
        The first rule that applies. Time is linear in the texts, but for names of up to `LONGEST` characters.
    """
    asked = _asked(question)
    one, two = _read(left[:LONGEST], asked), _read(right[:LONGEST], asked)
    if one.words == two.words:
        return SAME
    if one.yes is not None and two.yes is not None:
        return SAME if one.yes == two.yes else RIVAL
    for rule in (_dates, _numbers, _denials, _lists, _names):
        if (found := rule(one, two, asked)) is not None:
            return found
    if one.said & two.said and len(one.said & two.said) >= ALIKE * len(one.said | two.said):
        return NEARLY
    return OTHER_NAME if min(len(one.content), len(two.content)) <= SHORT else UNRELATED


class _Asked(NamedTuple):
    """What the rules look at in a question."""

    stems: frozenset[str]
    date: bool
    number: bool


class _Date(NamedTuple):
    """A point in time as far as it is given."""

    year: int | None
    month: int | None
    day: int | None


class _Count(NamedTuple):
    """A number with its unit ("" without), and what the two come to in the base unit of their kind."""

    value: float
    unit: str
    amount: float
    kind: str


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the rules look at in an answer.

    Attributes:
        words: Its words in order, folded, without articles and lead-in.
        said: The stems that are neither function words nor numbers.
        content: Those of them that are not the question's; all where it only repeats these.
        dates, numbers: What it dates and counts.
        yes: Whether it affirms or denies, None where it does neither.
        negated: Whether a negation occurs.
        items: The parts of a list; one for a single answer.
        letters: Its content words as one string, in order.
        initials: First letters of its capitalised words.
    """

    words: tuple[str, ...]
    said: frozenset[str]
    content: frozenset[str]
    dates: frozenset[_Date]
    numbers: frozenset[_Count]
    yes: bool | None
    negated: bool
    items: tuple[frozenset[str], ...]
    letters: str
    initials: str


_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"), 1)
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WRITTEN_DATE = re.compile(
    rf"(?:\b(\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?)?\b({_MONTH})\b\.?"
    r"(?:\s(\d{1,2})(?:st|nd|rd|th)?(?![\d.]\d|\d))?(?:,?\s(?:of\s)?(\d{4})\b)?"
)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_YEAR = re.compile(r"(?<![\d.,$€£])\b(1[0-9]{3}|20[0-9]{2})\b(?![.,]?\d|\s?%)")
_NUMBER = re.compile(r"(?<![\w.])([-+]?\d{1,15}(?:[.,]\d{1,15}){0,6})\s?(%|[a-z]+)?")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_LEAD = re.compile(
    r"^(?:(?:the|an?|my) )?(?:(?:correct |final )?answer(?: is|:)|it (?:is|was)|they (?:are|were)|in|on|at|by)\s+"
)
_SPLIT = re.compile(r"\s*(?:[,;/&]|\band\b|\bor\b)\s*")
_LISTED = re.compile(r"[;/&]|\band\b|\bor\b|,[^,]*,")

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: E501, SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()  # noqa: SIM905
_SPELLED = {word: value for value, word in enumerate(_UNITS)}
_SPELLED |= {word: 10 * value for value, word in enumerate(_TENS, 2)}
_SPELLED |= {f"{ten}-{_UNITS[unit]}": 10 * value + unit for value, ten in enumerate(_TENS, 2) for unit in range(1, 10)}
_SPELLED |= {word: value for value, word in enumerate(_ORDINALS) if word != "second"}
_SPELLED |= {"once": 1, "twice": 2, "thrice": 3}
_SPELLED_NUMBER = re.compile(rf"\b(?:{'|'.join(sorted(_SPELLED, key=len, reverse=True))})\b")
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "bn": 1e9}
_MEASURES: dict[str, tuple[str, float]] = {
    name: (kind, factor)
    for kind, rows in {
        "length": {"km kilometer kilometre": 1e3, "m meter metre": 1.0, "cm centimeter centimetre": 1e-2,
                   "mm millimeter millimetre": 1e-3, "mi mile": 1609.344, "yd yard": 0.9144, "ft foot feet": 0.3048,
                   "in inch": 0.0254},
        "mass": {"kg kilogram kilo": 1.0, "g gram": 1e-3, "t tonne": 1e3, "lb pound lbs": 0.45359237,
                 "oz ounce": 0.028349523},
        "time": {"second sec": 1.0, "minute min": 60.0, "hour hr": 3600.0, "day": 86400.0, "week": 604800.0},
        "share": {"% percent": 1.0},
    }.items()
    for names, factor in rows.items()
    for name in names.split()
}  # fmt: skip
_NEGATIONS = frozenset(("no", "not", "never", "none", "neither", "nor", "without", "cannot"))
_POLAR = {"yes": True, "yeah": True, "true": True, "no": False, "nope": False, "false": False}
_EMPTY = ENGLISH_318 | {"according", "called", "named", "known", "usd", "dollar", "dollars", "euro", "euros"}
_ASKS_DATE = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade)\b")
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|long|old|far|tall|big|high|deep|fast|often|heavy|large|wide)\b"
                          r"|\b(?:number|percentage|population|price|cost|length|height|weight|age) of\b")  # fmt: skip


@lru_cache(maxsize=256)
def _asked(question: str) -> _Asked:
    text = _folded(question[:2000])
    stem = Stemmer.Stemmer("english", 0).stemWord
    stems = frozenset(stem(word) for word in _WORD.findall(text) if word not in _EMPTY)
    return _Asked(stems, bool(_ASKS_DATE.search(text)), bool(_ASKS_NUMBER.search(text)))


def _folded(text: str) -> str:
    """Lower case, compatible forms, no accents, single spaces."""
    plain = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return " ".join("".join(c for c in plain if not unicodedata.combining(c)).lower().split())


def _read(text: str, asked: _Asked) -> _Answer:
    folded = _LEAD.sub("", _folded(text)).strip(" .!\"'“”()")
    counted = _SPELLED_NUMBER.sub(lambda match: str(_SPELLED[match[0]]), folded)
    dates, rest = _dated(counted)
    numbers = _counted(counted if asked.number else rest)
    stem = Stemmer.Stemmer("english", 0).stemWord
    words = tuple(word for word in map(_bare, _WORD.findall(counted)) if word not in ("the", "a", "an"))
    known = asked.stems | (_SCALES.keys() if numbers else set())
    pieces = _SPLIT.split(rest) if _LISTED.search(rest) else [rest]  # "Tampa, Florida" is one place
    parts = [frozenset(stem(w) for w in map(_bare, _WORD.findall(part)) if _speaks(w)) for part in pieces]
    said = frozenset[str]().union(*parts)
    fresh = [part - known for part in parts]
    if not any(fresh) and not dates and not numbers:  # it only repeats the question's words: they are all it says
        fresh = parts if said else [frozenset(words)]
    return _Answer(
        words,
        said,
        frozenset[str]().union(*fresh),
        dates,
        numbers,
        _POLAR.get(words[0]) if words else None,
        any(word in _NEGATIONS or word.endswith("n't") for word in words),
        tuple(part for part in fresh if part),
        " ".join(word for word in words if word not in _EMPTY),
        "".join(word[0] for word in re.findall(r"\b[A-Z][\w.]*", text)).lower(),
    )


def _bare(word: str) -> str:
    return word.removesuffix("'s")


def _speaks(word: str) -> bool:
    return not word[0].isdigit() and word not in _EMPTY


def _dated(text: str) -> tuple[frozenset[_Date], str]:
    """The dates of a text, and the text without them."""
    found = set()

    def written(match: re.Match[str]) -> str:
        before, name, behind, year = match.groups()
        day = before or behind
        if not day and not year and name == "may":
            return match[0]  # the verb
        found.add(_Date(int(year) if year else None, _MONTHS[name], int(day) if day else None))
        return " "

    def iso(match: re.Match[str]) -> str:
        found.add(_Date(*map(int, match.groups())))
        return " "

    def year(match: re.Match[str]) -> str:
        found.add(_Date(int(match[1]), None, None))
        return " "

    rest = _YEAR.sub(year, _WRITTEN_DATE.sub(written, _ISO_DATE.sub(iso, text)))
    return frozenset(found), rest


def _counted(text: str) -> frozenset[_Count]:
    """The numbers of a text; scales ("million") are part of the number, other words behind it are its unit."""
    found = set()
    for digits, word in _NUMBER.findall(text):
        value = _value(digits)
        if value is None:
            continue
        unit = word[:-1] if len(word) > 3 and word.endswith("s") else word
        if unit in _SCALES:
            value, unit = value * _SCALES[unit], ""
        kind, factor = _MEASURES.get(unit, ("", 1.0))
        found.add(_Count(value, unit, value * factor, kind))
    return frozenset(found)


def _value(digits: str) -> float | None:
    whole = re.sub(r",(?=\d{3}(?!\d))", "", digits)
    try:
        return float(whole.replace(",", "."))
    except ValueError:  # such as a version, 1.2.3
        return None


def _dates(one: _Answer, two: _Answer, asked: _Asked) -> Relation | None:
    """Two dates are the same where one only leaves something open that the other says."""
    if not (one.dates and two.dates) or not (asked.date or _alike_but_for_numbers(one, two)):
        return None
    matching = any(_agree(left, right) for left in one.dates for right in two.dates)
    if matching and len(one.dates) == len(two.dates) == 1 and not asked.date and _numbers(one, two, asked) == RIVAL:
        return RIVAL
    return SAME if matching else RIVAL


def _agree(left: _Date, right: _Date) -> bool:
    shared = [(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    return bool(shared) and all(a == b for a, b in shared)


def _numbers(one: _Answer, two: _Answer, asked: _Asked) -> Relation | None:
    """Two counts are the same where one of their numbers is, in whatever unit."""
    if not (one.numbers and two.numbers) or not (asked.number or asked.date or _alike_but_for_numbers(one, two)):
        return None
    return SAME if any(_equal(left, right) for left in one.numbers for right in two.numbers) else RIVAL


def _equal(left: _Count, right: _Count) -> bool:
    """Equal as written, unless both are measures: these are converted, and a different kind is a different answer."""
    if left.unit != right.unit and left.kind and right.kind:
        near = abs(left.amount - right.amount) <= ROUNDED * max(abs(left.amount), abs(right.amount))
        return near and left.kind == right.kind
    return left.value == right.value


def _alike_but_for_numbers(one: _Answer, two: _Answer) -> bool:
    """Whether the words beside the numbers tell no other difference."""
    return not (one.content and two.content) or one.content <= two.content or two.content <= one.content


def _denials(one: _Answer, two: _Answer, _: _Asked) -> Relation | None:
    """The same said and denied."""
    return RIVAL if one.negated != two.negated and one.content & two.content else None


def _lists(one: _Answer, two: _Answer, _: _Asked) -> Relation | None:
    """Several things of which the other names some: both can be right."""
    if not (one.items and two.items) or len(one.items) == len(two.items) == 1:
        return None
    shorter, longer = sorted((one.items, two.items), key=len)
    matching = sum(any(part <= other or other <= part for other in longer) for part in shorter)
    if matching < len(shorter):
        return COMPATIBLE if matching else None
    return SAME if len(shorter) == len(longer) or len(shorter) == 1 == len(longer) else COMPATIBLE


def _names(one: _Answer, two: _Answer, _: _Asked) -> Relation | None:
    """One name contains the other, is made of its initials, or is nearly spelled like it."""
    if not (one.content and two.content):
        return None
    if one.content <= two.content or two.content <= one.content:
        return SAME if one.said <= two.said or two.said <= one.said else None
    short, long = sorted((one, two), key=lambda answer: len(answer.letters))
    squeezed = short.letters.replace(" ", "").replace(".", "")
    if 2 <= len(squeezed) <= 6 and squeezed == long.initials:
        return SAME
    if min(len(one.letters), len(two.letters)) >= FEWEST_LETTERS and one.numbers == two.numbers:
        similarity = Levenshtein.normalized_similarity(one.letters, two.letters, score_cutoff=CLOSE)
        return SAME if similarity >= CLOSE else None
    return None
