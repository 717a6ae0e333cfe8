"""Windows of a text, one or two sentences each, in a plain form: what form and padding cannot change.

Whoever writes a passage chooses its case, its brackets, its line breaks and what stands around the sentence that
matters. So texts are also looked at sentence by sentence, in lower case and without marks; a sentence of many words,
which may be one for want of a full stop, is cut into parts that overlap.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.kernels.sentences import SENTENCE_END
from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["LONGEST", "Windows", "windows"]

Numbers = NDArray[np.int64]

_SINGLE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Characters that are a word each: Han, hiragana, katakana."""

WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+(?:['\u2019][^\W_{_SINGLE}]+)*")

LONGEST = 32
"""Words of a part. Most sentences are shorter; a longer one becomes parts that overlap by half."""

FEWEST = 4
"""A part of fewer words, such as "Dr." or a page number, belongs to the one behind it."""


class Windows(NamedTuple):
    """The parts of k texts behind a question, and the windows over them.

    Attributes:
        word: For each word of each part the number of the word, text by text; the words of overlaps occur twice.
        part: The part of each word.
        owner: The text of each part, -1 for the question's own, which is part 0; shape (parts,).
        start, end: Where each part stands in its text, shape (parts,).
        words: The distinct words in lower case, by number.
        stem: The number of each word's stem, shape (words,).
        stop: Whether a word is a stop word, shape (words,); not a stem, lest "interest" in one text make "interests" in
            another one a stop word.
        first, last: The parts of each window, shape (windows,): one part, or two that follow each other.
    """

    word: Numbers
    part: Numbers
    owner: Numbers
    start: Numbers
    end: Numbers
    words: list[str]
    stem: Numbers
    stop: NDArray[np.bool_]
    first: Numbers
    last: Numbers


def windows(question: str, texts: Sequence[str], fewest: int = FEWEST) -> Windows:
    """Cut texts into parts and pairs of parts; linear time and memory.

    Args:
        question: The question, which is not cut.
        texts: The passages' readings.
        fewest: A part of fewer words belongs to the one behind it.
    """
    question_words = list(WORD.finditer(question))
    parts = [
        (-1, question_words),
        *((owner, part) for owner, text in enumerate(texts) for part in _parts(text, fewest)),
    ]
    owners = np.array([owner for owner, _ in parts], np.int64)
    start = np.array([0, *(part[0].start() for _, part in parts[1:])], np.int64)
    end = np.array([len(question), *(part[-1].end() for _, part in parts[1:])], np.int64)
    written: dict[str, int] = {}
    form = [written.setdefault(m[0], len(written)) for _, part in parts for m in part]
    number: dict[str, int] = {}
    bare = np.array([number.setdefault(_bare(w), len(number)) for w in written], np.int64)
    words = list(number)
    stems: dict[str, int] = {}
    stem = [stems.setdefault(s, len(stems)) for s in Stemmer.Stemmer("english", 0).stemWords(words)]
    single = np.arange(1, len(parts))
    paired = single[:-1][owners[1:-1] == owners[2:]]
    return Windows(
        word=bare[form],
        part=np.repeat(np.arange(len(parts)), [len(part) for _, part in parts]),
        owner=owners,
        start=start,
        end=end,
        words=words,
        stem=np.array(stem, np.int64),
        stop=np.array([w in ENGLISH_318 for w in words], bool),
        first=np.concatenate([single, paired]),
        last=np.concatenate([single, paired + 1]),
    )


def _parts(text: str, fewest: int) -> Iterator[list[re.Match[str]]]:
    """The words of each part of a text."""
    words = list(WORD.finditer(text))
    starts = [word.start() for word in words]
    begin = [0]
    for end in SENTENCE_END.finditer(text):
        index = bisect_left(starts, end.end(), begin[-1])
        if begin[-1] + fewest <= index < len(words):
            begin.append(index)
    if len(begin) > 1 and len(words) - begin[-1] < fewest:
        begin.pop()
    for first, last in pairwise((*begin, len(words))):
        yield from _chunks(words[first:last])


def _bare(word: str) -> str:
    """A word in lower case, Latin, Greek and Cyrillic without accents: these are form, and can be put on any letter."""
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    bare, based = [], False
    for c in unicodedata.normalize("NFD", lowered):
        if not unicodedata.combining(c):
            based = ord(c) < 0x0530
        elif based:
            continue
        bare.append(c)
    return unicodedata.normalize("NFC", "".join(bare))


def _chunks(sentence: list[re.Match[str]]) -> list[list[re.Match[str]]]:
    """The words of a sentence, none where it has none, or parts of at most `LONGEST` that overlap by half."""
    if len(sentence) <= LONGEST:
        return [sentence] if sentence else []
    return [sentence[i : i + LONGEST] for i in range(0, len(sentence) - LONGEST // 2, LONGEST // 2)]
