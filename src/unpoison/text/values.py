"""Values that have a form: durations, dates, sums of money, account and phone numbers, in eight languages.

A question says which kind it asks for ("how long", "Wann", "IBAN"), and a text holds values of some kinds. Only values
of one kind can contradict each other. Digits are read everywhere; number words and units in English, German, Spanish,
French, Italian, Dutch, Portuguese and Polish. Rules only, linear time.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from unpoison.text.languages import FUNCTION_WORDS, other_language
from unpoison.text.questions import MAX_QUESTION_CHARS, read_question
from unpoison.text.sentences import STOP_WORDS, sentences, stem
from unpoison.text.tokens import READ_WORD
from unpoison.text.units import Count, near, to_count

__all__ = ["Kind", "Value", "Wanted", "agree", "answers_kind", "find_value", "values", "wanted"]

Kind: TypeAlias = Literal["iban", "phone", "code", "money", "share", "duration", "date", "clock", "number", ""]
"""`code` is an identifier of letters and digits, such as a VAT number; `number` has no unit that is known."""

MAX_CHARS = 20_000
"""Characters of a text that are searched."""

FITTING: dict[str, frozenset[str]] = {
    "money": frozenset(("money", "number", "share")),
    "duration": frozenset(("duration", "number")),
    "date": frozenset(("date", "clock", "duration", "number")),
    "code": frozenset(("code", "number", "phone")),
    "number": frozenset(("number", "money", "share", "duration", "clock")),
}
"""Which kinds answer a question for a kind, where that is not only itself."""

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
} | {"einem": 1, "eines": 1, "duas": 2, "dwóch": 2, "trzech": 3, "thirty": 30, "sixty": 60, "ninety": 90}  # fmt: skip

_UNITS = {
    "ms": r"ms|milliseconds?|millisekunden?",
    "second": r"s|secs?|seconds?|sekunden?|segundos?|secondes?|second[oi]|seconden|sekund[yę]?",
    "minute": r"mins?|minutes?|minuten?|minutos?|minut[oiayę]?",
    "hour": r"h|hrs?|hours?|stunden?|std|horas?|heures?|or[ae]|uur|uren|godzin[ayę]?",
    "day": r"days?|\w{0,20}tage?n?|d[ií]as?|jours?|giorn[oi]|dag(?:en)?|werkdagen|dni|dzień",
    "week": r"weeks?|wochen?|semanas?|semaines?|settiman[ae]|weken|tygodni[ea]?|tydzień",
    "month": r"months?|monat(?:en?|s)?|mes(?:es)?|mois|mes[ei]|maand(?:en)?|miesiąc[ea]?|miesięcy",
    "year": r"years?|yrs?|jahre?n?|años?|ans?|années?|ann[oi]|jaar|jaren|anos?|lata?|rok",
}
_UNIT = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _UNITS.items()), re.IGNORECASE)
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
        ("clock", r"\b(?P<hour>[01]?\d|2[0-4])(?::(?P<minute>[0-5]\d)\b|\.(?=[0-5]\d\s?(?:uhr|h\b|[ap]\.?m)))",
         re.IGNORECASE),
        ("duration", rf"(?P<n>{_NUMBER})[\s-](?:(?:working|business|calendar|full|whole|volle)\s)?"
                     rf"(?P<unit>{'|'.join(_UNITS.values())})(?!\w)", re.IGNORECASE),
        ("phone", r"(?<![\w.])(?:\+\d{1,3}|\(?0\d{1,5}\)?)[\s/()-]{0,2}\d[\d\s/()-]{4,16}\d\b", 0),
        ("code", r"\b(?=[A-Z0-9-]{0,30}\d{3})(?=[A-Z0-9-]{0,30}[A-Z])[A-Z0-9][A-Z0-9-]{4,30}[A-Z0-9]\b", 0),
        ("number", _NUMBER, re.IGNORECASE),
    )
)  # fmt: skip


class Value(NamedTuple):
    """A value in a text.

    Attributes:
        kind: What it is.
        start, end: Where it stands.
        key: What it comes to: a `Count`, (year, month, day), or its characters.
        unit: Of a duration.
    """

    kind: Kind
    start: int
    end: int
    key: Count | tuple[int | None, ...] | str
    unit: str = ""


class Wanted(NamedTuple):
    """What a question asks for: a kind, "" where it does not say, and of durations the unit."""

    kind: Kind = ""
    unit: str = ""


def values(text: str) -> tuple[Value, ...]:
    """The values of a text, in order and without overlap: the more special kind first."""
    return _values(text[:MAX_CHARS])


@lru_cache(maxsize=4096)
def _values(text: str) -> tuple[Value, ...]:
    found: list[Value] = []
    taken = bytearray(len(text))
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
            found.append(_value(kind, match))
    return tuple(sorted(found, key=lambda value: value.start))


def _value(kind: Kind, match: re.Match[str]) -> Value:
    groups, start, end = match.groupdict(), match.start(), match.end()
    if kind == "date":
        month = groups.get("m") or _month(groups["month"])
        key = tuple(None if part is None else int(part) for part in (groups.get("y"), month, groups.get("d")))
        return Value(kind, start, end, key)
    if kind == "clock":
        return Value(kind, start, end, (int(groups["hour"]), int(groups["minute"] or 0)))
    if kind in ("money", "share", "number"):
        number = groups.get("n") or groups.get("v") or match[0]
        amount = _number(number)
        return Value(kind, start, end, Count(amount, kind, amount))
    if kind == "duration":
        unit = _unit(groups["unit"])
        return Value(kind, start, end, to_count(_number(groups["n"]), unit), unit)
    return Value(kind, start, end, re.sub(r"[\s/()-]", "", match[0]))


def _month(word: str) -> int:
    lowered = word.lower()
    return next(_MONTHS[lowered[:size]] for size in (4, 3) if lowered[:size] in _MONTHS)


def _unit(word: str) -> str:
    match = _UNIT.fullmatch(word)
    return "" if match is None else match.lastgroup or ""


def _number(text: str) -> Fraction:
    """`1,000` and `1.000` are a thousand, `8,50` and `8.5` are not."""
    if text.lower() in _NUMBER_WORDS:
        return Fraction(_NUMBER_WORDS[text.lower()])
    plain = re.sub(r"[.,\u202f'](?=\d{3}(?:\D|$))", "", text.strip(".,"))
    parts = re.split(r"[.,\u202f']", plain)
    return Fraction(".".join(parts) if len(parts) == 2 else "".join(parts))


_HOW_MANY = re.compile(
    r"\b(?:how many|wie ?viele?n?|combien d[e']|cuánt[oa]s|quant[iaeo]s?|hoeveel|ile)\s+(?P<unit>\w+)"
)
_ASKED: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"(?<!\w)(?:{words})(?!\w)"))  # type: ignore[misc]
    for kind, words in {
        "iban": "iban",
        "code": r"(?:vat|tax|serial|invoice|order|part|customer) (?:id|no|number)|ust-?id\w*|"
                r"\w*(?:steuer|auftrags)nummer",
        "phone": r"(?:tele)?phone number|phone|telefonnummer|rufnummer|hotline|téléphone|teléfono|telefono|telefoon\w*|"
                 r"telefone|telefonu?|fax number",
        "duration": r"how long|timeout|notice period|(?:response|processing|delivery|lead|waiting) time|wie lange"
                    r"|\w*frist|reaktionszeit|combien de temps|délai|préavis|cuánto tiempo|plazo|quanto tempo|hoe lang"
                    r"|\w*termijn|prazo|jak długo|okres",
        "money": r"costs?|price|fee|kostet|kosten|preis|gebühr|prix|coûte|coût|precio|cuesta|cuestan|prezzo|costa"
                 r"|costano|prijs|kost|preço|custa|cena|kosztuje",
        "date": r"wann|quand|cuándo|quando|wanneer|kiedy|datum|fecha",
    }.items()
)  # fmt: skip


def wanted(question: str) -> Wanted:
    """The kind of value that a question asks for."""
    return _wanted(question[:MAX_QUESTION_CHARS])


@lru_cache(maxsize=256)
def _wanted(question: str) -> Wanted:
    asked = question.lower()
    counted = _HOW_MANY.search(asked)
    if counted is not None and (unit := _unit(counted["unit"])):
        return Wanted("duration", unit)
    for kind, pattern in _ASKED:
        if pattern.search(asked):
            return Wanted(kind)
    expected = read_question(question).kind
    if counted is not None or expected == "number":
        return Wanted("number")
    return Wanted("date") if expected == "date" else Wanted()


def answers_kind(answer: str, kind: Kind) -> bool | None:
    """Whether an answer holds a value of a kind; None where its words leave that open ("for ever", "free")."""
    if not kind:
        return None
    found = {value.kind for value in values(answer)}
    if kind in found or (found and found <= FITTING.get(kind, frozenset((kind,)))):
        return True
    return False if found or kind in ("iban", "phone", "code") else None


def agree(left: str, right: str, kind: Kind) -> bool | None:
    """Whether two answers give the same value of a kind; None unless each gives exactly one."""
    pair = [[value for value in values(answer) if value.kind == kind] for answer in (left, right)]
    if not kind or any(len(found) != 1 for found in pair):
        return None
    first, second = pair[0][0].key, pair[1][0].key
    if isinstance(first, Count) and isinstance(second, Count):
        return near(first, second)
    if kind == "date" and isinstance(first, tuple) and isinstance(second, tuple):
        return all(a == b for a, b in zip(first, second, strict=True) if a is not None and b is not None)
    return first == second


def find_value(question: str, text: str, asked: Wanted) -> tuple[str, str, float] | None:
    """The value of a passage that most likely answers a question, by the words around it.

    Args:
        question: The question.
        text: The passage.
        asked: What the question asks for.

    Returns:
        The value, its sentence, and the share of the question's words that the passage holds, in (0, 1]; None where
        it holds no such value or none of these words.
    """
    function_words = STOP_WORDS.union(FUNCTION_WORDS.get(other_language(question) or "", "").split())
    asking = (word for word in READ_WORD.findall(question) if word.lower() not in function_words)
    question_words = set(map(_root, asking)) - STOP_WORDS
    present = set(map(_root, READ_WORD.findall(text[:MAX_CHARS]))) & question_words
    best: tuple[float, int, str, str] | None = None
    for start, end in sentences(text[:MAX_CHARS]) if present else ():
        sentence = text[start:end]
        places = [match.span() for match in READ_WORD.finditer(sentence) if _root(match[0]) in present]
        own = {_root(sentence[begin:stop]) for begin, stop in places}
        for value in values(sentence):
            if value.kind != asked.kind or (asked.unit and value.unit != asked.unit):
                continue
            gaps = (max(value.start - stop, begin - value.end, 0) for begin, stop in places)
            distance = min(gaps, default=len(sentence))
            score = len(own) + 0.5 * (len(present) - len(own)) + 1 / (2 + distance)
            if best is None or score > best[0]:
                best = (score, value.start, sentence[value.start : value.end], sentence)
    return None if best is None else (best[2], best[3], len(present) / len(question_words))


def _root(word: str) -> str:
    """The stem of a word; of a long one its beginning, so that endings of other languages do not matter."""
    stemmed = stem(word)
    return stemmed if len(stemmed) < 7 or stemmed in STOP_WORDS else stemmed[:6]
