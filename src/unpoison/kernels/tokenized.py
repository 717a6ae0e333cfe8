"""Texts as numbered words and sentences, split once for everything that looks at words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.kernels.sentences import sentences
from unpoison.kernels.stopwords import ENGLISH_318

__all__ = ["TokenizedTexts", "tokenize"]

TOKEN = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\w\s]")


class TokenizedTexts(NamedTuple):
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
        tokens: The distinct words and marks as written.
        token: For each word or mark the number of what is written there.
        token_sentence: For each word or mark its sentence.
    """

    stem: NDArray[np.int64]
    word: NDArray[np.int64]
    owner: NDArray[np.int64]
    sentence: NDArray[np.int64]
    sentence_owner: NDArray[np.int64]
    asks: NDArray[np.bool_]
    stop: NDArray[np.bool_]
    words: list[str]
    tokens: list[str]
    token: NDArray[np.int64]
    token_sentence: NDArray[np.int64]


def tokenize(texts: Sequence[str]) -> TokenizedTexts:
    """Split texts into sentences and words and number these, the whole of them; linear time and memory."""
    parts = [[text[start:end] for start, end in sentences(text)] for text in texts]
    flat = list(chain.from_iterable(parts))
    tokens_of = [TOKEN.findall(part) for part in flat]
    sizes = np.fromiter(map(len, tokens_of), np.int64, len(tokens_of))
    sentence_owner = np.repeat(np.arange(len(texts)), [len(part) for part in parts])
    sentence = np.repeat(np.arange(len(flat)), sizes)
    number_of: dict[str, int] = {}
    token = np.array([number_of.setdefault(t, len(number_of)) for t in chain.from_iterable(tokens_of)], np.int64)
    tokens = list(number_of)

    spoken = np.array([t[0].isalnum() for t in tokens], bool)
    number = np.cumsum(spoken) - 1
    words = [t for t in tokens if t[0].isalnum()]
    inside = spoken[token]
    word = number[token[inside]]
    stems: dict[str, int] = {}
    # A stemmer has state and is cheap to make: one per call needs no lock.
    lowered = [w.lower() for w in words]
    stem = [stems.setdefault(s, len(stems)) for s in Stemmer.Stemmer("english", 0).stemWords(lowered)]
    stop = np.zeros(len(stems), bool)
    stop[[n for n, w in zip(stem, lowered) if w in ENGLISH_318]] = True
    return TokenizedTexts(
        stem=np.array(stem, np.int64)[word],
        word=word,
        owner=sentence_owner[sentence[inside]],
        sentence=sentence[inside],
        sentence_owner=sentence_owner,
        asks=np.array([part.rstrip("\"'\u201d\u2019) ").endswith(("?", "\uff1f")) for part in flat], bool),
        stop=stop,
        words=words,
        tokens=tokens,
        token=token,
        token_sentence=sentence,
    )
