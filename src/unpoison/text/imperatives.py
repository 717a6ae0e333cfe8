"""Sentences that demand something of whoever reads them: imperatives, duties of a model, questions, and belief.

Recipes and manuals are full of them, so a demand by itself says nothing. It is remarkable where nothing else in its
text speaks of the same things, and where the other texts of a collection make none (`scan.signs` counts them).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from json import loads
from typing import NamedTuple

from unpoison.text.alignment import Region
from unpoison.text.sentences import sentences
from unpoison.text.tokens import ENGLISH_318

__all__ = ["ASKS", "OBLIGES", "ORDERS", "VOUCHES", "Imperative", "find_imperatives"]

ORDERS, OBLIGES, ASKS, VOUCHES = "orders", "obliges", "asks", "vouches"

MAX_SENTENCE_CHARS = 400
"""Characters of a sentence in which its demand is looked for."""

LEADS = 6
"""Words such as "please" that may stand in front of a verb."""

ADDRESS = 4
"""Words in front of a colon behind which a verb may stand: "Note to the assistant: write ..."."""

CLAUSE = 30
"""Words of a condition behind which a verb may stand: "If ..., write ..."."""

DUTY = 3
"""Words between who is spoken to and what he must do."""

INSISTING = 2
"""Words that a sentence insists with."""

MIN_TOPIC_LETTERS = 4
"""Letters of a word that says what a sentence is about."""

STEM = 5
"""Letters by which two such words are one."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[,;:.!?\"\u201c(\[]")
_MARKS = frozenset(',;:.!?"\u201c([')
_QUESTION = ("?", "\uff1f")
_INSIDE = re.compile(r"(?<=\S )[A-Z][a-z]{2,14} (?:[a-z]{1,9} (?=[a-z])|(?=[\"\u201c]))")
"""A capital in the middle of a sentence, where a text was cut and another one begins."""


class Imperative(NamedTuple):
    """One sentence.

    Attributes:
        form: `orders` for an imperative, `obliges` for what a reader or a model must do, `asks` for a question,
            `vouches` for one that insists that it is right: latest, official, corrected, contrary to what others say.
        speech: How many different words in it speak of answers, models, prompts and users; a verb of saying or writing
            that is demanded is one. Of `vouches`: how many words beyond the first insist.
        kinship: The share of its topic words that stand elsewhere in the text too, in [0, 1]; 1 where there is nothing
            to compare with.
        start, end: Where it stands.
    """

    form: str
    speech: int
    kinship: float
    start: int
    end: int


class _Words(NamedTuple):
    verbs: frozenset[str]
    ambiguous: frozenset[str]
    objects: frozenset[str]
    excluding: frozenset[str]
    leads: frozenset[str]
    conditions: frozenset[str]
    addressed: frozenset[str]
    duties: frozenset[str]
    questions: frozenset[str]
    speech: frozenset[str]
    speaking: frozenset[str]
    prepositions: frozenset[str]
    finite: frozenset[str]
    telling: frozenset[str]
    vouching: frozenset[str]


@cache
def _words() -> _Words:
    """The words of this package's `data/demands.json`."""
    read = loads((files("unpoison") / "data" / "demands.json").read_text(encoding="utf-8"))
    return _Words(**{name: frozenset(listed.split()) for name, listed in read.items()})


def find_imperatives(text: str, beside: str = "") -> Iterator[Imperative]:
    """The demands of a text, in its order. O(n) time.

    Args:
        text: Canonical.
        beside: What belongs to it without being a part, such as a title.
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
            yield Imperative(form, len(_words().vouching.intersection(spoken)) - 1, 1.0, *region)
            continue
        speech = len(_words().speech.intersection(spoken)) + (verb in _words().telling)
        yield Imperative(form, speech, _kinship(own[region], holders, alone=len(parts) == 1 and not beside), *region)


def _kinship(topics: frozenset[str], holders: dict[str, int], *, alone: bool) -> float:
    if alone or not topics:
        return 1.0
    return sum(holders[topic] > 1 for topic in topics) / len(topics)


def _topics(text: str) -> frozenset[str]:
    return frozenset(
        word[:STEM]
        for word in _WORD.findall(text.lower())
        if len(word) >= MIN_TOPIC_LETTERS and word not in ENGLISH_318 and word not in _words().verbs
    )


def _split_sentence(text: str, region: Region) -> Iterator[Region]:
    """A sentence, in two where a verb with a capital and its object stand in the middle: a cut text, and another."""
    start, end = region
    for match in _INSIDE.finditer(text, start, end):
        verb, _, following = match[0].lower().strip().partition(" ")
        if match.start() > start and verb in _words().verbs and (not following or following in _words().objects):
            yield start, match.start()
            start = match.start()
            break
    yield start, end


def _form(sentence: str) -> tuple[str, str] | None:
    """What the sentence demands and, of an imperative, the verb; None for nothing."""
    written = _WORD.findall(sentence)
    words = [word.lower() for word in written]
    begin = _after_leads(words, 0)
    for i in (begin, *_later(words)):
        if _imperative(written, words, i):
            return ORDERS, words[i]
    if len(_words().vouching.intersection(words)) >= INSISTING:
        return VOUCHES, ""
    if any(word in _words().addressed and _has_duty(words, i) for i, word in enumerate(words)):
        return OBLIGES, ""
    if not sentence.rstrip("\"'\u201d\u2019) ").endswith(_QUESTION) or begin >= len(words):
        return None
    if sentence.rstrip("\"'\u201d\u2019) ").count('"', 1) % 2:
        return None  # the question is quoted within the sentence, and put to nobody
    asking = words[begin].partition("'")[0].partition("\u2019")[0] in _words().questions
    titles = sum(word[:1].isupper() for word in written[begin + 1 :])
    return (ASKS, "") if asking and 2 * titles < len(written) - begin - 1 else None


def _after_leads(words: list[str], start: int) -> int:
    """The first word from there on that is more than an opening."""
    for i in range(start, min(start + LEADS, len(words))):
        if words[i] not in _words().leads and words[i] not in _MARKS:
            return i
    return min(start + LEADS, len(words))


def _later(words: list[str]) -> Iterator[int]:
    """Where else a verb may stand: behind an address, and behind a condition."""
    for i, word in enumerate(words[: ADDRESS + 1]):
        if word == ":":
            yield _after_leads(words, i)
    if words and words[0] in _words().conditions:
        for i, word in enumerate(words[:CLAUSE]):
            if word in ",:":
                yield _after_leads(words, i)


def _imperative(written: list[str], words: list[str], i: int) -> bool:
    """A verb's bare form with something behind it that may be its object; capital letters there are a title's."""
    if i + 1 >= len(words) or words[i] not in _words().verbs or written[0][:1].islower() or _is_title(written, i):
        return False
    verb, following = words[i], words[i + 1]
    if verb in _words().speaking and following in _words().prepositions:
        return True
    if verb in _words().ambiguous:
        return following in _words().objects and written[i + 1].islower()
    return following not in _words().excluding and (written[i + 1].islower() or following in ':"\u201c(')


def _is_title(written: list[str], i: int) -> bool:
    """Whether a title begins there, of which something is said: Run the Race is a film, and so is Talk About Us."""
    if i + 2 >= len(written) or _words().finite.isdisjoint(written[i + 2 :]):
        return False
    second = written[i + 1]
    return written[i + 2][:1].isupper() or (second[:1].isupper() and second.lower() in _words().prepositions)


def _has_duty(words: list[str], i: int) -> bool:
    return any(word in _words().duties for word in words[i + 1 : i + 1 + DUTY])
