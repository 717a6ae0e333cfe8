"""Facts in plain sentences, and the questions that ask for them, by rules on words.

A rule asks for an entry of a list or table, for what stands under a heading that is a question, or for the number that
is missing in a sentence, in any language. What it does not wholly understand it leaves alone: a question that is not
asked does no harm, a wrong one spoils a measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from unpoison.text.sentences import sentences
from unpoison.text.tokens import word_set as _word_set

__all__ = ["Fact", "facts_of"]

Kind = Literal["answer", "value", "gap"]
"""answer: the text under a heading that is a question; value: an entry of a list or table; gap: a number that is left
out of its sentence."""


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

VAGUE = _word_set(
    "it this that these those they there he she we you i one what which who here its their his her my such both among"
)
"""Words that refer to other text: no sentence that stands alone begins with them."""

LINKED = _word_set("but and so or then because also thus however therefore otherwise that's still instead")
"""First words of a sentence that continues the previous one."""

IMPERATIVES = _word_set(
    "see open go check run read note tip warning example make provide imagine click visit try remember"
)
"""First words of a sentence or an entry that instructs its reader."""

CODE = frozenset("{}<>|=\\_*/")

MIN_WORDS, MAX_WORDS = 5, 40
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
                    yield from _gap(words, sentence)


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
        yield Fact("answer", heading, _bare(words[numbers[0]]), first)
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


def _gap(words: list[str], sentence: str) -> Iterator[Fact]:
    """The only number of a sentence that stands alone."""
    numbers = [i for i, word in enumerate(words) if _number(word)]
    if len(numbers) != 1 or words[numbers[0]].endswith(".") or not _stands_alone(words):
        return
    number = words[numbers[0]]
    words[numbers[0]] = "___" + number[len(number.rstrip(",;:%")) :]
    yield Fact("gap", f"Which number is missing in “{' '.join(words)}”?", _bare(number), sentence)


def _bare(number: str) -> str:
    return number.strip(",;:%()")


def _stands_alone(words: Sequence[str]) -> bool:
    """Whether a sentence can be read without the one before it, as far as its first words tell."""
    first = [word.strip(",;:").lower() for word in words[:3]]
    return first[0] not in LINKED and first[0] not in IMPERATIVES and VAGUE.isdisjoint(first)


def _number(word: str) -> bool:
    bare = word.strip("$€£,;:%()\"'“”")
    return bool(bare) and bare[0].isdigit() and all(c.isdigit() or c in ".,:-" for c in bare)
