"""Typed values: durations, dates, sums of money, account and phone numbers, names, in ten languages.

A question asks for a kind of value ("how long", "Wann", "IBAN"), and a text contains values of some kinds. Only values
of one kind can contradict each other. Digits are read in any language; number words and units in English, German,
Spanish, French, Italian, Dutch, Portuguese, Polish, Chinese and Japanese; names only if a question in a language other
than English asks for a person or a place, because the readers know English names. Rules only, linear time.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from unpoison.text.languages import FUNCTION_WORDS, other_language
from unpoison.text.questions import MAX_QUESTION_CHARS, Kind, Wanted
from unpoison.text.sentences import STOP_WORDS, sentences, stem
from unpoison.text.tokens import READ_WORD
from unpoison.text.units import DURATIONS, HAN, HAN_TIMES, Quantity, duration_unit, near, to_count

__all__ = ["agree", "answers_kind", "find_value", "question_coverage", "several", "values", "without_values"]

MAX_CHARS = 20_000
"""Maximum characters of a text that are searched."""

FITTING: dict[str, frozenset[str]] = {
    "money": frozenset(("money", "number", "share")),
    "duration": frozenset(("duration", "number")),
    "date": frozenset(("date", "clock", "duration", "number")),
    "code": frozenset(("code", "number", "phone")),
    "number": frozenset(("number", "money", "share", "duration", "clock")),
}
"""The kinds that answer a question for a kind; by default only the kind itself."""

_ALSO_FOUND: dict[str, frozenset[str]] = {
    "date": frozenset(("clock", "duration")),
    "number": FITTING["number"],
}
"""Of these, the kinds to search for in a passage without a value of the kind itself."""

_NAMES = {
    "person": re.compile(
        r"(?:\b(?:Dr|Prof|Mr|Mrs|Ms|Mme|Sra?|Dott|Dhr)\.?\s|\bHerr\s|\bFrau\s){0,3}"
        r"\b[A-ZÀ-Ý][a-zß-ÿ][\w'-]{0,30}\s(?:(?:von|van|de|der|di|da|del)\s){0,2}[A-ZÀ-Ý][a-zß-ÿ][\w'-]{0,30}"
    ),
    "place": re.compile(
        r"\b(?:rue|avenue|boulevard|place|quai|calle|avenida|plaza|via|viale|piazza|rua|praça|ulica|ul\.)"
        r"\s(?:[\w']{1,4}\s){0,3}[A-ZÀ-Ý][\w'-]{1,30}"
        r"|\b[A-ZÀ-Ý]\w{0,30}(?:straße|strasse|weg|platz|allee|gasse|kai|ufer|markt|ring|damm|"
        r"straat|laan|plein|kade)\b(?:\s\d{1,4})?"
    ),
}
"""Names of people and streets, for questions in a language other than English."""

_NUMBER_WORDS = {
    word: value
    for names in (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty", "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn",
        "uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
        "_ deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze",
        "_ due tre quattro cinque sei sette otto nove dieci undici dodici", "_ dois três quatro cinco seis sete oito "
        "nove dez onze doze", "_ twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć",
    )
    for value, word in enumerate(names.split(), 1)
} | {"duas": 2, "dwóch": 2, "trzech": 3, "thirty": 30, "sixty": 60, "ninety": 90}  # fmt: skip

_MONTHS = {
    prefix: number
    for number, prefixes in enumerate(
        ("jan ene gen sty", "feb fév fev lut", "mar mär mrt", "apr avr abr kwi", "may mai may mag mei maj",
         "jun jui giu cze", "jul juil lug lip", "aug aoû ago sie", "sep set wrz", "oct okt ott out paź",
         "nov lis", "dec dez déc dic gru"), 1)
    for prefix in prefixes.split()
}  # fmt: skip
_MONTH_WORD = (
    r"jan(?:uary|uar|vier|eiro|uari)?|enero|gennaio|stycznia|feb(?:ruary|ruar|rero|braio|ruari)?|février|fevereiro|"
    r"lutego|mar(?:ch|s|zo|ço|ca)?|märz|maart|apr(?:il|ile)?|avril|abril|kwietnia|may|mai|mayo|maggio|maio|mei|maja|"
    r"june?|juni|juin|junio|giugno|junho|czerwca|july?|juli|juillet|julio|luglio|julho|lipca|aug(?:ust|ustus)?|août|"
    r"agosto|sierpnia|sept?(?:ember|embre|tembre|iembre)?|settembre|setembro|września|o[ck]t(?:ober|obre)?|octubre|"
    r"ottobre|outubro|października|nov(?:ember|embre|iembre|embro)?|listopada|de[cz](?:ember|embre|embro)?|décembre|"
    r"diciembre|dicembre|grudnia"
)
_NUMBER = rf"(?:\d[\d,.\u202f']{{0,20}}\d|\d|\b(?:{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})\b)"
_ONE = (
    r"\b(?:(?:(?<=within\s)|(?<=after\s)|(?<=for\s)|(?<=about\s)|(?<=only\s)|(?<=until\s))an?"
    r"|eine[mnrs]?|ein|une?|una|um|uma|een|jedn[aąe]j?)\b"
)
"""An article that means one before a unit; in English only after some words, because "a year" is also a rate."""
_CURRENCY = r"€|\$|£|¥|eur(?:os?)?|usd|dollars?|gbp|pounds?|chf|franken|francs?|yen|jpy|pln|zł(?:otych)?"
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, flags))  # type: ignore[misc]
    for kind, pattern, flags in (
        ("iban", r"\b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?\b", 0),
        ("date", r"\b(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)\b", 0),
        ("date", r"\b(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})\b", 0),
        ("date", rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?\s(?:de\s|of\s)?(?P<month>{_MONTH_WORD})\b\.?"
                 rf"(?:,?\s(?:de\s)?(?P<y>\d{{4}}))?", re.IGNORECASE),
        ("date", rf"\b(?P<month>{_MONTH_WORD})\.?\s(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<y>\d{{4}}))?",
         re.IGNORECASE),
        ("date", rf"\b(?P<month>{_MONTH_WORD})\.?\s(?:de\s)?(?P<y>\d{{4}})\b", re.IGNORECASE),
        ("money", rf"(?:(?:{_CURRENCY})\s?(?P<n>\d[\d,.']{{0,20}}\d|\d)|(?P<v>{_NUMBER})\s?(?:{_CURRENCY})(?!\w))",
         re.IGNORECASE),
        ("share", rf"(?P<n>{_NUMBER})\s?(?:%|percent\b|per cent\b|prozent\b|por ?ciento\b|pour ?cent\b|procent)",
         re.IGNORECASE),
        ("clock", r"\b(?P<hour>[01]?\d|2[0-4])(?:[:.](?P<minute>[0-5]\d))?"
                  r"\s?(?:uhr\b|o'clock\b|(?P<half>[ap])\.?m\b\.?)", re.IGNORECASE),
        ("clock", r"\b(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)\b", 0),
        ("duration", rf"(?P<n>{_NUMBER}|{_ONE})[\s-](?:(?:working|business|calendar|full|whole|volle)\s)?"
                     rf"(?P<unit>{'|'.join(DURATIONS.values())})(?!\w)", re.IGNORECASE),
        ("phone", r"(?<![\w.])(?:\+\d{1,3}|\(?0\d{1,5}\)?)[\s/()-]{0,2}\d[\d\s/()-]{4,16}\d\b", 0),
        ("code", r"\b(?=[A-Z0-9-]{0,30}\d{3})(?=[A-Z0-9-]{0,30}[A-Z])[A-Z0-9][A-Z0-9-]{4,30}[A-Z0-9]\b", 0),
        ("number", rf"(?<![§\d])(?<!§\s)(?<![A-Za-z]-){_NUMBER}", re.IGNORECASE),
    )
)  # fmt: skip


_HAN_DIGITS = "零一二三四五六七八九"
_HAN_NUMBER = r"(?:\d[\d,.]{0,20}\d|\d|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
_HAN_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))  # type: ignore[misc]
    for kind, pattern in (
        ("date", r"(?:(?P<y>\d{4})\s?年\s?)?(?P<m>\d{1,2})\s?月\s?(?P<d>\d{1,2})\s?[日号號]"),
        ("date", r"(?P<y>\d{4})\s?年(?:\s?(?P<m>\d{1,2})\s?月)?(?P<d>\b\B)?"),
        ("money", rf"(?P<n>{_HAN_NUMBER})\s?(?:元|円|圆|圓|日元|美元|欧元|歐元|ユーロ|ドル)"),
        ("clock", r"(?P<hour>[01]?\d|2[0-4])\s?[点點时時](?!间|間)(?:\s?(?P<minute>[0-5]?\d)\s?分)?"),
        ("duration", rf"(?P<n>{_HAN_NUMBER})\s?(?P<unit>(?:个|個|ヶ|か|カ|箇)月間?|{'|'.join(HAN_TIMES.values())})"),
    )
)
"""Chinese and Japanese, which put no space between words."""


class Value(NamedTuple):
    """A value in a text.

    Attributes:
        kind: Its kind.
        start, end: Its position.
        key: Its normalised value: a `Quantity`, (year, month, day), or its characters.
        unit: Of a duration.
    """

    kind: Kind
    start: int
    end: int
    key: Quantity | tuple[int | None, ...] | str
    unit: str = ""


def values(text: str) -> tuple[Value, ...]:
    """The values of a text, in order and without overlap; more specific kinds take precedence."""
    return _values(text[:MAX_CHARS])


@lru_cache(maxsize=4096)
def _values(text: str) -> tuple[Value, ...]:
    found: list[Value] = []
    taken = bytearray(len(text))
    for kind, pattern in (*_HAN_PATTERNS, *_PATTERNS) if HAN.search(text) else _PATTERNS:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
            found.append(_value(kind, match))
    return tuple(sorted(found, key=lambda value: value.start))


def _value(kind: Kind, match: re.Match[str]) -> Value:
    groups, start, end = match.groupdict(), match.start(), match.end()
    if kind == "date":
        month = groups.get("m") or (_month(groups["month"]) if groups.get("month") else None)
        key = tuple(None if part is None else int(part) for part in (groups.get("y"), month, groups.get("d")))
        return Value(kind, start, end, key)
    if kind == "clock":
        hour, half = int(groups["hour"]), (groups.get("half") or "").lower()
        hour = hour % 12 + 12 * (half == "p") if half else hour
        return Value(kind, start, end, (hour, int(groups.get("minute") or 0)))
    if kind in ("money", "share", "number"):
        number = groups.get("n") or groups.get("v") or match[0]
        amount = _number(number)
        return Value(kind, start, end, Quantity(amount, kind, amount))
    if kind == "duration":
        unit = duration_unit(groups["unit"])
        return Value(kind, start, end, to_count(_number(groups["n"]), unit), unit)
    return Value(kind, start, end, re.sub(r"[\s/()-]", "", match[0]))


def _month(word: str) -> int:
    lowered = word.lower()
    return next(_MONTHS[lowered[:size]] for size in (4, 3) if lowered[:size] in _MONTHS)


def _number(text: str) -> Fraction:
    """Read a number: `1,000` and `1.000` are a thousand, `8,50` and `8.5` are not."""
    if text.lower() in _NUMBER_WORDS:
        return Fraction(_NUMBER_WORDS[text.lower()])
    if HAN.match(text):
        tens, ten, ones = text.replace("两", "二").rpartition("十")
        high = 10 * _HAN_DIGITS.index(tens or "一") if ten else 0
        return Fraction(high + (_HAN_DIGITS.index(ones) if ones else 0))
    if not any(map(str.isdigit, text)):
        return Fraction(1)  # an article
    plain = re.sub(r"[.,\u202f'](?=\d{3}(?:\D|$))", "", text.strip(".,"))
    parts = re.split(r"[.,\u202f']", plain)
    return Fraction(".".join(parts) if len(parts) == 2 else "".join(parts))


def answers_kind(answer: str, kind: Kind) -> bool | None:
    """Whether an answer contains a value of a kind; None if its words leave that open ("for ever", "free")."""
    if not kind or kind in _NAMES:
        return None
    found = {value.kind for value in values(answer)}
    if kind in found or (found and found <= FITTING.get(kind, frozenset((kind,)))):
        return True
    return False if found or kind in ("iban", "phone", "code") else None


def agree(left: str, right: str, kind: Kind, question: str = "") -> bool | None:
    """Whether two answers have the same value of a kind, or one has a value that is among the other's.

    None if one has no such value, or both have several. Values in the question do not count.
    """
    few, many = sorted((_fitting(left, kind, question), _fitting(right, kind, question)), key=len)
    if not kind or len(few) != 1:
        return None
    return any(_same(few[0], value) for value in many)


def several(answer: str, kind: Kind, question: str = "") -> bool:
    """Whether an answer contains more than one value of a kind, without those in the question."""
    return len(_fitting(answer, kind, question)) > 1


def _fitting(answer: str, kind: Kind, question: str) -> list[Value]:
    """The values of a kind; if there are none, values of fitting kinds."""
    named = {question[value.start : value.end] for value in values(question)}
    found = [value for value in values(answer) if answer[value.start : value.end] not in named]
    exact = [value for value in found if value.kind == kind and kind != "number"]
    return exact or [value for value in found if value.kind in FITTING.get(kind, ())]


def without_values(text: str, answer: str) -> str:
    """A text without the values of an answer, however they are written."""
    given = values(answer)
    for value in reversed(values(text)):
        if any(_same(value, one) for one in given):
            text = text[: value.start] + text[value.end :]
    return text


def _same(left: Value, right: Value) -> bool:
    first, second = left.key, right.key
    if isinstance(first, Quantity) and isinstance(second, Quantity):
        bare = "number" in (left.kind, right.kind)  # "45" repeats "45 minutes"
        return near(first, second) or (bare and first.value == second.value)
    if left.kind == right.kind == "date" and isinstance(first, tuple) and isinstance(second, tuple):
        return all(a == b for a, b in zip(first, second, strict=True) if a is not None and b is not None)
    return first == second


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
        for kind, first, last, unit in _candidates(sentence, asked.kind):
            if (kind != asked.kind and kind not in fitting) or (asked.unit and unit != asked.unit):
                continue
            if sentence[first:last] in named:
                continue
            distance = min((max(first - stop, begin - last, 0) for begin, stop in places), default=len(sentence))
            score = len(own) + 0.5 * (len(present) - len(own)) + 1 / (2 + distance)
            exact = kind == asked.kind or asked.kind == "number"
            if best is None or (exact, score) > best[:2]:
                best = (exact, score, first, sentence[first:last], sentence)
    return None if best is None else (best[3], best[4], len(present) / len(question_words))


def question_coverage(question: str, text: str) -> float:
    """The share of a question's words, without function words, that a text contains in any inflection, in [0, 1]."""
    words = _question_words(question[:MAX_QUESTION_CHARS])
    return len(words.intersection(map(_root, READ_WORD.findall(text[:MAX_CHARS])))) / len(words) if words else 1.0


@lru_cache(maxsize=256)
def _question_words(question: str) -> frozenset[str]:
    function_words = STOP_WORDS.union(FUNCTION_WORDS.get(other_language(question) or "", "").split())
    asking = (word for word in READ_WORD.findall(question) if word.lower() not in function_words)
    return frozenset(map(_root, asking)) - STOP_WORDS - {"long", "many", "much"}


_ARTICLES = frozenset(" ".join(FUNCTION_WORDS.values()).split())
"""Function words, which begin no name: "Die Ausbildung"."""


def _candidates(sentence: str, kind: Kind) -> list[tuple[Kind, int, int, str]]:
    """Kind, position and unit of the candidates for a kind."""
    if kind in _NAMES:
        found = _NAMES[kind].finditer(sentence)
        return [(kind, *match.span(), "") for match in found if match[0].split()[0].lower() not in _ARTICLES]
    return [(value.kind, value.start, value.end, value.unit) for value in values(sentence)]


def _root(word: str) -> str:
    """The stem of a word; of a long word its first letters, so that inflections in other languages do not matter."""
    stemmed = stem(word)
    return stemmed if len(stemmed) < 7 or stemmed in STOP_WORDS else stemmed[:6]
