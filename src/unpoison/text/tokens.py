"""Texts to tokens: words for BM25 and TF-IDF, stems for ROUGE."""

from __future__ import annotations

import re
from collections.abc import Iterable

import Stemmer

__all__ = ["stem_sets", "stems", "words"]

WORD = re.compile(r"\w\w+")
r"""Finds what `\b\w\w+\b`, the default of scikit-learn and bm25s, finds: a greedy run ends at a boundary anyway."""

ASCII_WORD = re.compile(r"[a-z0-9]+")

UNICODE_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # one kana or Han character
    r"|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def words(text: str, stop_words: frozenset[str] = frozenset()) -> list[str]:
    r"""The lower-cased words of a text, in order, repetitions included.

    Args:
        text: Any text.
        stop_words: Words to leave out, lower-case.

    Returns:
        Every match of `\b\w\w+\b`, so single characters are dropped, as in bm25s and scikit-learn.
    """
    tokens = WORD.findall(text.lower())
    return [word for word in tokens if word not in stop_words] if stop_words else tokens


def stems(text: str) -> list[str]:
    """The tokens that ROUGE compares: lower-cased words, those longer than 3 characters cut to their Porter stem.

    ASCII text is split as in Lin's ROUGE and the `rouge-score` package: whatever is no letter or digit separates. That
    rule would delete most other scripts, so in other text every Unicode letter and digit counts, and each Han or kana
    character is a token of its own, because these scripts write no spaces.

    Args:
        text: Any text.

    Returns:
        Stems in order, repetitions included.
    """
    words = _rouge_words(text)
    # A stemmer has state and is cheap to make: one per call needs no lock, and no cache that hostile text could fill.
    stem = Stemmer.Stemmer("porter", 0).stemWord
    return [stem(word) if len(word) > 3 else word for word in words]


def stem_sets(texts: Iterable[str]) -> list[set[str]]:
    """`set(stems(text))` for each text, where every word of all texts is cut once."""
    sets = [set(_rouge_words(text)) for text in texts]
    long = [word for word in set().union(*sets) if len(word) > 3]
    stem = dict(zip(long, Stemmer.Stemmer("porter", 0).stemWords(long)))
    return [{stem.get(word, word) for word in words} for words in sets]


def _rouge_words(text: str) -> list[str]:
    lowered = text.lower()
    return (ASCII_WORD if lowered.isascii() else UNICODE_WORD).findall(lowered)
