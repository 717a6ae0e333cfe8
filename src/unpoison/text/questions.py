"""The type of answer that a question asks for.

`read_question` parses English, by question word and head noun. `wanted` finds the kind of value in twelve languages
("how long", "Wann", "IBAN"), for `text.values`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from unpoison.text.languages import FUNCTION_WORDS, HAN, duration_unit, other_language
from unpoison.text.sentences import STOP_WORDS, split, stem
from unpoison.text.tokens import word_list, word_set
from unpoison.utils.assets import read_data

__all__ = [
    "MAX_QUESTION_CHARS",
    "AnswerType",
    "Kind",
    "ParsedQuestion",
    "Wanted",
    "asked_language",
    "read_question",
    "wanted",
]

AnswerType: TypeAlias = Literal["person", "place", "date", "number", "polar", "thing"]
"""A name; a place; a point in time; a quantity; yes or no; anything else."""

Kind: TypeAlias = Literal[
    "iban", "phone", "code", "money", "share", "duration", "date", "clock", "weekday", "daypart", "number", "person",
    "place", "",
]  # fmt: skip
"""`code` is an identifier of letters and digits, such as a VAT number; `number` has no known unit."""

MAX_QUESTION_CHARS = 2000
"""Maximum characters of a question that are read."""


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A parsed question.

    Attributes:
        text: As asked.
        kind: The expected type of its answer.
        stems: Its stems in order.
        content: The distinct stems that are not function words; all stems if it has function words only.
        head: Stems of the noun that the answer is or counts ("what county", "how many seasons"); may be empty.
        predicate: The stem of the verb whose subject is asked for ("who wrote", "which team won"); may be empty.
    """

    text: str
    kind: AnswerType
    stems: tuple[str, ...]
    content: frozenset[str]
    head: frozenset[str] = frozenset()
    predicate: str = ""


_QUESTION_WORDS = word_set("who whom whose when where what which how why")
_AUXILIARIES = word_list("auxiliaries")
_QUANTITIES = word_set("many much long old far tall big high deep fast often heavy large wide hot cold")
_NAMED: tuple[AnswerType, ...] = ("date", "number", "person", "place")
_HEADS = {kind: frozenset(map(stem, word_list(f"{kind}_heads"))) for kind in _NAMED}
"""Stems of the nouns that name a type of answer."""
_BY_WORD: dict[str, AnswerType] = {
    "when": "date",
    "where": "place",
    **dict.fromkeys(word_set("who whom whose"), "person"),
}


def read_question(text: str) -> ParsedQuestion:
    """Parse a question, at most the first 2,000 characters. The last 256 results are cached."""
    return _read(text[:MAX_QUESTION_CHARS])


@lru_cache(maxsize=256)
def _read(text: str) -> ParsedQuestion:
    sentences = split(text)
    words = [word.lower() for sentence in sentences for word in sentence.words]
    stems = tuple(s for sentence in sentences for s in sentence.stems)
    empty = STOP_WORDS.union(FUNCTION_WORDS.get(other_language(text) or "", ()))
    content = frozenset(s for word, s in zip(words, stems) if word not in empty) - empty or frozenset(stems)
    question_word = _question_word(words)
    english = (
        bool(words) and words[0] in _AUXILIARIES and not any(form.match(text) for form in _forms("foreign").values())
    )
    if english or _polar_language(text.lower()):
        # "is it a boy or a girl?" is not answered by yes
        return ParsedQuestion(text, "thing" if words.count("or") == 1 else "polar", stems, content)
    kind, head = _expect_answer(words, stems, question_word)
    predicate = _predicate(words, stems, question_word) if kind in ("person", "thing") else ""
    return ParsedQuestion(text, kind, stems, content, head, predicate)


