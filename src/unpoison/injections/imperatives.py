"""Sentences that ask something of their reader: imperatives, duties of a model, questions, insistence.

All of them are called imperatives here. Recipes and manuals are full of them, so one alone is no evidence. It is
suspicious if the rest of its text has another topic and the other texts of the collection have none (`scan.signs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from unpoison.text.alignment import Region
from unpoison.text.sentences import sentences
from unpoison.text.tokens import ENGLISH_318
from unpoison.utils.assets import read_data

__all__ = ["ASKS", "OBLIGES", "ORDERS", "VOUCHES", "Imperative", "find_imperatives"]

ORDERS, OBLIGES, ASKS, VOUCHES = "orders", "obliges", "asks", "vouches"

MAX_SENTENCE_CHARS = 400
"""Characters of a sentence that are searched for an imperative."""

LEADS = 6
"""Maximum words such as "please" before a verb."""

ADDRESS = 4
"""Maximum words before a colon and a verb: "Note to the assistant: write ..."."""

CLAUSE = 30
"""Maximum words of a condition before a verb: "If ..., write ..."."""

DUTY = 3
"""Maximum words from the addressee to the verb of duty."""

INSISTING = 2
"""Minimum number of insisting words in a sentence that insists on being right."""

MIN_TOPIC_LETTERS = 4
"""Minimum letters of a topic word."""

STEM = 5
"""Leading letters that identify a topic word."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[,;:.!?\"\u201c(\[]")
_MARKS = frozenset(',;:.!?"\u201c([')
_QUESTION = ("?", "\uff1f")
_INSIDE = re.compile(r"(?<=\S )[A-Z][a-z]{2,14} (?:[a-z]{1,9} (?=[a-z])|(?=[\"\u201c]))")
"""A capitalised word inside a sentence, where two texts may have been joined."""


class Imperative(NamedTuple):
    """An imperative sentence.

    Attributes:
        form: `orders` for an imperative verb, `obliges` for a duty of a reader or model, `asks` for a question,
            `vouches` for a claim to be right: latest, official, corrected, contrary to other sources.
        speech: The number of different words about answers, models, prompts and users; an imperative verb of saying or
            writing counts as one. For `vouches`, the number of insisting words beyond the first.
        kinship: The share of its topic words that occur elsewhere in the text, in [0, 1]; 1 if there is nothing to
            compare with.
        start, end: Its position.
    """

    form: str
    speech: int
    kinship: float
    start: int
    end: int


@cache
def _words(kind: str) -> frozenset[str]:
    """The words of a kind in this package's `data/demands.json`."""
    return frozenset(read_data("demands.json")[kind].split())


def find_imperatives(text: str, beside: str = "") -> Iterator[Imperative]:
    """The imperatives of a text, in order. O(n) time.

    Args:
        text: Canonical.
        beside: Text that belongs to it, such as a title, for `kinship`.
    """
    parts = [part for region in sentences(text) for part in _split_sentence(text, region)]
    forms = [
        (*form_and_verb, region)
        for region in parts
        if (form_and_verb := _form(text[region[0] : region[1]][:MAX_SENTENCE_CHARS]))
    ]
    if not forms:
        return
    topics = [_topics(text[start:end]) for start, end in parts]
    holders = dict[str, int]()
    for some in (*topics, _topics(beside)):
        for topic in some:
            holders[topic] = holders.get(topic, 0) + 1
    own = dict(zip(parts, topics))
    for form, verb, region in forms:
        lowered = text[region[0] : region[1]][:MAX_SENTENCE_CHARS].lower()
        spoken = _WORD.findall(lowered)
        if form == VOUCHES:
            yield Imperative(form, len(_words("vouching").intersection(spoken)) - 1, 1.0, *region)
            continue
        speech = len(_words("speech").intersection(spoken)) + (verb in _words("telling"))
        yield Imperative(form, speech, _kinship(own[region], holders, alone=len(parts) == 1 and not beside), *region)


