"""Parses short answers, and gives all spellings of an answer one form.

`read_answer` finds words, quantities, bounds, lists and denials, for the rules that compare answers (`text.answers`).
`form` is for counting votes, which needs classes. Similarity of answers is not transitive, and a planted answer could
be similar to two rivals. So the form of an answer is a function of the question and of this answer alone: other answers
cannot change its class.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from unicodedata import normalize

import Stemmer

from unpoison.text.languages import FUNCTION_WORDS, LANGUAGES, fold, has_decimal_comma, other_language, phrases, table
from unpoison.text.moments import Value
from unpoison.text.questions import ParsedQuestion, asked_language, read_question, wanted
from unpoison.text.tokens import ENGLISH_318, Token, arabic, fold_text, tokens, word_list
from unpoison.text.units import MEASURES, Quantity
from unpoison.text.value_reader import read_values
from unpoison.text.values import compare_all, without_limit
from unpoison.utils.assets import read_data

__all__ = ["MAX_ANSWER_CHARS", "ParsedAnswer", "denies", "denying", "form", "read_answer"]

MAX_ANSWER_CHARS = 400
"""Maximum characters of an answer that are read."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed answer.

    Attributes:
        words: All words, numbers and signs in order, folded, without articles, lead-in and punctuation.
        stems: The stems that are neither function words nor numbers.
        content: The stems that are not in the question; all stems if it only repeats the question.
        values: Dates, times, quantities and other typed values, in order.
        bounds: A negation, and bounds, eras and seasons that belong to no value.
        signs: Signs outside of numbers that are not punctuation.
        yes: Whether it affirms or denies; None if neither.
        bare: Whether it only affirms or denies.
        items: The parts of a list; one for a single answer.
        letters: Its content words as one string, in order.
        owners: Possessive nouns ("Curie's husband").
        denied: The stems of excluded answers ("Paris, not London").
        initials: First letters of its capitalised words.
        capitals: All its letters in lower case, if it is in capitals.
    """

    words: tuple[str, ...]
    stems: frozenset[str]
    content: frozenset[str]
    values: tuple[Value, ...]
    bounds: frozenset[str]
    signs: tuple[str, ...]
    yes: bool | None
    bare: bool
    items: tuple[frozenset[str], ...]
    letters: str
    owners: frozenset[str]
    denied: frozenset[str]
    initials: str
    capitals: str


_LEAD = re.compile(
    r"^(?:(?:(?:the|an?|my) )?(?:(?:correct |final )?answer(?: is|:)|it (?:is|was)|they (?:are|were)|in|on"
    r"|by(?! [\d$€£])|at(?! (?:least|most)))\s+)+", re.IGNORECASE
)  # fmt: skip
_CONTRAST = re.compile(r"(?:[,;(]\s?(?:and |but )?not|\brather than|\binstead of|\bas opposed to)\s", re.IGNORECASE)
_NUMBER_SIGN = re.compile(r"\bNo\.\s?(?=[0-9])", re.IGNORECASE)
_ONLY_WITH_VALUES = frozenset(("spring", "autumn", "more", "ad", "early", "late", "mid"))
"""Words for bounds and seasons that mean something else in a text without values."""
_ONLY_IN_TIME = frozenset(("before", "until", "by", "after", "since"))
"""Prepositions that mean something else beside values that they do not qualify."""

_EMPTY = (ENGLISH_318 | {"according", "called", "named", "known"}) - word_list("telling")
_PUNCTUATION = frozenset(".,:;!?\"'()[]{}*_`~|/\\-\u201c\u201d\u2018\u00ab\u00bb\u2026\u3001\u3002\u300c\u300d")
_DIVIDERS = frozenset((",", ";", "/", "and", "or"))


@lru_cache(maxsize=256)
def read_answer(text: str, expected: ParsedQuestion) -> ParsedAnswer:
    """Parse an answer. Linear time; the last 256 results are cached, so cut long answers before.

    Args:
        text: Any text; of "Paris, not London" the head is parsed, and the tail is `denied`.
        expected: The parsed question, whose words carry no information, and which decides whether "1875" is a year.
    """
    plain = _NUMBER_SIGN.sub("", arabic(" ".join(normalize("NFC", text).split())))  # "No. 10" denies nothing
    whole = fold_text(plain)
    language = asked_language(expected.text) or other_language(text)
    plain = (_LEAD.sub("", plain) or plain) if language != "tr" else plain  # where "on" is ten
    contrast = _CONTRAST.search(plain)
    head = plain[: contrast.start()].strip() if contrast and contrast.start() else ""
    stem = Stemmer.Stemmer("english", 0).stemWord
    empty = _EMPTY | frozenset(map(fold, FUNCTION_WORDS.get(language or "", ())))

    def stems(answer_tokens: Sequence[Token]) -> frozenset[str]:
        return frozenset(stem(word) for word in (_bare(t.text) for t in answer_tokens) if _speaks(word, empty))

    denied = stems(tokens(fold_text(plain[contrast.end() :]))) if head and contrast else frozenset[str]()
    said = head or plain
    kind = wanted(expected.text).kind
    asked, years = "date" if expected.kind == "date" else kind, "number" not in (kind, expected.kind)
    dots = has_decimal_comma(expected.text) or has_decimal_comma(text)
    reading = read_values(said, asked=asked, years=years, alone=True, dots=dots)
    values = _distinct(without_limit(reading.values, expected.text), said)
    answer_tokens = tokens(fold_text(said))
    rest = tokens(fold_text(_without(said, reading.taken))) if values else answer_tokens
    words = [_bare(t.text) for t in answer_tokens]
    negated = any(denies(t.text, language) for t in rest)
    bounds = {value for name, value in reading.loose if name in ("bound", "era", "season", "phase")}
    bounds -= _ONLY_IN_TIME if values else _ONLY_WITH_VALUES
    if values:
        rest = [t for t in rest if t.text not in denying(language)]
    marks = [t.text for t in rest]
    listed = marks.count(",") > 1 or not (_DIVIDERS - {","}).isdisjoint(marks)
    parts = [stems(part) for part in (_split_parts(rest) if listed else [list(rest)])]  # "Tampa, Florida" is one place
    stems_said = frozenset[str]().union(*parts)
    fresh = [part - expected.content for part in parts]
    if not any(fresh) and not values:  # it only repeats the question's words, so these are its content
        fresh = parts if stems_said else [frozenset(words)]
    yes = _polar(words, expected)
    letters = "".join(c for c in text if c.isalpha()).removeprefix("The").removeprefix("the")
    return ParsedAnswer(
        _plain_words(tokens(fold_text(plain))) or (whole,),
        stems_said,
        frozenset[str]().union(*fresh),
        values,
        frozenset(bounds | {"not"} if negated else bounds),
        tuple(sorted(t.text for t in rest if _is_sign(t.text))),
        yes,
        yes is not None and not any(_speaks(word, empty) for word in words[1:]),
        tuple(part for part in fresh if part),
        " ".join(word for word in map(_bare, marks) if word not in empty and word not in _PUNCTUATION),
        frozenset(stem(_bare(t.text)) for t in answer_tokens if t.text.endswith("'s")),
        denied - stems_said,
        "".join(word[0] for word in re.findall(r"\b[A-Z][\w.]*", text)).lower(),
        letters.lower() if letters.isupper() else "",
    )


def _polar(words: Sequence[str], expected: ParsedQuestion) -> bool | None:
    """Whether an answer begins with yes or no; None if it does not, or if that begins a name."""
    yes = phrases("answers").get(fold(words[0])) if words else None
    if expected.kind != "polar" and words[1:2] not in ([], [","], ["."], ["!"], [";"]):
        return None  # No Country for Old Men
    return yes if isinstance(yes, bool) else None


@cache
def denying(language: str | None = None) -> frozenset[str]:
    """The words that deny: in English, in another language, and those of any that mean nothing else."""
    spoken = ("en", "any", language) if language in LANGUAGES else ("en", "any")
    return frozenset(word for name in spoken for word in phrases("negations", name).single_words())


def denies(word: str, language: str | None) -> bool:
    """Whether a word denies, or has an ending that does."""
    return word in denying(language) or word.endswith(tuple(table("negating").get(language or "en", "n't").split()))


def _distinct(found: Sequence[Value], text: str) -> tuple[Value, ...]:
    """Without values that repeat another one: 5 (five), 5 km (3.1 miles)."""
    kept: list[Value] = []
    for value in found:
        measured = isinstance(value.key, Quantity) and value.key.kind
        again = text[: value.start].rstrip().endswith("(") or measured
        said = any(value.parts == other.parts and compare_all([value], [other]) == "equal" for other in kept)
        kept += [] if again and said else [value]
    return tuple(kept)


def _without(text: str, taken: Sequence[tuple[int, int]]) -> str:
    """A text without these regions."""
    kept, last = [], 0
    for start, end in taken:
        kept.append(text[last : max(start, last)])
        last = max(end, last)
    return " ".join([*kept, text[last:]])


def _plain_words(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The words to compare for identity, without articles, unless one ends the text ("vitamin A")."""
    words = []
    for at, token in enumerate(tokens):
        joined = at + 1 < len(tokens) and tokens[at + 1].glued
        article = token.text in ("the", "a", "an") and at + 1 < len(tokens) and not joined  # A$5 has none
        negative = token.text == "-" and not token.glued and joined
        if negative or not (article or token.text in _PUNCTUATION):
            words.append(token.text)
    return tuple(words)


