"""Sentences and words for readers without a model: split once, stemmed once, bounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from unpoison.text.analysis import analysis, english_stem

__all__ = ["STOP_WORDS", "Sentence", "bare", "sentence_of", "split", "stem"]

MAX_WORDS = 80
"""A longer sentence is cut into pieces of this many words, so that text without punctuation stays cheap to read."""

STOP_WORDS = frozenset(
    """a about above according across after against all along also although am amid among an and any are around as
    at away back be because been before behind being below beneath beside besides beyond both but by can cannot
    could despite did do does doing down during each either else enough etc even ever every few for from further get
    gets got had has have having he hence her here hers him his how however i if in indeed instead into is it its
    itself just later let like little mainly many maybe me more most much must my name named neither never
    nevertheless next no nor not of off often on once only onto or other others otherwise our out over own perhaps
    please quite rather really s same several shall she should since so some sometimes soon still such t than that
    the their them then there therefore these they this those though through throughout thus to together too toward
    towards under unless unlike until up upon usually various very via was we were what when where whether which
    while who whom whose why will with within without would yes yet you your""".split()  # noqa: SIM905 - a list literal of this length is unreadable
)
"""Function words, which say nothing about what a question or a sentence is about."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|\d+(?:[.,:]\d+)+%?|[^\W{_IDEOGRAPHS}]+(?:['\u2019-][^\W{_IDEOGRAPHS}]+)*%?")
_LINE = re.compile(r"[\r\n]+|(?<=[\u3002\uff01\uff1f])")
_STOP = re.compile(
    r"[.!?\u2026][\"'\u2019\u201d)]*(?:\[\d+\])+"  # before the number of a footnote
    r"|[.!?\u2026][\"'\u2019\u201d)\]]*(?=\s)"  # before white space
    r"|[?!](?=\w)|(?<=[^\W_A-Z]{2}|[^\W_A-Z][)\"\u201d])\.(?=[A-Z])"  # glued to the next sentence
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(.])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Gov|Sen|Rep|Lt|Col|Capt|No|vs|etc|Inc|Co|Corp|Ltd|approx|ca)\.$"
)


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
        """Bytes, as measured on short words, which take most: each is a text, a stem, and places in four containers."""
        return 500 + 8 * len(self.text) + 250 * len(self.words)

    def gap(self, position: int) -> str:
        """What stands between the word at `position` and the next one."""
        return self.text[self.starts[position] + len(self.words[position]) : self.starts[position + 1]]

    def span(self, start: int, end: int) -> str:
        """The text of words `start` to `end` (exclusive), without a possessive ending."""
        return bare(self.text[self.starts[start] : self.starts[end - 1] + len(self.words[end - 1])])


def bare(text: str) -> str:
    """The text without a possessive ending."""
    return text[:-2] if text.endswith(("'s", "\u2019s")) else text


_stem = lru_cache(maxsize=16_384)(english_stem)


def stem(word: str) -> str:
    """The stem of a word, lower case; function words, and words too long to be any, stay whole."""
    lowered = bare(word.lower())
    return lowered if lowered in STOP_WORDS or len(lowered) > 40 else _stem(lowered)


def split(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text that hold at least one word, in order; linear in its length."""
    return analysis(text).part(_sentences)


def _sentences(text: str) -> tuple[Sentence, ...]:
    pieces = (piece for line in _LINE.split(text) for piece in _pieces(line))
    return tuple(sentence for piece in pieces for sentence in _sentences_in(piece))


def _pieces(line: str) -> list[str]:
    """One line, cut behind each stop that ends a sentence."""
    pieces, start = [], 0
    for stop in _STOP.finditer(line):
        end = stop.end()
        if stop[0][0] == "." and _ABBREVIATION.search(line, max(start, end - 12), end):
            continue
        pieces.append(line[start:end])
        start = end
    pieces.append(line[start:])
    return pieces


def _sentences_in(piece: str) -> list[Sentence]:
    matches_of_words = list(_WORD.finditer(piece))
    sentences = []
    for first in range(0, len(matches_of_words), MAX_WORDS):
        matches = matches_of_words[first : first + MAX_WORDS]
        begin = matches[0].start() if first else 0
        end = matches_of_words[first + MAX_WORDS].start() if first + MAX_WORDS < len(matches_of_words) else len(piece)
        body = piece[begin:end]
        offset = begin + len(body) - len(body.lstrip())
        words = tuple(match[0] for match in matches)
        stems = tuple(map(stem, words))
        sentences.append(
            Sentence(
                body.strip(),
                words,
                stems,
                tuple(match.start() - offset for match in matches),
                frozenset(stems),
            )
        )
    return sentences


def sentence_of(answer: str, text: str, start: int) -> str:
    """The sentence of a text in which an answer stands that begins at `start`; the answer where it spans several."""
    at = 0
    for part in split(text):
        at = text.find(part.text, at)
        if at < 0:
            break
        at += len(part.text)
        if start < at:
            return part.text if answer in part.text else answer
    return answer
