"""Candidate answers in a sentence: surface patterns for each type of answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from unpoison.text.alignment import Region
from unpoison.text.questions import AnswerType, ParsedQuestion
from unpoison.text.sentences import STOP_WORDS, Sentence
from unpoison.text.tokens import word_list, word_set
from unpoison.text.units import Quantity
from unpoison.text.value_reader import read_values

__all__ = ["AnswerSpan", "spans"]

MAX_NAME_WORDS = 6
"""Maximum words of a name; a longer run of capitalised words is a headline."""


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """Words `start` to `end` (exclusive) of a sentence, and their fit to the expected type, in (0, 1]."""

    start: int
    end: int
    fit: float


_MONTHS = word_list("months")
_VERBS = word_set("may march")
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_CONNECTORS = word_set("of de la le van von der den del di da bin al")
_LOCATIVES = word_set("in at from near to on of within outside inside across around")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_DEMONYM = re.compile(r"(?:[A-Z]\w*(?:ish|ese|ian|ican|ean)|French|Dutch|German|Greek)")


def spans(sentence: Sentence, question: ParsedQuestion) -> list[AnswerSpan]:
    """Spans of the sentence of the expected type that do not consist of the question's words.

    The fit falls with the number of repeated question words, except the noun that is asked for ("Kent County").
    """
    match question.kind:
        case "date":
            fitting = list(_dates(sentence))
        case "number":
            fitting = list(_numbers(sentence, question.head))
        case "person":
            fitting = list(_names(sentence, "person"))
        case kind:
            fitting = [*_names(sentence, kind), *_chunks(sentence, question)]
    in_question = STOP_WORDS.union(question.stems)
    kept = []
    for span in fitting:
        stems = sentence.stems[span.start : span.end]
        news = sum([s not in in_question for s in stems])
        if news:
            words = sum([s not in STOP_WORDS and s not in question.head for s in stems])
            kept.append(span if news == words else AnswerSpan(span.start, span.end, span.fit * news / words))
    return kept


def _dates(sentence: Sentence) -> Iterator[AnswerSpan]:
    """Dates; those with a year, an era or a century fit best, weekdays alone least."""
    for value in read_values(sentence.text, asked="date", years=True).values:
        if value.part("era"):
            yield _placed(sentence, value.whole or (value.start, value.end), 1.0)
        elif value.unit == "century" or (value.kind == "date" and value.key[0] is not None):
            yield _placed(sentence, (value.start, value.end), 1.0)
        elif value.kind in ("date", "weekday") and sentence.text[value.start : value.end].lower() not in _VERBS:
            yield _placed(sentence, (value.start, value.end), 0.9 if value.kind == "date" else 0.5)


def _numbers(sentence: Sentence, head: frozenset[str]) -> Iterator[AnswerSpan]:
    """Numbers with their unit; the fit is best if they count the noun asked for, and low for lone years and "one"."""
    for value in read_values(sentence.text).values:
        if not isinstance(value.key, Quantity):
            continue
        span = _placed(sentence, (value.start, value.end), 0.7 if value.key.kind else 0.4)
        written = sentence.span(span.start, span.end).lower()
        if value.kind == "money" or head & set(sentence.stems[span.start : span.end + 3]):
            span = replace(span, fit=1.0)
        elif _YEAR.fullmatch(written) or written in ("one", "second", "first", "third"):
            span = replace(span, fit=0.1)
        yield span


def _placed(sentence: Sentence, region: Region, fit: float) -> AnswerSpan:
    """The words of a region of a sentence."""
    words = list(zip(sentence.starts, sentence.words))
    start = next((i for i, (at, word) in enumerate(words) if at + len(word) > region[0]), len(words) - 1)
    return AnswerSpan(start, max(start + 1, sum(at < region[1] for at, _ in words)), fit)


def _names(sentence: Sentence, kind: AnswerType) -> Iterator[AnswerSpan]:
    """Maximal runs of capitalised words, with connectors inside and initials' full stops."""
    words = sentence.words
    position = 0
    while position < len(words):
        if not _capital(words, position):
            position += 1
            continue
        end = position + 1
        while end < len(words) and _is_joined(sentence, end - 1):
            if _capital(words, end) or (words[end].isdigit() and kind != "person"):
                end += 1
            elif words[end].lower() in _CONNECTORS and end + 1 < len(words) and _capital(words, end + 1):
                end += 2
            else:
                break
        yield AnswerSpan(position, end, _name_fit(words, position, end, kind))
        position = end


def _capital(words: tuple[str, ...], position: int) -> bool:
    word = words[position]
    return word[0].isupper() and (len(word) > 1 or word not in ("A", "I")) and word.lower() not in STOP_WORDS


def _is_joined(sentence: Sentence, position: int) -> bool:
    """Whether a name can continue after a word, as in "J. R. Smith"."""
    gap = sentence.gap(position)
    return gap == " " or (gap == ". " and len(sentence.words[position]) <= 3) or gap in (".", ' "', '" ')


def _name_fit(words: tuple[str, ...], start: int, end: int, kind: AnswerType) -> float:
    """The fit of a run of capitalised words to a type of name; low for dates, headlines and demonyms."""
    first, last = words[start].lower(), words[end - 1].lower()
    number_follows = end < len(words) and words[end].isdigit()
    starts_date = first in _MONTHS and (end - start == 1 or words[start + 1].isdigit())
    if first in _WEEKDAYS or starts_date or (last in _MONTHS and number_follows):
        return 0.1
    if end - start > MAX_NAME_WORDS:
        return 0.25
    if end - start == 1 and (len(words[start]) == 1 or _DEMONYM.fullmatch(words[start])):
        return 0.25
    before = [word.lower() for word in words[max(0, start - 2) : start] if word.lower() != "the"]
    located = bool(before) and before[-1] in _LOCATIVES
    fit = 0.8
    if kind == "place":
        fit = 1.0 if located else 0.6
    elif kind == "person":
        fit = (1.0 if 2 <= end - start <= 4 else 0.6) * (0.5 if located else 1.0)
    return fit / 2 if start == 0 and end == 1 else fit


def _chunks(sentence: Sentence, question: ParsedQuestion) -> Iterator[AnswerSpan]:
    """Runs of words that are neither function words nor in the question."""
    fit = 0.6 if question.kind == "thing" else 0.3
    stems = sentence.stems
    at = 0
    while at < len(stems):
        end = at
        while end < len(stems) and stems[end] not in STOP_WORDS and stems[end] not in question.content and end - at < 4:
            if end > at and sentence.gap(end - 1) not in ("", " "):
                break
            end += 1
        if end > at:
            verbal = end - at == 1 and sentence.words[at].endswith(("ing", "ed", "ly"))
            yield AnswerSpan(at, end, fit / 2 if verbal else fit)
        at = max(end, at + 1)
