"""Windows of a text, one or two sentences each, in a plain form: what form and padding cannot change.

Whoever writes a passage chooses its case, its brackets, its line breaks and what stands around the sentence that
matters. So texts are also looked at sentence by sentence, in lower case and without marks; a sentence of many words,
which may be one for want of a full stop, is cut into parts that overlap.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["LONGEST", "Windows", "windows"]

Numbers = NDArray[np.int64]

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
SENTENCE_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\s|\n|[\u3002\uff01\uff1f]")

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


def windows(question: str, texts: Sequence[str]) -> Windows:
    """Cut texts into parts and pairs of parts; linear time and memory.

    Args:
        question: The question, which is not cut.
        texts: The passages' readings.
    """
    cut = [(-1, 0, len(question), [_bare(word) for word in WORD.findall(question)])]
    for owner, text in enumerate(texts):
        cut += [(owner, start, end, words) for start, end, words in _parts(text)]
    owners, start, end = (np.array([part[i] for part in cut], np.int64) for i in range(3))
    number: dict[str, int] = {}
    word = np.array([number.setdefault(w, len(number)) for w in chain.from_iterable(p[3] for p in cut)], np.int64)
    words = list(number)
    stems: dict[str, int] = {}
    stem = [stems.setdefault(s, len(stems)) for s in Stemmer.Stemmer("english", 0).stemWords(words)]
    single = np.arange(1, len(cut))
    paired = single[:-1][owners[1:-1] == owners[2:]]
    return Windows(
        word=word,
        part=np.repeat(np.arange(len(cut)), [len(part[3]) for part in cut]),
        owner=owners,
        start=start,
        end=end,
        words=words,
        stem=np.array(stem, np.int64),
        stop=np.array([w in ENGLISH_318 for w in words], bool),
        first=np.concatenate([single, paired]),
        last=np.concatenate([single, paired + 1]),
    )


def _parts(text: str) -> list[tuple[int, int, list[str]]]:
    """Start, end and words of each part of a text."""
    sentences: list[list[tuple[int, int, str]]] = [[]]
    ends = iter([*(end.end() for end in SENTENCE_END.finditer(text)), len(text) + 1])
    until = next(ends)
    for match in WORD.finditer(text):
        while match.start() >= until:
            until = next(ends)
            if len(sentences[-1]) >= FEWEST:
                sentences.append([])
        sentences[-1].append((match.start(), match.end(), _bare(match[0])))
    if len(sentences) > 1 and len(sentences[-1]) < FEWEST:
        rest = sentences.pop()
        sentences[-1] += rest
    return [
        (part[0][0], part[-1][1], [word for _, _, word in part])
        for sentence in sentences
        if sentence
        for part in _chunks(sentence)
    ]


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


def _chunks(sentence: list[tuple[int, int, str]]) -> list[list[tuple[int, int, str]]]:
    """The sentence, or parts of at most `LONGEST` words that overlap by half."""
    if len(sentence) <= LONGEST:
        return [sentence]
    return [sentence[i : i + LONGEST] for i in range(0, len(sentence) - LONGEST // 2, LONGEST // 2)]
