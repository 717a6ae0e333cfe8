"""Sentence boundaries, and the words and stems of sentences for readers without a model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil

from unpoison.text.alignment import Region
from unpoison.text.analysis import analysis, canonical_word, english_stem
from unpoison.text.tokens import READ_WORD, word_list
from unpoison.utils.assets import read_data

__all__ = ["STOP_WORDS", "Sentence", "around", "clauses", "sentence_of", "sentences", "split", "stem"]

MAX_WORDS = 80
"""Maximum words of a sentence; longer ones are split, so that text without punctuation stays cheap to read."""

LONG, CLAUSE, PIECE = 120, 40, 100
"""Characters from which a sentence has clauses, of a clause at least, and of a piece of a long clause; a third of each
in a script without spaces."""

MAX_WORD = 15
"""Characters of a word with its space, on average, above which a script has none."""

STOP_WORDS = word_list("function_words")
"""Function words, which do not contribute to the topic of a question or sentence."""

_CLOSING = r"\"'\u2019\u201d\u201c\u00bb\u203a\u300d)}*_~`"
"""Marks that close a quotation, brackets, emphasis or code."""

_END = re.compile(
    r"(?=[.!?\u2026\r\n\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965\u1362\u1367])(?:"  # seven times as fast
    rf"[.!?\u2026][{_CLOSING}]*(?:\[\d+\])+"  # before the number of a footnote
    rf"|[.!?\u2026][{_CLOSING}\]]*(?=\s)"  # before white space
    r"|[?!](?=\w)|(?<=[^\W_A-Z]{2}|[^\W_A-Z][)\"\u201d])\.(?=[A-Z])"  # glued to the next sentence
    r"|[\r\n]+|[^.!?\u2026\r\n])"
)
"""Punctuation of European languages, Chinese and Japanese, Arabic and Urdu, Hindi, and Amharic."""

_CLAUSE_END = re.compile(
    r"(?<=[,;:)\u2013\u2014\u060c])\s|\s(?=[(\u2013\u2014-])|(?<=[\u3001\uff0c\uff1a\uff1b])|(?<=[^\x00-\u2fff],)"
)
_WITHIN = {name: re.compile(form) for name, form in read_data("boundaries.json").items()}
"""Full stops that end no sentence: of abbreviations; of some of these before a number; of German ordinals after an
article or a preposition ("am 1. September"), and in any context before a month or a lower-case letter."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of one passage.

    Attributes:
        text: As written, without surrounding white space.
        words: Its words as written; ideographs one by one.
        stems: The words' stems, lower case, same length.
        starts: Where each word starts in `text`.
        distinct: Its distinct stems.
    """

    text: str
    words: tuple[str, ...]
    stems: tuple[str, ...]
    starts: tuple[int, ...]
    distinct: frozenset[str]

    def __sizeof__(self) -> int:
        """Bytes, measured on short words as the worst case: each is a string, a stem, and an entry in 4 containers."""
        return 500 + 8 * len(self.text) + 250 * len(self.words)

    def gap(self, position: int) -> str:
        """The text between the word at `position` and the next one."""
        return self.text[self.starts[position] + len(self.words[position]) : self.starts[position + 1]]

    def span(self, start: int, end: int) -> str:
        """The text of words `start` to `end` (exclusive), without a possessive ending."""
        return bare(self.text[self.starts[start] : self.starts[end - 1] + len(self.words[end - 1])])


def sentences(text: str) -> list[Region]:
    """The sentences of a text with their final punctuation, without the white space between them. O(n) time."""
    cuts = [0]
    for stop in _END.finditer(text):
        if stop[0] != "." or not _continues(text, max(cuts[-1], stop.end() - 14), stop.end()):
            cuts.append(stop.end())
    regions = list[Region]()
    for start, end in zip(cuts, [*cuts[1:], len(text)]):
        part = text[start:end]
        if part.strip():
            regions.append((start + len(part) - len(part.lstrip()), start + len(part.rstrip())))
    return regions


def clauses(text: str, start: int, end: int) -> list[Region]:
    """The clauses of a long sentence; for a long clause pieces, each with half of the one before. O(n) time."""
    unspaced = len(text[start:end].split()) * MAX_WORD < end - start
    long, least, size = (most // 3 if unspaced else most for most in (LONG, CLAUSE, PIECE))
    if end - start <= long:
        return []
    cuts = [start]
    for mark in _CLAUSE_END.finditer(text, start, end):
        if mark.end() - cuts[-1] >= least and end - mark.end() >= least:
            cuts.append(mark.end())
    regions = list[Region]()
    for first, last in pairwise([*cuts, end]):
        if last - first <= long:
            regions.append((first, last))
            continue
        steps = 2 * ceil((last - first) / size) - 2
        places = [first + (last - first - size) * step // steps for step in range(steps + 1)]
        regions += [(_word_end(text, place, first), _word_end(text, place + size, last)) for place in places]
    return regions


def _word_end(text: str, place: int, edge: int) -> int:
    """The end of the word at a place inside a clause; the place itself in a script without spaces."""
    space = text.find(" ", place, place + MAX_WORD)
    return place if place == edge or space < 0 else space


def _continues(text: str, start: int, end: int) -> bool:
    """Whether the full stop before `end` belongs to an abbreviation or ordinal number, and ends no sentence."""
    if _WITHIN["abbreviation"].search(text, start, end) or _WITHIN["ordinal"].search(text, start, end):
        return True
    if _WITHIN["reference"].search(text, start, end):
        return text[end : end + 2].strip().isdigit()
    return bool(_WITHIN["before_ordinal"].search(text, start, end) and _WITHIN["month"].match(text, end))


def around(text: str, start: int, end: int) -> Region:
    """The whole sentences that overlap a region of a text. O(n) time."""
    reached = [region for region in sentences(text) if region[1] > start and region[0] < end]
    return (reached[0][0], reached[-1][1]) if reached else (start, end)


def bare(text: str) -> str:
    """The text without a possessive ending."""
    return text[:-2] if text.endswith(("'s", "\u2019s")) else text


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    return english_stem(canonical_word(word))


def stem(word: str) -> str:
    """The stem of a word, lower case, without accents; function words, and implausibly long words, stay whole."""
    lowered = bare(word.lower())
    return lowered if lowered in STOP_WORDS or len(lowered) > 40 else _stem(lowered)


def split(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text with at least one word, in order. Linear time."""
    return analysis(text).part(_sentences)


def _sentences(text: str) -> tuple[Sentence, ...]:
    return tuple(part for start, end in sentences(text) for part in _pieces(text[start:end]))


def _pieces(sentence: str) -> list[Sentence]:
    """The sentence, or the pieces of a long one."""
    found = list(READ_WORD.finditer(sentence))
    pieces = []
    for first in range(0, len(found), MAX_WORDS):
        matches = found[first : first + MAX_WORDS]
        begin = matches[0].start() if first else 0
        end = found[first + MAX_WORDS].start() if first + MAX_WORDS < len(found) else len(sentence)
        words = tuple(match[0] for match in matches)
        stems = tuple(map(stem, words))
        starts = tuple(match.start() - begin for match in matches)
        pieces.append(Sentence(sentence[begin:end].strip(), words, stems, starts, frozenset(stems)))
    return pieces


def sentence_of(answer: str, text: str, start: int) -> str:
    """The sentence that contains the answer beginning at `start`; the answer itself if it spans several sentences."""
    at = 0
    for part in split(text):
        at = text.find(part.text, at)
        if at < 0:
            break
        at += len(part.text)
        if start < at:
            return part.text if answer in part.text else answer
    return answer