def _question_word(words: list[str]) -> int:
    """The position of the question word: the first if it begins the question, else the last.

    Earlier ones inside a question begin relative clauses.
    """
    positions = [i for i, word in enumerate(words) if word in _QUESTION_WORDS]
    return len(words) if not positions else positions[0] if positions[0] < 2 else positions[-1]


def _expect_answer(words: list[str], stems: tuple[str, ...], question_word: int) -> tuple[AnswerType, frozenset[str]]:
    """The type and head noun, by the question word at this position."""
    if question_word == len(words):
        head = frozenset(stems[:2]) - STOP_WORDS
        return _by_head(head), head
    word = words[question_word]
    following = words[question_word + 1] if question_word + 1 < len(words) else ""
    if word in _BY_WORD:
        return _BY_WORD[word], frozenset()
    if word == "how":
        return ("number" if following in _QUANTITIES else "thing"), _head(words, stems, question_word + 2)
    head = _head(words, stems, question_word + 1)
    return _by_head(head), head


def _by_head(head: frozenset[str]) -> AnswerType:
    return next((kind for kind, heads in _HEADS.items() if head & heads), "thing")


def _head(words: list[str], stems: tuple[str, ...], start: int) -> frozenset[str]:
    """The stems of the noun phrase after the question word: "what [is the] county seat [of ...]"."""
    while (
        start < len(words) and start < 8 and (words[start] in _AUXILIARIES or words[start] in ("the", "a", "an", "of"))
    ):
        start += 1
    end = start
    while end < len(words) and end - start < 3 and stems[end] not in STOP_WORDS and words[end] not in _AUXILIARIES:
        end += 1
    return frozenset(stems[start:end])


def _predicate(words: list[str], stems: tuple[str, ...], question_word: int) -> str:
    """The stem after "who" and auxiliaries: "who [has] sung"; "" for "who is the king"."""
    position = question_word + 1
    while position < len(words) and words[position] in _AUXILIARIES:
        position += 1
    if position < len(words) and words[question_word] == "who" and stems[position] not in STOP_WORDS:
        return stems[position]
    return ""


class Wanted(NamedTuple):
    """The kind of value that a question asks for, "" if unspecified, and its unit or what is measured ("mass")."""

    kind: Kind = ""
    unit: str = ""


_HOW_MANY = re.compile(
    r"\b(?:how many|wie ?viele?n?|combien d[e']|cuánt[oa]s|quant[iaeo]s?|hoeveel|ile|сколько|kaç)\s+(?P<unit>\w+)"
)


def asked_language(question: str) -> str | None:
    """The language of a question, as `other_language`; also of a short one for yes or no."""
    return other_language(question) or _polar_language(question.lower())


def _polar_language(asked: str) -> str | None:
    return next((name for name, form in _forms("polar").items() if form.search(asked)), None)


@cache
def _forms(table: str) -> dict[Any, re.Pattern[str]]:
    """The forms of questions of a table of `data/questions.yaml`, by kind, what is measured, or language."""
    form = r"(?<!\w)(?:{})(?!\w)" if table in ("spaced", "measured") else "{}"
    return {name: re.compile(form.format("|".join(rows))) for name, rows in read_data("questions.yaml")[table].items()}


def wanted(question: str) -> Wanted:
    """The kind of value that a question asks for."""
    return _wanted(question[:MAX_QUESTION_CHARS])


@lru_cache(maxsize=256)
def _wanted(question: str) -> Wanted:
    asked, expected = question.lower(), _read(question).kind
    counted = _HOW_MANY.search(asked)
    if counted is not None and (unit := duration_unit(counted["unit"])):
        return Wanted("duration", unit)
    for measured, pattern in _forms("measured").items():
        if pattern.search(asked):
            return Wanted("number", measured)
    for kind, pattern in (
        _forms("unspaced" if HAN.search(asked) else "spaced").items() if not _polar_language(asked) else ()
    ):
        if pattern.search(asked):
            return Wanted(kind)
    return Wanted("number" if counted or expected == "number" else "date" if expected == "date" else "")
