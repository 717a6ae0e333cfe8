"""What kind of answer a question asks for, and the spans of a sentence that could be one.

The rules are those of classic factoid question answering: the question word and its head noun give the expected
type (who: a name; when: a date; how many: a number ...), and surface patterns find spans of that type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from unpoison.models.sentences import STOP_WORDS, Sentence, split, stem

__all__ = ["AnswerType", "Question", "Span", "read_question", "spans"]

AnswerType: TypeAlias = Literal["person", "place", "date", "number", "polar", "choice", "thing"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the reader sees it.

    Attributes:
        text: As asked.
        kind: The expected type of its answer.
        stems: Its stems in order.
        content: The distinct stems that are no function words; all stems where it has function words only.
        head: Stems of the noun that the answer is or counts ("what county", "how many seasons"), possibly empty.
        predicate: The stem of the verb whose subject is asked for ("who wrote", "which team won"), possibly empty.
        options: The alternatives of an "A or B" question.
    """

    text: str
    kind: AnswerType
    stems: tuple[str, ...]
    content: frozenset[str]
    head: frozenset[str] = frozenset()
    predicate: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Words `start` to `end` (exclusive) of a sentence, and how well they fit the expected type, in (0, 1]."""

    start: int
    end: int
    fit: float


_MONTHS = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec""".split()
)
_WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_NUMBERS = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion
    half dozen once twice first second third""".split()
)
_SCALES = frozenset("hundred thousand million billion trillion dozen percent half".split())
_UNITS = frozenset(
    map(
        stem,
        """second minute hour day week month year decade century inch foot feet yard mile meter metre kilometer kilometre
        centimeter millimeter km cm mm mi ft lb pound ounce gram kilogram kg mg ton liter litre gallon dollar euro cent
        percent degree celsius fahrenheit mph episode season point time people""".split(),
    )
)
_AUXILIARIES = frozenset(
    """is are was were am do does did can could has have had will would should may might must isn't aren't wasn't
    weren't don't doesn't didn't can't won't""".split()
)
_DATE_HEADS = frozenset(map(stem, "year date month day century decade time era".split()))
_NUMBER_HEADS = frozenset(
    map(
        stem,
        """number age percentage percent amount population cost price temperature length height weight distance salary
        rate speed size""".split(),
    )
)
_PERSON_HEADS = frozenset(
    map(
        stem,
        """person man woman actor actress author writer singer artist president player politician king queen director
        lawmaker scientist composer musician""".split(),
    )
)
_PLACE_HEADS = frozenset(
    map(stem, "city country state county town place location continent region province island nation village".split())
)
_QUANTITIES = frozenset("many much long old far tall big high deep fast often heavy large wide hot cold".split())
_DATE = re.compile(r"1\d{3}s?|20\d{2}s?")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_OFFERED = re.compile(r"[,:]\s*([^,:]+?),?\s+or\s+([^,:?]+?)(?:\s*[?,]|\s*$)", re.IGNORECASE)
_OFFERED_WORDS = re.compile(r"([\w-]+)\s+or\s+((?:(?:the|a|an)\s+)?[\w-]+)", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_DEMONYM = re.compile(r"(?:[A-Z]\w*(?:ish|ese|ian|ican|ean)|French|Dutch|German|Greek)")
_CONNECTORS = frozenset("of de la le van von der den del di da bin al".split())
_LOCATIVES = frozenset("in at from near to on of within outside inside across around".split())
_LONGEST_NAME = 6


def read_question(text: str) -> Question:
    """Analyse a question; any text is one."""
    sentences = split(text)
    words = [word.lower() for sentence in sentences for word in sentence.words]
    stems = tuple(s for sentence in sentences for s in sentence.stems)
    content = frozenset(stems) - STOP_WORDS or frozenset(stems)
    asked = _asked(words)
    if words and words[0] in _AUXILIARIES:
        options = _options(text, words)
        return Question(text, "choice" if options else "polar", stems, content, options=options)
    kind, head = _expected(words, stems, asked)
    options = _options(text, words) if kind in ("thing", "person", "place") else ()
    predicate = _predicate(words, stems, asked) if kind in ("person", "thing") else ""
    return Question(text, "choice" if options else kind, stems, content, head, predicate, options)


_WH = frozenset("who whom whose when where what which how why".split())


def _asked(words: list[str]) -> int:
    """Where the question word stands: at the beginning, else the last one, for earlier ones open relative clauses."""
    found = [i for i, word in enumerate(words) if word in _WH]
    return len(words) if not found else found[0] if found[0] < 2 else found[-1]


def _expected(words: list[str], stems: tuple[str, ...], asked: int) -> tuple[AnswerType, frozenset[str]]:
    """The type and the head noun that the question word at position `asked` announces."""
    if asked == len(words):
        head = frozenset(stems[:2]) - STOP_WORDS
        return _by_head(head), head
    word = words[asked]
    following = words[asked + 1] if asked + 1 < len(words) else ""
    if word in ("who", "whom", "whose"):
        return "person", frozenset()
    if word == "when":
        return "date", frozenset()
    if word == "where":
        return "place", frozenset()
    if word == "how":
        return ("number" if following in _QUANTITIES else "thing"), _head(words, stems, asked + 2)
    head = _head(words, stems, asked + 1)
    return _by_head(head), head


def _by_head(head: frozenset[str]) -> AnswerType:
    if head & _DATE_HEADS:
        return "date"
    if head & _NUMBER_HEADS:
        return "number"
    if head & _PERSON_HEADS:
        return "person"
    return "place" if head & _PLACE_HEADS else "thing"


def _head(words: list[str], stems: tuple[str, ...], start: int) -> frozenset[str]:
    """The stems of the noun phrase behind the question word: "what [is the] county seat [of ...]"."""
    while (
        start < len(words) and start < 8 and (words[start] in _AUXILIARIES or words[start] in ("the", "a", "an", "of"))
    ):
        start += 1
    end = start
    while end < len(words) and end - start < 3 and stems[end] not in STOP_WORDS and words[end] not in _AUXILIARIES:
        end += 1
    return frozenset(stems[start:end])


def _predicate(words: list[str], stems: tuple[str, ...], asked: int) -> str:
    """The stem behind "who", the auxiliaries skipped: "who [has] sung", but nothing in "who is the king"."""
    position = asked + 1
    while position < len(words) and words[position] in _AUXILIARIES:
        position += 1
    if position < len(words) and words[asked] == "who" and stems[position] not in STOP_WORDS:
        return stems[position]
    return ""


def _options(text: str, words: list[str]) -> tuple[str, ...]:
    """The alternatives of "..., A or B?"; empty where the question offers none."""
    if words.count("or") != 1 or len(text) > 1000:
        return ()
    offered = _OFFERED.search(text)
    if offered is None or max(len(part.split()) for part in offered.groups()) > _LONGEST_NAME:
        offered = _OFFERED_WORDS.search(text)
    if offered is None:
        return ()
    first, second = (_ARTICLE.sub("", part.strip()) for part in offered.groups())
    return (first, second) if split(first) and split(second) else ()


def spans(sentence: Sentence, question: Question) -> list[Span]:
    """Spans of the sentence that could be the answer: of the expected type, and not made of the question's words."""
    if question.kind == "choice":
        return list(_mentions(sentence, question.options))
    if question.kind == "date":
        found = _dates(sentence)
    elif question.kind == "number":
        found = _numbers(sentence, question.head)
    else:
        found = [*_names(sentence, question.kind), *_chunks(sentence, question)]
    asked = frozenset(question.stems)
    made = []
    for span in found:
        stems = sentence.stems[span.start : span.end]
        news = sum(s not in asked and s not in STOP_WORDS for s in stems)
        if news:
            made.append(Span(span.start, span.end, span.fit * news / sum(s not in STOP_WORDS for s in stems)))
    return made


