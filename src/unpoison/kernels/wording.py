"""How texts are written, whatever they are about: lengths, habits, punctuation, orders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["HABITS", "Reading", "forms", "habits", "read"]

Matrix = NDArray[np.float64]

LONGEST = 20_000
"""Characters of one text that are read."""

WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
SENTENCE_END = re.compile(r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]]*\s+|\n+|(?<=[\u3002\uff01\uff1f])")
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

HABITUAL_WORDS = tuple(
    """
    the a an of in on at by for from with to into as is was were are be been being has have had this that these those
    it its he his she her they their who which what when where while and or but not also however despite although
    though such many most more some any all other one only often known can could may might will would there so thus
    then than after before during between about over through both each no if because since indeed actually contrary
    commonly widely considered recognized renowned generally famous popular belief interestingly various numerous
    primarily particularly specifically especially officially correct answer fact
    """.split()  # noqa: SIM905 - a list literal of this length is unreadable
)
MARKS = (
    ",", ";", ":", "(", "[", '"', "\u201c", "-", "\u2013", "\u2014", "'s", "\u2019", "?", "!", "*", "|", "/", "%", "$",
    "...", "\u2026", "\n", "  ", " ,", " .", "#", "=", "``", "''",
)  # fmt: skip
PLACE = {word: i for i, word in enumerate(HABITUAL_WORDS)}
HABITS = (*HABITUAL_WORDS, *MARKS)
"""What `habits` counts: words that say nothing of the topic, and punctuation."""

ORDERS = re.compile(
    r"\b(?:ignore|disregard|override|instructions?|output exactly|(?:respond|reply|answer) with|always answer"
    r"|only (?:permitted |correct )?answer|you (?:must|should|are asked)|when (?:you are )?asked"
    r"|the (?:correct )?answer"
    r"|system prompt|as an ai|pretend)\b|\[/?inst\]|<\|",
    re.IGNORECASE,
)
"""What speaks to the reader of the passage rather than of the topic."""


class Reading(NamedTuple):
    """Texts as numbered words, one entry per word unless said otherwise.

    Attributes:
        stem: The number of its stem.
        word: The number of the word as written.
        owner: Its text.
        sentence: Its sentence, numbered through all texts.
        sentence_owner: The text of every sentence, shape (sentences,).
        asks: Which sentences end in a question mark, shape (sentences,).
        stop: Which stems are stop words, shape (stems,).
        words: The distinct words as written.
    """

    stem: NDArray[np.int64]
    word: NDArray[np.int64]
    owner: NDArray[np.int64]
    sentence: NDArray[np.int64]
    sentence_owner: NDArray[np.int64]
    asks: NDArray[np.bool_]
    stop: NDArray[np.bool_]
    words: list[str]


def read(texts: Sequence[str]) -> Reading:
    """Split texts into sentences and words and number these; time and memory grow with the texts' length."""
    parts = [[part for part in SENTENCE_END.split(text[:LONGEST].strip()) if part.strip()] for text in texts]
    flat = list(chain.from_iterable(parts))
    found = [WORD.findall(part) for part in flat]
    sizes = np.fromiter(map(len, found), np.int64, len(found))
    sentence_owner = np.repeat(np.arange(len(texts)), [len(part) for part in parts])
    place: dict[str, int] = {}
    word = np.array([place.setdefault(w, len(place)) for w in chain.from_iterable(found)], np.int64)
    words = list(place)
    lowered = [w.lower() for w in words]
    stems: dict[str, int] = {}
    # A stemmer has state and is cheap to make: one per call needs no lock.
    number = [stems.setdefault(s, len(stems)) for s in Stemmer.Stemmer("english", 0).stemWords(lowered)]
    stop = np.zeros(len(stems), bool)
    stop[[n for n, w in zip(number, lowered) if w in ENGLISH_318]] = True
    return Reading(
        stem=np.array(number, np.int64)[word],
        word=word,
        owner=np.repeat(sentence_owner, sizes),
        sentence=np.repeat(np.arange(len(flat)), sizes),
        sentence_owner=sentence_owner,
        asks=np.array([part.rstrip("\"'\u201d\u2019) ").endswith(("?", "\uff1f")) for part in flat], bool),
        stop=stop,
        words=words,
    )


def forms(texts: Sequence[str], reading: Reading) -> dict[str, Matrix]:
    """The outward form of each text, each of shape (k,): lengths, shares of its words or characters, and marks."""
    k = len(texts)
    cut = [text[:LONGEST] for text in texts]
    counts = np.bincount(reading.owner, minlength=k)
    sentences = np.maximum(np.bincount(reading.sentence_owner, minlength=k), 1)
    per_word = np.maximum(counts, 1)

    def share(flags: Sequence[float]) -> Matrix:
        return np.bincount(reading.owner, np.array(flags, float)[reading.word], k) / per_word

    size = max(len(reading.stop), 1)
    distinct = np.bincount(np.unique(reading.owner * size + reading.stem) // size, minlength=k)
    capitals = share([w[0].isupper() for w in reading.words]) * per_word - sentences
    ends = [text.rstrip().rstrip("\"'\u201d\u2019)]*") for text in cut]
    return {
        "length": np.log1p(counts),
        "sentence_length": per_word / sentences,
        "function_words": np.bincount(reading.owner, reading.stop[reading.stem], k) / per_word,
        "word_length": share([len(w) for w in reading.words]),
        "distinct": distinct / per_word,
        "capitals": np.maximum(capitals, 0) / per_word,
        "digits": share([any(map(str.isdigit, w)) for w in reading.words]),
        "commas": np.array([text.count(",") for text in cut]) / per_word,
        "ellipsis": np.array([float("..." in text or "\u2026" in text) for text in cut]),
        "open_end": np.array([float(not end.endswith((".", "!", "?", "\u3002"))) for end in ends]),
        "lower_start": np.array([float(text[:1].islower()) for text in cut]),
        "marks": np.array([_marked(text) for text in cut]),
        "quoted": np.array([float(text[:1] in ('"', "'", "\u201c")) for text in cut]),
        "foreign": np.array([0.0 if text.isascii() else sum(c > "\x7f" for c in text) / len(text) for text in cut]),
        "orders": np.array([float(len(ORDERS.findall(text))) for text in cut]),
        "asks": np.array([float("?" in text) for text in cut]),
        "year": np.array([float(YEAR.search(text) is not None) for text in cut]),
    }


PLAIN = str.maketrans("", "", ".,'\"-()0123456789 \n\tabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _marked(text: str) -> float:
    """The share of characters that are neither letters, digits, white space nor plain punctuation."""
    rest = text.translate(PLAIN)
    return sum(not (c.isalnum() or c.isspace()) for c in rest) / max(len(text), 1)


def habits(texts: Sequence[str], reading: Reading) -> Matrix:
    """How often each of `HABITS` occurs per word, shape (k, len(HABITS))."""
    k, size = len(texts), len(HABITUAL_WORDS)
    column = np.array([PLACE.get(word.lower(), -1) for word in reading.words], np.int64)[reading.word]
    known = column >= 0
    counted = np.bincount(reading.owner[known] * size + column[known], minlength=k * size).reshape(k, size)
    marked = np.array([[text.count(mark) for mark in MARKS] for text in (t[:LONGEST] for t in texts)], float)
    per_word = np.maximum(np.bincount(reading.owner, minlength=k), 1)[:, None]
    return np.hstack([counted, marked.reshape(k, len(MARKS))]) / per_word