def _split_parts(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text in _DIVIDERS:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _bare(word: str) -> str:
    return word.removesuffix("'s")


def _is_sign(word: str) -> bool:
    return not word[0].isalnum() and len(word) == 1 and word.isascii() and word not in _PUNCTUATION


def _speaks(word: str, empty: frozenset[str] = _EMPTY) -> bool:
    return bool(word) and word not in empty and not word[0].isdecimal() and word not in _PUNCTUATION and (
        len(word) > 1 or word[0].isalpha() or not word.isascii()
    )  # fmt: skip


_COPULA = re.compile(r"\s(?:is|was|are|were)\s")

_ALIASES: dict[str, str] = {name: row.split(", ")[0] for row in read_data("names.yaml") for name in row.split(", ")}
"""Names and their abbreviations, by the first of them; for whole answers only."""


def form(question: str, text: str) -> str:
    """The class of an answer, in words; "" for an empty text.

    Two answers have the same form if they differ only in case, accents on Latin letters, punctuation, articles, a
    lead-in ("It was"), the question's own words around "is" or "was", or a final possessive; in the spelling of a
    number, date or unit (17, seventeen; 4 May 2010, 2010-05-04; km, kilometres), or in a unit that the question asks
    for ("how many days"); or if they are two of a few well-known names of one thing. Denied, bounded and signed answers
    have forms of their own. Units are not converted, and containment does not count.

    Args:
        question: Any text; the first 2,000 characters are read.
        text: Any text; the first 400 characters are read.

    Complexity: linear time.
    """
    expected = read_question(question)
    bare = _without_question(text[:MAX_ANSWER_CHARS], expected)
    answer = read_answer(bare, expected)
    if expected.kind == "polar" and answer.yes is not None:
        return "yes" if answer.yes else "no"
    words_beside = answer.stems - expected.content or answer.signs or answer.denied or answer.yes is not None
    if answer.values and not words_beside:
        return _quantity(answer, expected, question)
    words = " ".join(answer.words).removesuffix("'s").removesuffix("'").strip()
    return _ALIASES.get(words, words)


def _without_question(text: str, expected: ParsedQuestion) -> str:
    """A statement without the repeated question: "Paris" of "The capital of France is Paris"."""
    if expected.kind == "polar" or (copula := _COPULA.search(text)) is None:
        return text
    before, after = text[: copula.start()], text[copula.end() :]
    for repeated, left in ((before, after), (after, before)):
        words = read_answer(repeated, expected)
        plain = not (words.values or words.signs or words.bounds)
        if words.stems and plain and words.stems <= expected.content and left.strip():
            return left
    return text


def _quantity(answer: ParsedAnswer, expected: ParsedQuestion, question: str) -> str:
    named, parts = wanted(question).unit, []
    for value in sorted(answer.values, key=lambda value: value.kind == "number"):
        key = value.key
        written = _count(key, expected, named) if isinstance(key, Quantity) else f"{value.kind} {key}"
        parts.append(" ".join([written, *(f"{name}:{part}" for name, part in sorted(value.parts))]))
    return " ".join([*sorted(answer.bounds), *parts])


def _count(count: Quantity, expected: ParsedQuestion, named: str) -> str:
    """A number with the canonical name of its unit; if it has none, with the unit that is asked for."""
    unit = count.unit or named
    if unit in MEASURES:
        unit = _UNITS[MEASURES[unit]]
    elif read_question(unit).content <= expected.content:
        unit = ""
    return " ".join(filter(None, (str(count.value), unit, count.written)))


_UNITS = {measure: name for name, measure in reversed(MEASURES.items())}
"""The canonical name of each unit."""