def _mentions(sentence: Sentence, options: tuple[str, ...]) -> Iterator[Span]:
    """Where the sentence names the alternatives; the one named first is more likely its subject."""
    found = []
    for option in options:
        stems = tuple(s for part in split(option) for s in part.stems)
        places = [i for i in range(len(sentence.stems)) if sentence.stems[i : i + len(stems)] == stems]
        if places:
            found.append((places[0], places[0] + len(stems)))
    for order, (start, end) in enumerate(sorted(found)):
        yield Span(start, end, 1.0 if order == 0 else 0.5)


def _dates(sentence: Sentence) -> Iterator[Span]:
    lowered = [word.lower() for word in sentence.words]
    position = 0
    while position < len(lowered):
        end = position
        while end < len(lowered) and _dated(lowered, end):
            end += 1
        if end == position:
            position += 1
            continue
        run = lowered[position:end]
        if any(_DATE.fullmatch(word) for word in run) or run[-1] in ("century", "bc", "ad", "bce", "ce"):
            yield Span(position, end, 1.0)
        elif any(word in _MONTHS for word in run) and (len(run) > 1 or run[0] not in ("may", "march")):
            yield Span(position, end, 0.9)
        elif any(word in _WEEKDAYS for word in run):
            yield Span(position, end, 0.5)
        position = end


