"""How sentences are built, whatever they are about: runs of words whose content is reduced to its outer shape.

Function words and marks stay as they are; a name, a number, a year or any other word becomes its kind, the last by its
ending. So "Paris, the capital" and "Rome, the capital" are the same three runs of "Name , the ~al". Language models
build sentences in other proportions than encyclopaedias and web pages do, on every topic. And they choose other words
of those that suit every topic ("renowned", "showcasing"): so each word stands beside the runs as itself too, for a
style that has a weight for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels.stopwords import ENGLISH_318
from unpoison.kernels.tokenized import TokenizedTexts

__all__ = [
    "BASE",
    "LONGEST_RUN",
    "SHAPES",
    "SHORTEST",
    "Runs",
    "Style",
    "known_to",
    "resemblance",
    "run_code",
    "run_text",
    "runs",
    "shapes_of",
    "strengths",
    "word_code",
]

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

LONGEST_RUN = 3
"""Shapes in the longest run."""

SHORTEST = 10
"""Runs, and words, of a sentence that has a style; a shorter one is built as its few words must be."""

LONGEST_CACHED = 32
"""Characters; the shape of a longer token is found anew each time."""

KEPT_WORDS = frozenset(ENGLISH_318) | frozenset(
    """
    its their which does did despite could might would will indeed actually contrary commonly widely considered
    recognized renowned generally famous popular belief interestingly various numerous primarily particularly
    specifically especially officially correct answer fact known
    """.split()  # noqa: SIM905 - a list literal of this length is unreadable
)
KEPT_MARKS = frozenset(".,;:()[]'\"\u201c\u201d\u2018\u2019-\u2013\u2014?!*|/%$&#=\u2026`+")
ENDINGS = ("ing", "tion", "sion", "ment", "ness", "ity", "ly", "ed", "ous", "ive", "al", "est", "er", "able", "ful",
           "ism", "s")  # fmt: skip
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

EDGE = "|begin|", "|end|"
SHAPES = (*EDGE, "Name", "year", "number", "mark", "word", *(f"~{ending}" for ending in ENDINGS),
          *sorted(KEPT_MARKS), *sorted(KEPT_WORDS))  # fmt: skip
"""All shapes, by number; `|begin|` and `|end|` are the edges of a sentence."""

NUMBER = {shape: i for i, shape in enumerate(SHAPES)}
BASE = len(SHAPES) + 1
"""The code of a run has the numbers of its shapes, from 1 on, as digits in this base."""


ALPHABET = " abcdefghijklmnopqrstuvwxyz"
LONGEST_WORD = 13
"""Letters of a word that stands as itself: so many fit into a number."""

ITSELF = "="
"""Stands in front of a word as itself, among the runs in words."""


class Runs(NamedTuple):
    """Runs of one to three shapes inside sentences, and the words of these.

    Attributes:
        code: One number per run or word: the same one has the same number everywhere, words a negative one.
        sentence: The sentence of each run, numbered as in the `TokenizedTexts`.
    """

    code: Numbers
    sentence: Numbers


def runs(tokenized: TokenizedTexts) -> Runs:
    """All runs of the texts, in no particular order. O(words) time and memory."""
    count = len(tokenized.sentence_owner)
    shape = shapes_of(tokenized.tokens)[tokenized.token]
    # Each sentence between its edges: sorting by (sentence, place) puts these around the tokens.
    sentence = np.concatenate([np.arange(count), tokenized.token_sentence, np.arange(count)])
    shape = np.concatenate([np.zeros(count, np.int64), shape, np.ones(count, np.int64)])
    order = np.argsort(sentence, kind="stable")
    sentence, shape = sentence[order], shape[order] + 1
    codes, owners, code = [shape], [sentence], shape
    for length in range(1, LONGEST_RUN):
        code = code[:-1] * BASE + shape[length:]
        inside = sentence[:-length] == sentence[length:]
        codes.append(code[inside])
        owners.append(sentence[:-length][inside])
    words = np.array([word_code(token) for token in tokenized.tokens], np.int64)[tokenized.token]
    codes.append(words[words < 0])
    owners.append(tokenized.token_sentence[words < 0])
    return Runs(np.concatenate(codes), np.concatenate(owners))


class Style(NamedTuple):
    """What runs say about who wrote a text.

    Attributes:
        code: The runs that say anything, rising, shape (f,).
        weight: What each says, shape (f,).
        base: What is added once.
    """

    code: Numbers
    weight: Matrix
    base: float


def known_to(style: Style, all_runs: Runs) -> Runs:
    """The runs that say anything, by their place in the style instead of their code."""
    feature = np.minimum(np.searchsorted(style.code, all_runs.code), len(style.code) - 1)
    has_weight = style.code[feature] == all_runs.code
    return Runs(feature[has_weight], all_runs.sentence[has_weight])


def resemblance(style: Style, feature: Numbers, unit: Numbers, count: int) -> Matrix:
    """How much each of `count` units of text is written in a style, shape (count,): `strengths` times weights.

    Args:
        style: The style.
        feature: For each run and word of the units its place in the style (`known_to`), shape (r,).
        unit: For each of them its unit, shape (r,).
        count: How many units there are.

    Complexity: O(r log r) time for r runs and words.
    """
    owner, run, strength = strengths(style, feature, unit, count)
    return np.asarray(np.bincount(owner, strength * style.weight[run], count) + style.base)


def strengths(style: Style, feature: Numbers, unit: Numbers, count: int) -> tuple[Numbers, Numbers, Matrix]:
    """How strong each distinct run and word is in its unit: units, places in the style, and strengths, shape (c,) each.

    The logarithms of how often it occurs; those of a unit's runs are scaled to length 1, and apart from them those of
    its words. Shorter ones stay as they are.
    """
    pairs, times = np.unique(unit * len(style.code) + feature, return_counts=True)
    owner, run = np.divmod(pairs, len(style.code))
    strength = np.log1p(times)
    part = 2 * owner + (style.code[run] < 0)
    length = np.sqrt(np.bincount(part, strength**2, 2 * count))
    return owner, run, strength / np.maximum(length, 1)[part]


def run_text(code: int) -> str:
    """A run in words, for people: `", the ~al"`; a word as itself: `"=showcasing"`."""
    if code < 0:
        letters, rest = "", -code
        while rest:
            rest, last = divmod(rest, len(ALPHABET))
            letters = ALPHABET[last] + letters
        return f"{ITSELF}{letters}"
    parts = []
    while code:
        code, last = divmod(code, BASE)
        parts.append(SHAPES[last - 1])
    return " ".join(reversed(parts))


def run_code(text: str) -> int:
    """The number of a run in words, or of a word as itself."""
    if text.startswith(ITSELF) and text[1:2].isalpha():  # the mark "=" is a shape, alone or before a space
        return word_code(text[1:])
    code = 0
    for shape in text.split():
        code = code * BASE + NUMBER[shape] + 1
    return code


def shapes_of(tokens: Iterable[str]) -> Numbers:
    """The numbers of tokens' shapes. Long tokens are rare among people's texts, and a cache of them has no bound."""
    return np.array([_known_shape(t) if len(t) <= LONGEST_CACHED else _new_shape(t) for t in tokens], np.int64)


def word_code(token: str) -> int:
    """The number of a word as itself, below 0; 0 for what is longer, or has other letters than the 26 of English."""
    return _known_code(token) if len(token) <= LONGEST_WORD else 0


def _new_code(token: str) -> int:
    code = 0
    for letter in token.lower():
        digit = ALPHABET.find(letter)
        if digit < 1:
            return 0
        code = code * len(ALPHABET) + digit
    return -code


def _new_shape(token: str) -> int:
    lowered = token.lower()
    if lowered in KEPT_WORDS:
        return NUMBER[lowered]
    if not token[0].isalnum():
        return NUMBER[token if token in KEPT_MARKS else "mark"]
    if any(map(str.isdigit, token)):
        return NUMBER["year" if YEAR.fullmatch(token) else "number"]
    if token[0].isupper():
        return NUMBER["Name"]
    ending = next((e for e in ENDINGS if lowered.endswith(e) and len(lowered) > len(e) + 2), None)
    return NUMBER["word" if ending is None else f"~{ending}"]


_known_shape = lru_cache(maxsize=16_384)(_new_shape)  # of about 200 bytes each
_known_code = lru_cache(maxsize=16_384)(_new_code)
