"""Facts in plain sentences, and the questions that ask for them, by rules on English words.

A rule reads a sentence from left to right: a subject, a verb that it knows, then what is asked for. What it does not
wholly understand it leaves alone: a question that is not asked does no harm, a wrong one spoils a measurement. The last
rule asks for the number that is missing in a sentence, in any language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from unpoison.text.normalisation import word_set as _word_set
from unpoison.text.sentences import sentences

__all__ = ["Fact", "Kind", "facts_of"]

Kind = Literal["number", "year", "value", "name", "answer", "gap"]
"""number, year: what a sentence counts or dates; value: an entry of a list or table; name: who or what the subject is;
answer: the text under a heading that is a question; gap: a number left out of its sentence."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of a sentence as a question with its answer.

    Attributes:
        kind: By which rule it was found.
        question: In the words of the sentence.
        answer: As written in the sentence.
        proof: The sentence.
    """

    kind: Kind
    question: str
    answer: str
    proof: str


ABBREVIATIONS = _word_set("e.g. i.e. etc. vs. no. dr. mr. mrs. ms. st. approx. inc. ltd.")
"""Abbreviations whose full stop does not end a sentence."""

BE = _word_set("is are was were")
MODAL = _word_set("must can may will should shall could might")
DETERMINERS = _word_set("the a an each every all our your any most some no")
BEFORE_A_NUMBER = _word_set("within after in for at to every by on over under from until than of up most least only")
ROUGHLY = _word_set("about around approximately roughly exactly nearly almost")
PEOPLE = _word_set(
    "contact owner manager head director author founder ceo president lead maintainer chair editor officer"
)

VAGUE = _word_set(
    "it this that these those they there he she we you i one what which who here its their his her my such both among"
)
"""Words that no subject may contain, because they refer to other text."""

OPENING = _word_set(
    "if when while after before because although in on for as at by with imagine note see since until during despite "
    "unlike likewise but and so or then also thus however"
)
"""Words that cannot begin a subject."""

LINKED = _word_set("but and so or then because also thus however therefore otherwise that's still instead")
"""First words of a sentence that continues the previous one."""

IMPERATIVES = _word_set(
    "see open go check run read note tip warning example make provide imagine click visit try remember"
)
"""First words of a sentence or an entry that instructs its reader."""

WITHIN_NAMES = _word_set("of the and in for on at to by with de la le du van von der den & vs.")
"""Small words inside names."""

UNITS = _word_set("percent kg g mg km m cm mm mb gb tb kb ms s kwh kw mw l ml euro people feet")
"""Units without a plural s."""

NO_UNITS = _word_set("and or to by of in on at for as from per is are was but")
CODE = frozenset("{}<>|=\\_*/")

_REGULAR = """
    expire last take cost weigh support store keep allow require need contain hold default run listen start end open
    accept limit return retry wait send receive include cover offer employ serve handle delete remove rotate renew
    measure earn pay charge provide produce scale sleep stop live own operate span consist begin become retain back
    check time ship arrive reply respond grow rise fall close use
"""
VERBS = {f"{verb}s": verb for verb in _REGULAR.split()} | {"has": "have", "reaches": "reach", "processes": "process"}
"""The third person singular, and the verb that a question has after "does"."""

MIN_WORDS, MAX_WORDS = 4, 40
"""Words of a sentence that may hold a fact."""
MAX_SENTENCES = 5000
"""Of one document."""


def facts_of(heading: str, paragraphs: Sequence[str]) -> Iterator[Fact]:
    """The facts under one heading, each rule's on its own; O(n) in the words. Code is skipped."""
    if heading.endswith("?") and paragraphs:
        yield from _heading_facts(heading, paragraphs[0])
    for paragraph in paragraphs[:MAX_SENTENCES]:
        if (entry := _entry(heading, paragraph)) is not None:
            yield entry
        elif not paragraph.startswith("|"):
            for sentence in _sentences(paragraph):
                words = sentence.rstrip(".").split()
                if MIN_WORDS <= len(words) <= MAX_WORDS and sentence.endswith((".", "!")) and not CODE & set(sentence):
                    yield from _facts(words, sentence, heading)