def _dated(lowered: list[str], position: int) -> bool:
    """Whether a word can be part of a date."""
    word = lowered[position]
    if word in _MONTHS or word in _WEEKDAYS or _DATE.fullmatch(word):
        return True
    near = lowered[max(0, position - 1) : position] + lowered[position + 1 : position + 2]
    if word in ("century", "bc", "bce", "ad", "ce"):
        return any(n[:1].isdigit() for n in near)
    if word.isdigit() and any(n in ("bc", "bce", "ad", "ce") for n in near):
        return True
    if word.isdigit() and len(word) <= 2 or _ORDINAL.fullmatch(word):
        return any(n in _MONTHS or n in ("century", "bc", "bce") for n in near)
    return False


def _numbers(sentence: Sentence, head: frozenset[str]) -> Iterator[Span]:
    words, stems = sentence.words, sentence.stems
    position = 0
    while position < len(words):
        end = position
        while end < len(words) and _numeric(words[end]):
            end += 1
        if end == position:
            position += 1
            continue
        alone = end - position == 1
        year = alone and _DATE.fullmatch(words[position]) is not None
        article = alone and words[position].lower() in ("one", "second", "first", "third")
        counts = bool(head & set(stems[end : end + 3]))
        unit = end < len(words) and stems[end] in _UNITS
        money = sentence.text[max(0, sentence.starts[position] - 1)] in "$£€¥"
        fit = 1.0 if counts or money else 0.7 if unit or words[end - 1].endswith("%") else 0.4
        if not counts and not money and (year or article):
            fit = 0.1
        yield Span(position, end + 1 if unit else end, fit)
        position = end


def _numeric(word: str) -> bool:
    lowered = word.lower()
    if lowered[0].isdigit():
        return not _ORDINAL.fullmatch(lowered)
    return all(part in _NUMBERS for part in lowered.split("-"))


def _names(sentence: Sentence, kind: AnswerType) -> Iterator[Span]:
    """Maximal runs of capitalised words, with connectors inside and initials' full stops."""
    words = sentence.words
    position = 0
    while position < len(words):
        if not _capital(words, position):
            position += 1
            continue
        end = position + 1
        while end < len(words) and _joined(sentence, end - 1):
            if _capital(words, end) or (words[end].isdigit() and kind != "person"):
                end += 1
            elif words[end].lower() in _CONNECTORS and end + 1 < len(words) and _capital(words, end + 1):
                end += 2
            else:
                break
        yield Span(position, end, _name_fit(words, position, end, kind))
        position = end


def _capital(words: tuple[str, ...], position: int) -> bool:
    word = words[position]
    return word[0].isupper() and (len(word) > 1 or word not in ("A", "I")) and word.lower() not in STOP_WORDS


def _joined(sentence: Sentence, position: int) -> bool:
    gap = sentence.gap(position)
    return gap == " " or (gap == ". " and len(sentence.words[position]) <= 3) or gap in (".", ' "', '" ')


def _name_fit(words: tuple[str, ...], start: int, end: int, kind: AnswerType) -> float:
    lowered = [word.lower() for word in words[start:end]]
    dated = lowered[0] in _WEEKDAYS or (lowered[0] in _MONTHS and (words[end - 1].isdigit() or _dated(lowered[:1], 0)))
    if dated or (end < len(words) and lowered[-1] in _MONTHS and words[end].isdigit()):
        return 0.1
    if end - start > _LONGEST_NAME:
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


def _chunks(sentence: Sentence, question: Question) -> Iterator[Span]:
    """Runs of words that neither are function words nor stand in the question: what else the sentence says."""
    fit = {"thing": 0.6, "place": 0.3}.get(question.kind, 0.15)
    stems = sentence.stems
    position = 0
    while position < len(stems):
        end = position
        while (
            end < len(stems)
            and stems[end] not in STOP_WORDS
            and stems[end] not in question.content
            and end - position < 4
        ):
            if end > position and sentence.gap(end - 1) != " ":
                break
            end += 1
        if end > position:
            verbal = end - position == 1 and sentence.words[position].endswith(("ing", "ed", "ly"))
            yield Span(position, end, fit / 2 if verbal else fit)
        position = max(end, position + 1)
