"""The built-in encoder: no download, no learned weights, about a millisecond for ten passages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from unpoison.errors import InputError
from unpoison.text.tokens import ENGLISH_318

__all__ = ["LexicalEncoder"]

MAX_TEXTS = 10_000
"""A vector has as many entries as the call has texts; above this they no longer fit in memory."""

# Scripts that write no spaces between words: kana, Han, Hangul, Thai, Lao, Myanmar, Khmer.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
_TOKEN = re.compile(
    rf"[^\W_{_UNSPACED}]+"  # a word or number
    rf"|[{_UNSPACED}]+"  # a run that hides several words
    r"|[\u2190-\u2bff\U0001f000-\U0001faff]"  # one symbol or emoji
)
_RUN = re.compile(rf"[{_UNSPACED}]{{2,}}")

_BLOCK = 2**22
"""Entries of the text-term matrix that are held at once (32 MB)."""


class LexicalEncoder:
    """Vectors from the words that the texts of one call share.

    Two steps. First every text becomes a bag of stems: English stop words dropped, counts damped to 1 + ln(count),
    scaled to length 1; scripts without spaces contribute character pairs, emoji count one by one. Then a text is
    described by its cosine to every text of the call, again scaled to length 1. The second step is latent semantic
    analysis with the singular values squared instead of cut off: it brings together texts that resemble the same
    texts, and lifts paraphrases to similarities that a sentence encoder would give them (0.85 and above), which
    thresholds such as TrustRAG's presuppose.

    There is no inverse document frequency. In a set that was retrieved for one question it is lowest for the very
    words that coordinated passages repeat; on the built-in sample, weighting by it loses a tenth of the poisoned
    passages that are found without it.

    Measured on 63 Natural Questions with the published PoisonedRAG texts, five among ten passages: two poisoned
    passages have a mean cosine of 0.83 (all-MiniLM-L6-v2: 0.84), a poisoned and a clean one 0.46 (0.51), two clean
    ones 0.43 (0.46), and RAGDefender drops 88 % of the poisoned ones (92 %).

    Limits: it sees words, not meaning. Paraphrases in other words, translations and misspellings look unrelated, and
    passages that merely share their topic's words look alike. Similarities grow with the number of texts on one
    topic: among 50 news snippets on one question two clean ones have 0.68 where MiniLM gives 0.49. Vectors of
    different calls cannot be compared, hence `per_set`. The stop words and stems are English.
    """

    name = "lexical"
    per_set = True

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors of one set of texts.

        Returns:
            Shape (n, n), rows of length 1; the row of a text without any letter, digit or symbol is 0. Time and
            memory grow with n squared and with the length of the texts.

        Raises:
            InputError: More than 10,000 texts.
        """
        if len(texts) > MAX_TEXTS:
            raise InputError(
                f"the lexical encoder compares all texts of a call, at most {MAX_TEXTS:,}, got {len(texts):,}; "
                "encode one query's passages at a time, or use another encoder"
            )
        if not texts:
            return np.zeros((0, 1), np.float32)
        return _unit_rows(_cosines([_bag(text) for text in texts])).astype(np.float32)

    def __repr__(self) -> str:
        return "LexicalEncoder()"


class _Bag(NamedTuple):
    """What a text is made of: words and symbols, and its character pairs as numbers."""

    words: list[str]
    pairs: NDArray[np.int64]


_NO_PAIRS = np.zeros(0, np.int64)


def _bag(text: str) -> _Bag:
    """Words, character pairs and symbols of a text; its stop words only where it has nothing else."""
    lowered = text.lower()
    tokens: list[str] = _TOKEN.findall(lowered)
    pairs = _NO_PAIRS
    if not lowered.isascii():
        runs = [token for token in tokens if _RUN.match(token)]
        if runs:
            pairs, tokens = _pairs(runs), [token for token in tokens if not _RUN.match(token)]
    # A single Latin letter is what remains of "king's" or "J. S. Bach".
    telling = [token for token in tokens if token not in ENGLISH_318 and not (len(token) == 1 and "a" <= token <= "z")]
    return _Bag(telling if telling or pairs.size else tokens, pairs)


def _pairs(runs: Sequence[str]) -> NDArray[np.int64]:
    """Every two neighbouring characters of each run as one number: a text of a million has no million strings."""
    codes = np.frombuffer("\0".join(runs).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    return (codes[:-1] << 21 | codes[1:])[(codes[:-1] > 0) & (codes[1:] > 0)]


def _cosines(bags: Sequence[_Bag]) -> NDArray[np.float64]:
    """The cosine of every two bags, stemmed and with damped counts, shape (n, n); empty bags give 0."""
    size = len(bags)
    vocabulary = list(dict.fromkeys(chain.from_iterable(bag.words for bag in bags)))
    stemmed = Stemmer.Stemmer("english", 0).stemWords(vocabulary)
    position = dict(zip(dict.fromkeys(stemmed), count()))
    column_of = dict(zip(vocabulary, map(position.__getitem__, stemmed)))
    pairs, column = np.unique(np.concatenate([bag.pairs for bag in bags]), return_inverse=True)
    columns = len(position) + pairs.size

    owner = np.repeat(np.arange(size), [len(bag.words) for bag in bags])
    words = map(column_of.__getitem__, chain.from_iterable(bag.words for bag in bags))
    column = np.concatenate([np.fromiter(words, np.int64, owner.size), len(position) + column])
    owner = np.concatenate([owner, np.repeat(np.arange(size), [bag.pairs.size for bag in bags])])
    cell, number = np.unique(owner * columns + column, return_counts=True)
    owner, column = np.divmod(cell, max(columns, 1))
    weight = 1 + np.log(number)
    length = np.sqrt(np.bincount(owner, weight**2, size))
    weight /= length[owner]

    # A term of one text adds to that text's length only, which is already accounted for.
    shared = np.bincount(column, minlength=columns)[column] > 1
    owner, weight = owner[shared], weight[shared]
    terms, column = np.unique(column[shared], return_inverse=True)
    cosines = np.zeros((size, size))
    width = max(_BLOCK // size, 1)
    for start in range(0, terms.size, width):
        inside = (column >= start) & (column < start + width)
        block = np.zeros((size, min(width, terms.size - start)))
        block[owner[inside], column[inside] - start] = weight[inside]
        cosines += block @ block.T
    np.fill_diagonal(cosines, length > 0)
    return cosines


def _unit_rows(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(length > 0, length, 1.0)
