"""Candidate answers in a sentence: surface patterns for each type of answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from unpoison.text.questions import AnswerType, ParsedQuestion
from unpoison.text.sentences import STOP_WORDS, Sentence, stem
from unpoison.text.tokens import word_list, word_set

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
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_ERAS = word_set("bc bce ad ce")
_NUMBERS = word_list("numbers")
_UNITS = frozenset(map(stem, word_list("units")))
_CONNECTORS = word_set("of de la le van von der den del di da bin al")
_LOCATIVES = word_set("in at from near to on of within outside inside across around")
_DATE = re.compile(r"1\d{3}s?|20\d{2}s?")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
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
            fitting = list(_names(sentence, question.kind))
        case _:
            fitting = [*_names(sentence, question.kind), *_chunks(sentence, question)]
    in_question = STOP_WORDS.union(question.stems)
    kept = []
    for span in fitting:
        stems = sentence.stems[span.start : span.end]
        news = sum([s not in in_question for s in stems])
        if news:
            words = sum([s not in STOP_WORDS and s not in question.head for s in stems])
            kept.append(span if news == words else AnswerSpan(span.start, span.end, span.fit * news / words))
    return kept


def _runs(size: int, belongs: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """Maximal runs of positions below `size` with the property, the end exclusive."""
    for inside, run in groupby(range(size), key=belongs):
        if inside:
            start, *more = run
            yield start, start + 1 + len(more)


def _dates(sentence: Sentence) -> Iterator[AnswerSpan]:
    """Maximal runs of date words; years fit best, single weekdays least."""
    lowered = [word.lower() for word in sentence.words]
    for start, end in _runs(len(lowered), lambda i: _is_date_word(lowered, i)):
        run = lowered[start:end]
        if any(_DATE.fullmatch(word) for word in run) or run[-1] in {"century", *_ERAS}:
            yield AnswerSpan(start, end, 1.0)
        elif any(word in _MONTHS for word in run) and (len(run) > 1 or run[0] not in ("may", "march")):
            yield AnswerSpan(start, end, 0.9)
        elif any(word in _WEEKDAYS for word in run):
            yield AnswerSpan(start, end, 0.5)


def _is_date_word(lowered: list[str], position: int) -> bool:
    """Whether a word can be part of a date."""
    word = lowered[position]
    if word in _MONTHS or word in _WEEKDAYS or _DATE.fullmatch(word):
        return True
    near = lowered[max(0, position - 1) : position] + lowered[position + 1 : position + 2]
    if word in {"century", *_ERAS}:
        return any(n[:1].isdigit() or n == "century" for n in near)
    if word.isdigit() and any(n in _ERAS for n in near):
        return True
    if (word.isdigit() and len(word) <= 2) or _ORDINAL.fullmatch(word):
        return any(n in _MONTHS or n == "century" for n in near)
    return False


def _numbers(sentence: Sentence, head: frozenset[str]) -> Iterator[AnswerSpan]:
    """Numbers with their unit; the fit is best if they count the noun asked for, and low for lone years and "one"."""
    words, stems = sentence.words, sentence.stems
    for start, end in _runs(len(words), lambda i: _numeric(words[i])):
        alone = end - start == 1
        year = alone and _DATE.fullmatch(words[start]) is not None
        article = alone and words[start].lower() in ("one", "second", "first", "third")
        counts = bool(head & set(stems[end : end + 3]))
        unit = end < len(words) and stems[end] in _UNITS
        money = sentence.text[max(0, sentence.starts[start] - 1)] in "$£€¥"
        fit = 1.0 if counts or money else 0.7 if unit or words[end - 1].endswith("%") else 0.4
        if not counts and not money and (year or article):
            fit = 0.1
        yield AnswerSpan(start, end + 1 if unit else end, fit)


def _numeric(word: str) -> bool:
    """Whether a word is a number in digits or letters, but not an ordinal in digits."""
    lowered = word.lower()
    if lowered[0].isdigit():
        return not _ORDINAL.fullmatch(lowered)
    return all(part in _NUMBERS for part in lowered.split("-"))


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