def _sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph without its marks; an abbreviation ends none."""
    text, start = _strip_markup(paragraph), 0
    for _, end in sentences(text):
        last = text[start:end].rsplit(None, 1)[-1].strip("(\"'").lower()
        if last not in ABBREVIATIONS and not (len(last) == 2 and last[0].isalpha()):
            yield text[start:end].strip()
            start = end


def _strip_markup(text: str) -> str:
    """Without the marks of emphasis and code; a link keeps its words."""
    for mark in ("**", "__", "`"):
        text = text.replace(mark, "")
    while (close := text.find("](")) >= 0:
        start, end = text.rfind("[", 0, close), text.find(")", close)
        if start < 0 or end < 0 or text.count("](") > 50:
            return text
        text = text[:start] + text[start + 1 : close] + text[end + 1 :]
    return text


def _heading_facts(heading: str, paragraph: str) -> Iterator[Fact]:
    """The answer in the first sentence under a question: a number in it, or a short sentence as a whole."""
    first = next(_sentences(paragraph), "")
    words = first.rstrip(".").split()
    numbers = [i for i, word in enumerate(words) if _number(word)]
    asks_much = heading.lower().startswith(
        ("how many", "how much", "how long", "how often", "how far", "when", "what is the")
    )
    if len(numbers) == 1 and asks_much:
        yield Fact("answer", heading, " ".join(_quantity(words, numbers[0])[0]), first)
    elif 1 <= len(words) <= 8 and not numbers:
        yield Fact("answer", heading, " ".join(words), first)


def _entry(heading: str, paragraph: str) -> Fact | None:
    """`Timeout: 30 seconds`, or a row of a table with two cells."""
    text = _strip_markup(paragraph).strip()
    if text.startswith("|"):
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        key, value = cells if len(cells) == 2 else ("", "")
    else:
        key, _, value = text.partition(": ")
    key, value = key.strip(" :"), value.strip().rstrip(".")
    if not (1 <= len(key.split()) <= 5 and 1 <= len(value.split()) <= 7 and heading and not heading.endswith("?")):
        return None
    if (CODE - {"/", "_"}) & set(key + value):
        return None
    if "://" in value or "\u2192" in value:
        return None
    if (
        not key[0].isalpha()
        or not any(map(str.isalnum, value))
        or not (any(map(str.isdigit, value)) or value[0].isupper())
    ):
        return None
    be = "are" if key.endswith("s") and not key.endswith(("ss", "us", "is")) else "is"
    named = key if key[:2].isupper() else key[0].lower() + key[1:]
    return Fact("value", f"What {be} the {named} under “{heading}”?", value, f"{key}: {value}")


def _facts(words: list[str], sentence: str, heading: str) -> Iterator[Fact]:
    verb = next((i for i, w in enumerate(words[1:9], 1) if w in BE or w in MODAL or w in VERBS), None)
    numbers = [i for i, word in enumerate(words) if _number(word)]
    subject = None if verb is None else _subject(words[:verb], heading)
    fact: Fact | None = None
    if verb is not None and subject is not None:
        if len(numbers) == 1 and numbers[0] > verb:
            fact = _count_fact(words, verb, numbers[0], subject, sentence)
        elif not numbers and words[verb] in BE:
            fact = _name(words, verb, subject, sentence)
    if fact is not None:
        yield fact
    elif len(numbers) == 1 and len(words) >= 6 and not words[numbers[0]].endswith(".") and _stands_alone(words):
        number = numbers[0]
        gap = " ".join(
            [*words[:number], "___" + words[number][len(words[number].rstrip(",;:%")) :], *words[number + 1 :]]
        )
        yield Fact("gap", f"Which number is missing in “{gap}”?", words[number].strip(",;:%()"), sentence)


def _stands_alone(words: Sequence[str]) -> bool:
    """Whether a sentence can be read without the one before it, as far as its first words tell."""
    first = [word.strip(",;:").lower() for word in words[:3]]
    return first[0] not in LINKED and first[0] not in IMPERATIVES and VAGUE.isdisjoint(first)


def _count_fact(words: list[str], verb: int, number: int, subject: str, sentence: str) -> Fact | None:
    """A question for the number behind the verb."""
    quantity, unit, after = _quantity(words, number)
    between, tail = [w for w in words[verb + 1 : number] if w.lower() not in ROUGHLY], words[after:]
    if len(tail) > 8 or any(w.endswith((",", ";", ":")) for w in (*between, *quantity)):
        return None
    start = len(between)
    while start and between[start - 1].lower() in BEFORE_A_NUMBER:
        start -= 1
    rest, lead = between[:start], between[start:]
    verb_word, answer = words[verb], " ".join(quantity)
    if verb_word in BE and not between and not tail:
        return Fact("number", f"What {verb_word} {subject}?", answer, sentence)
    if not unit and _year(words[number]) and verb_word in ("was", "were") and lead == ["in"] and 1 <= len(rest) <= 4:
        return _fact("year", ["In which year", verb_word, subject, *rest, *tail], answer, sentence)
    if not _is_unit(unit, quantity[0]) or len(rest) > 3 or "of" in rest:
        return None
    how = "how many" if unit[0].isalpha() else "how much"
    which = " ".join([*lead, how, *([] if how == "how much" else [unit])])
    if tail[:1] == ["of"]:
        which, tail = " ".join([which, *tail]), []
    which = which[0].upper() + which[1:]
    if (verb_word in MODAL or verb_word in BE) and rest and lead:
        return _fact("number", [which, verb_word, subject, *rest, *tail], answer, sentence)
    if verb_word in VERBS:
        return _fact("number", [which, "does", subject, VERBS[verb_word], *rest, *tail], answer, sentence)
    return None


def _fact(kind: Kind, words: Sequence[str], answer: str, proof: str) -> Fact:
    return Fact(kind, f"{' '.join(words)}?", answer, proof)


def _name(words: list[str], verb: int, subject: str, sentence: str) -> Fact | None:
    """A question for the name behind the verb ("the owner is Maria Lopez")."""
    name = words[verb + 1 :]
    if not 1 <= len(name) <= 4 or not all(word[0].isupper() for word in name) or words[verb] not in ("is", "was"):
        return None
    who = "Who" if PEOPLE & {word.lower() for word in words[:verb]} else "What"
    return Fact("name", f"{who} {words[verb]} {subject}?", " ".join(name), sentence)


def _subject(words: Sequence[str], heading: str) -> str | None:
    """The subject as written in a question, None if it is meaningless alone.

    "The film" alone is replaced by the heading above it.
    """
    first, text = words[0], " ".join(words)
    if not 1 <= len(words) <= 8 or VAGUE & {word.lower() for word in words} or first.lower() in OPENING:
        return None
    if any(word.endswith((",", ";", ":")) for word in words) or text.count("(") != text.count(")"):
        return None
    determined = first.lower() in DETERMINERS
    if text.count('"') % 2 or "()" in text or len(text) < 2 or not (determined or first[0].isupper()):
        return None
    named = all(word[0].isupper() or word[0].isdigit() or word.lower() in WITHIN_NAMES for word in words)
    if not (determined or named or len(words) <= 3 or _ordinary(words)):
        return None
    lowered = " ".join([first.lower(), *words[1:]]) if determined or _ordinary(words) else text
    if first.lower() in ("the", "our", "your") and len(words) == 2 and words[1].islower():
        if words[1].rstrip("s") in heading.lower():
            return lowered
        return f"{lowered} (“{heading}”)" if heading and not heading.endswith("?") else None
    return lowered


def _ordinary(words: Sequence[str]) -> bool:
    """Whether the first word is likely no name: a plural before small words, or alone."""
    return words[0].endswith("s") and words[0][1:].islower() and all(word.islower() for word in words[1:])


def _is_unit(unit: str, number: str) -> bool:
    first = unit.split(" ")[0]
    return bool(unit) and (not unit[0].isalpha() or first.endswith("s") or first.lower() in UNITS or number == "1")


def _number(word: str) -> bool:
    bare = word.strip("$€£,;:%()\"'“”")
    return bool(bare) and bare[0].isdigit() and all(c.isdigit() or c in ".,:-" for c in bare)


def _year(word: str) -> bool:
    bare = word.strip(",;:()")
    return len(bare) == 4 and bare.isdigit() and 1000 <= int(bare) <= 2100


def _quantity(words: Sequence[str], number: int) -> tuple[list[str], str, int]:
    """The number with its unit, the unit, and the end of the quantity."""
    bare = words[number].rstrip(",;:")
    if bare.endswith("%") or bare[0] in "$€£":
        return [bare], "%" if bare.endswith("%") else bare[0], number + 1
    following = words[number + 1 : number + 4]
    if bare != words[number] or not following or not following[0].rstrip(",;:.").isalpha():
        return [bare], "", number + 1
    first = following[0].rstrip(",;:")
    if first.lower() in NO_UNITS:
        return [bare], "", number + 1
    if first == following[0] and len(following) == 3 and following[1] in ("per", "a"):
        return (
            [bare, first, following[1], following[2].rstrip(",;:")],
            f"{first} {following[1]} {following[2]}",
            number + 4,
        )
    return [bare, first], first, number + 2