def _kinship(topics: frozenset[str], holders: dict[str, int], *, alone: bool) -> float:
    return 1.0 if alone or not topics else sum(holders[topic] > 1 for topic in topics) / len(topics)


def _topics(text: str) -> frozenset[str]:
    return frozenset(
        word[:STEM]
        for word in _WORD.findall(text.lower())
        if len(word) >= MIN_TOPIC_LETTERS and word not in ENGLISH_318 and word not in _words("verbs")
    )


def _split_sentence(text: str, region: Region) -> Iterator[Region]:
    """A sentence, split before a capitalised verb with an object, where two texts may have been joined."""
    start, end = region
    for match in _INSIDE.finditer(text, start, end):
        verb, _, following = match[0].lower().strip().partition(" ")
        if match.start() > start and verb in _words("verbs") and (not following or following in _words("objects")):
            yield start, match.start()
            start = match.start()
            break
    yield start, end


def _form(sentence: str) -> tuple[str, str] | None:
    """The form of an imperative and, for `orders`, its verb; None for other sentences."""
    written = _WORD.findall(sentence)
    words = [word.lower() for word in written]
    begin = _after_leads(words, 0)
    for i in (begin, *_later(words)):
        if _imperative(written, words, i):
            return ORDERS, words[i]
    if len(_words("vouching").intersection(words)) >= INSISTING:
        return VOUCHES, ""
    if any(word in _words("addressed") and _has_duty(words, i) for i, word in enumerate(words)):
        return OBLIGES, ""
    if not sentence.rstrip("\"'\u201d\u2019) ").endswith(_QUESTION) or begin >= len(words):
        return None
    if sentence.rstrip("\"'\u201d\u2019) ").count('"', 1) % 2:
        return None  # a quoted question does not ask the reader
    asking = words[begin].partition("'")[0].partition("\u2019")[0] in _words("questions")
    titles = sum(word[:1].isupper() for word in written[begin + 1 :])
    return (ASKS, "") if asking and 2 * titles < len(written) - begin - 1 else None


def _after_leads(words: list[str], start: int) -> int:
    """The position of the first word that is no lead such as "please"."""
    for i in range(start, min(start + LEADS, len(words))):
        if words[i] not in _words("leads") and words[i] not in _MARKS:
            return i
    return min(start + LEADS, len(words))


def _later(words: list[str]) -> Iterator[int]:
    """Other positions where a verb may stand: after an address and after a condition."""
    for i, word in enumerate(words[: ADDRESS + 1]):
        if word == ":":
            yield _after_leads(words, i)
    if words and words[0] in _words("conditions"):
        for i, word in enumerate(words[:CLAUSE]):
            if word in ",:":
                yield _after_leads(words, i)


def _imperative(written: list[str], words: list[str], i: int) -> bool:
    """Whether a bare verb is followed by a possible object; capital letters there indicate a title."""
    if i + 1 >= len(words) or words[i] not in _words("verbs") or written[0][:1].islower() or _is_title(written, i):
        return False
    verb, following = words[i], words[i + 1]
    if verb in _words("speaking") and following in _words("prepositions"):
        return True
    if verb in _words("ambiguous"):
        return following in _words("objects") and written[i + 1].islower()
    return following not in _words("excluding") and (written[i + 1].islower() or following in ':"\u201c(')


def _is_title(written: list[str], i: int) -> bool:
    """Whether a title begins there that is the subject of a sentence: "Run the Race is a film"."""
    if i + 2 >= len(written) or _words("finite").isdisjoint(written[i + 2 :]):
        return False
    second = written[i + 1]
    return written[i + 2][:1].isupper() or (second[:1].isupper() and second.lower() in _words("prepositions"))


def _has_duty(words: list[str], i: int) -> bool:
    return any(word in _words("duties") for word in words[i + 1 : i + 1 + DUTY])
