"""One form for all ways to write an answer, so that answers can be counted.

Votes need classes. Whether two answers "say the same" is no equivalence in general (a is like b, b is like c, and a is
not like c), and a planted answer could be like two that are rivals. So the form of an answer is a function of the
question and of this one answer: whatever else is said beside it, an answer is in one class and stays there.
"""

from __future__ import annotations

import re

from unpoison.text.answer_words import AnswerType, ParsedAnswer, answer_type, read_answer
from unpoison.text.answers import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS
from unpoison.text.folding import fold_text
from unpoison.text.quantities import Figure, Moment
from unpoison.text.units import MEASURES, Count, single

__all__ = ["form"]

_COPULA = re.compile(r"\s(?:is|was|are|were)\s")
_HOW_MANY = re.compile(r"\bhow many ([a-z]+)\b")

_ALIASES = {
    name: names.split(", ")[0]
    for names in (
        "united states, us, usa, united states of america", "united kingdom, uk", "european union, eu",
        "united nations, un", "united arab emirates, uae", "soviet union, ussr, union of soviet socialist republics",
        "new york city, nyc", "washington dc, washington d c, washington district of columbia",
        "nato, north atlantic treaty organization, north atlantic treaty organisation",
        "world health organization, world health organisation", "federal bureau of investigation, fbi",
        "central intelligence agency, cia", "european central bank, ecb", "international monetary fund, imf",
        "national aeronautics and space administration, nasa", "chinese communist party, ccp",
        "european space agency, esa", "prc, peoples republic of china, people's republic of china",
    )
    for name in names.split(", ")
}  # fmt: skip
"""Names that are written out or not, by the first of them; whole answers only."""


def form(question: str, text: str) -> str:
    """The class of an answer, as words that say it; "" for an empty text.

    Two answers share it if they differ only in case, accents on Latin letters, punctuation, articles, a lead-in ("It
    was"), the question's own words around "is" or "was", a possessive at the end; in how a number or a date is written
    (17, seventeen; 4 May 2010, 2010-05-04), how a unit is named (km, kilometres), whether the unit is left out that
    the question asks for ("how many days"); or if they are two of the few well-known names of one thing. What is
    denied, bounded or signed stays apart. Units are not converted, and nothing is left out for being contained.

    Args:
        question: Any text; the first 2,000 characters are read.
        text: Any text; the first 400 characters are read.

    Complexity: linear time.
    """
    question = question[:MAX_QUESTION_CHARS]
    expected = answer_type(question)
    bare = _bare(text[:MAX_ANSWER_CHARS], expected)
    answer = read_answer(bare, expected)
    if expected.polar and answer.yes is not None:
        return "yes" if answer.yes else "no"
    words_beside = answer.stems - expected.stems or answer.signs or answer.denied or answer.yes is not None
    if (answer.dates or answer.counts) and not words_beside:
        return _quantity(answer, expected, question)
    words = " ".join(answer.words).removesuffix("'s").removesuffix("'").strip()
    return _ALIASES.get(words, words)


def _bare(text: str, expected: AnswerType) -> str:
    """A statement without the part that only repeats the question: "Paris" of "The capital of France is Paris"."""
    if expected.polar or (copula := _COPULA.search(text)) is None:
        return text
    before, after = text[: copula.start()], text[copula.end() :]
    for repeated, left in ((before, after), (after, before)):
        words = read_answer(repeated, expected)
        plain = not (words.dates or words.counts or words.signs or words.bounds)
        if words.stems and plain and words.stems <= expected.stems and left.strip():
            return left
    return text


def _quantity(answer: ParsedAnswer, expected: AnswerType, question: str) -> str:
    wanted = _HOW_MANY.search(fold_text(question))
    parts = [_date(moment) for moment in answer.dates]
    parts += [_count(count, expected, single(wanted[1]) if wanted else "") for count in answer.counts]
    return " ".join([*sorted(answer.bounds), *parts])


def _date(moment: Moment) -> str:
    """Such as 2010-05-04, --05-04 or 2010; a day and month that may be meant the other way round are marked."""
    year = "-" if moment.year is None else f"{moment.year:04d}"
    month = "" if moment.month is None else f"-{moment.month:02d}"
    day = "" if moment.day is None else f"-{moment.day:02d}" if month else f"--{moment.day:02d}"
    return f"{year}{month}{day}{'?' * moment.swapped}"


def _count(count: Count | Figure, expected: AnswerType, wanted: str) -> str:
    """A number with one name of its unit; without a unit in the one that is asked for."""
    if isinstance(count, Figure):
        parts = "-".join(map(str, count.parts))
        return (
            f"{parts} {count.unit}".strip() if count.kind == "range" else f"{count.kind} {parts} {count.unit}".strip()
        )
    unit = count.unit or (wanted if wanted in MEASURES else "")
    if unit in MEASURES:
        unit = _UNITS[MEASURES[unit]]
    elif answer_type(unit).stems <= expected.stems:
        unit = ""
    return " ".join(filter(None, (str(count.value), unit, count.written)))


_UNITS = {measure: name for name, measure in reversed(MEASURES.items())}
"""The first of the names of each unit."""
