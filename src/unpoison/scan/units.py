"""What is judged at once: a document, or a stretch of a long one, and the question that finds its neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from unpoison.scan.documents import Document
from unpoison.text.canonical import MAX_TEXT_CHARS, Hidden, canonical
from unpoison.text.sentences import SENTENCE_END

__all__ = ["Probe", "Unit", "probe", "sentences", "units_of"]

MAX_CHARACTERS = 2_000
"""Characters of a document that is judged in one piece, and of a stretch of a longer one."""

MIN_CHARACTERS = 1_200
"""From this many characters a stretch ends with its sentence."""

_SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of a document.

    Attributes:
        document: The document's number.
        text: The stretch, canonical, behind the title where it is the first one.
        body: The same without the title.
        title: The document's title, canonical; empty without one.
        start, end: Where it stands in the caller's text; the whole piece of it where that cannot be said exactly.
        hidden: What was hidden in the document's piece that it comes from; only its first stretch has it.
    """

    document: int
    text: str
    body: str
    title: str
    start: int
    end: int
    hidden: Hidden


def units_of(document: Document, number: int) -> Iterator[Unit]:
    """The stretches of a document, the whole of it however long; O(n) time, one piece in memory at a time."""
    passage = document.passage
    heading = canonical(passage.title or "")
    title = heading.text
    shown = "" if not title or passage.text.startswith(passage.title or "") else title
    first = True
    for start, end in _pieces(passage.text):
        raw = passage.text[start:end]
        read = canonical(raw)
        hidden = read.hidden + heading.hidden if first else read.hidden
        at = 0
        for body in _stretches(read.text):
            where = raw.find(body, at)
            at = max(where, at)
            region = (start, end) if where < 0 else (start + where, start + where + len(body))
            text = f"{shown}\n{body}" if first and shown else body
            yield Unit(number, text, body, title, *region, hidden)
            first, hidden = False, Hidden()


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text stand, with their last mark; none of them empty."""
    regions, start = list[tuple[int, int]](), 0
    for match in SENTENCE_END.finditer(text):
        last = match.start() if text[match.start()] == "\n" else match.start() + 1
        if text[start:last].strip():
            regions.append((start, last))
        start = match.end()
    if text[start:].strip():
        regions.append((start, len(text)))
    return regions


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Pieces that are read whole, cut at white space where there is any near."""
    start, most = 0, MAX_TEXT_CHARS // 2
    while len(text) - start > most:
        space = max((match.end() for match in _SPACE.finditer(text, start + most - 1000, start + most)), default=0)
        end = space or start + most
        yield start, end
        start = end
    yield start, len(text)


def _stretches(text: str) -> Iterator[str]:
    if len(text) <= MAX_CHARACTERS:
        yield text
        return
    begun, last = -1, 0
    for start, end in sentences(text):
        if begun < 0:
            begun = start
        if end - begun > MAX_CHARACTERS and last > begun:
            yield text[begun:last]
            begun = start
        while end - begun > MAX_CHARACTERS:  # one sentence without end
            yield text[begun : begun + MAX_CHARACTERS]
            begun += MAX_CHARACTERS
        last = end
        if last - begun >= MIN_CHARACTERS:
            yield text[begun:last]
            begun = -1
    if begun >= 0 and text[begun:last].strip():
        yield text[begun:last]


MAX_PROBE_WORDS = 40
"""Words of a question."""

MIN_PROBE_WORDS = 4
"""With fewer words a first sentence is a heading, and the next one is asked with it."""

INTERROGATIVE = re.compile(
    r"(?:(?:in|on|at|by|for|from|of|to|with) )?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had)\b",
    re.IGNORECASE,
)
"""How an English question begins; in other languages the mark tells."""

MAX_QUESTION_WORDS = 45
"""Words of a question in front."""


class Probe:
    """The question of a unit.

    Attributes:
        question: What is asked.
        asks: Whether a question stands in front of the unit's text.
        lead: Where its first sentence stands in the body.
    """

    __slots__ = ("asks", "lead", "question")

    def __init__(self, question: str, asks: bool, lead: tuple[int, int]) -> None:
        self.question, self.asks, self.lead = question, asks, lead


def probe(unit: Unit) -> Probe:
    """The first sentence as a question, behind the title where it does not name it. O(n) time."""
    stands = sentences(unit.body[:4_000])
    if not stands:
        return Probe(unit.title, asks=False, lead=(0, 0))
    lead = stands[0]
    first = unit.body[lead[0] : lead[1]]
    words = first.split()
    asks = len(stands) > 1 and _asks(first, words)
    if len(words) < MIN_PROBE_WORDS and len(stands) > 1:
        words += unit.body[stands[1][0] : stands[1][1]].split()
    named = unit.title.split()
    if named and not asks and named[0] not in words:
        words = named + words
    return Probe(" ".join(words[:MAX_PROBE_WORDS]), asks, lead)


def _asks(sentence: str, words: list[str]) -> bool:
    if not MIN_PROBE_WORDS - 1 <= len(words) <= MAX_QUESTION_WORDS:
        return False
    return sentence.rstrip("\"'\u201d\u2019) ").endswith(("?", "\uff1f")) or INTERROGATIVE.match(sentence) is not None
