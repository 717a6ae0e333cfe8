"""Tokenisers: words for BM25 and TF-IDF, stems for ROUGE-L, words as readers see them, and English stop words.

`squad`, `trim_text` and `lower_text` are the rules of published evaluations. `fold_text` and `tokens` keep signs and
the vowels of every script, for rules that compare numbers, units and names.

`ENGLISH_33` is the list of Apache Lucene that bm25s uses by default. `ENGLISH_318` is the list of scikit-learn
(BSD-3-Clause, Copyright the scikit-learn developers; see NOTICE), kept as published, with its misspellings.
"""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from unpoison.utils.assets import read_data

__all__ = [
    "ENGLISH_33", "ENGLISH_318", "READ_WORD", "UNSPACED", "Token", "arabic", "fold_text", "lower_text", "nltk_stems",
    "rouge_l", "separate_words", "squad", "stems", "tokens", "trim_text", "without_accents", "word_list",
    "word_set", "words",
]  # fmt: skip


def word_set(words: str) -> frozenset[str]:
    """The words of a text as a set. Linear time."""
    return frozenset(words.split())


@cache
def _lists() -> dict[str, frozenset[str]]:
    """The lists of `data/words.txt` by name."""
    text = re.sub(r"^#.*", "", read_data("words.txt"), flags=re.MULTILINE)
    _, *parts = re.split(r"^\[(\w+)\]$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], map(word_set, parts[1::2])))


def word_list(name: str) -> frozenset[str]:
    """A list of `data/words.txt`."""
    return _lists()[name]


ENGLISH_33 = word_list("english_33")

ENGLISH_318 = word_list("english_318")


WORD = re.compile(r"\w\w+")
r"""Equivalent to `\b\w\w+\b`, the default of scikit-learn and bm25s: a greedy run always ends at a boundary."""

UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana, Han."""

_LETTER = rf"[^\W_{UNSPACED}]"
READ_WORD = re.compile(rf"(?:[a-zA-Z]++{_LETTER}*+|\d+(?:[.,:/]\d+)+|{_LETTER}++)(?:['\u2019-]{_LETTER}+)*%?|[^\W_]")
"""A word as readers see it: "3.5", "10:30", "5%", "O'Neill" and "well-known" are one word each, and so is every
character of a script without spaces."""

ASCII_WORD = re.compile(r"[a-z0-9]+")

_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana and Han
UNICODE_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")


def words(text: str, stop_words: frozenset[str] = frozenset()) -> list[str]:
    r"""The lower-cased words of a text, in order, repetitions included.

    Args:
        text: Any text.
        stop_words: Lower-case words to leave out.

    Returns:
        Every match of `\b\w\w+\b`, so single characters are dropped, as in bm25s and scikit-learn.
    """
    tokens = WORD.findall(text.lower())
    return [word for word in tokens if word not in stop_words] if stop_words else tokens


def without_accents(text: str) -> str:
    """A text without the marks on Latin, Greek and Cyrillic letters; in other scripts they tell words apart."""
    bare, accented = [], False
    for c in unicodedata.normalize("NFD", text):
        if not unicodedata.combining(c):
            accented = c.isalpha() and ord(c) < 0x0530
        elif accented:
            continue
        bare.append(c)
    return unicodedata.normalize("NFC", "".join(bare))


def stems(text: str) -> list[str]:
    """The tokens of ROUGE: lower-cased words; those longer than 3 characters are reduced to their Porter stem.

    ASCII text is split as in Lin's ROUGE and the `rouge-score` package, at every character that is not a letter or
    digit. That rule would delete most other scripts, so in other text every Unicode letter and digit counts, and each
    Han or kana character is a token, because these scripts have no spaces.

    Args:
        text: Any text.

    Returns:
        Stems in order, repetitions included.
    """
    words = _rouge_words(text)
    # A stemmer has state and is cheap to create: one per call needs no lock, and no cache that hostile text could fill.
    stem = Stemmer.Stemmer("porter", 0).stemWord
    return [stem(word) if len(word) > 3 else word for word in words]


def nltk_stems(text: str) -> list[str]:
    """The tokens of the `rouge-score` package with its stemmer: only ASCII letters and digits, NLTK's Porter stems.

    Raises:
        MissingExtraError: NLTK is not installed.
    """
    from unpoison.utils.extras import require  # one published variant needs it, and every defense this module

    stem = require("nltk.stem.porter", "mode=reference of TrustRAG").PorterStemmer().stem
    return [stem(word) if len(word) > 3 else word for word in ASCII_WORD.findall(text.lower())]


def _rouge_words(text: str) -> list[str]:
    lowered = text.lower()
    return (ASCII_WORD if lowered.isascii() else UNICODE_WORD).findall(lowered)


def rouge_l(texts: Sequence[str], stems: Callable[[str], list[str]] = stems) -> NDArray[np.float64]:
    """ROUGE-L F1 of every pair of texts (Lin, 2004), on stems as the `rouge-score` package with its stemmer.

    F1 = 2 * LCS(a, b) / (|a| + |b|), LCS being the length of the longest common subsequence of stems.

    `rouge-score` stems with NLTK's extensions of Porter's algorithm. The two differ in a few words ("uses" is not "use"
    here), which moves about 1 pair in 1,000 across TrustRAG's threshold of 0.25; `nltk_stems` gives NLTK's.

    Args:
        texts: k texts.
        stems: Splits a text into stems.

    Returns:
        Shape (k, k), in [0, 1], symmetric. The diagonal is 1; a text without tokens has 0 everywhere, on the diagonal
        too.

    Complexity: O(k^2 n^2 / 64) time for n tokens per text (bit-parallel), O(k^2) memory.
    """
    tokens = [stems(text) for text in texts]
    lengths = np.array([len(sequence) for sequence in tokens], np.float64)
    # A stem of only one text is in no common subsequence: it counts in the length and need not be compared.
    holders = Counter(stem for sequence in tokens for stem in set(sequence))
    shared = {stem: number for number, stem in enumerate(stem for stem, count in holders.items() if count > 1)}
    numbered = [[shared[stem] for stem in sequence if stem in shared] for sequence in tokens]
    sequences: Sequence[str] | Sequence[list[int]] = numbered
    if len(shared) <= sys.maxunicode:  # a character represents each stem
        sequences = ["".join(map(chr, part)) for part in numbered]
    common = cdist(sequences, sequences, scorer=LCSseq.similarity, dtype=np.int32).astype(np.float64)
    totals = lengths[:, None] + lengths
    scores = np.divide(2 * common, totals, out=np.zeros_like(common), where=totals > 0)
    np.fill_diagonal(scores, lengths > 0)
    return scores


PUNCTUATION = str.maketrans("", "", string.punctuation)
"""For `str.translate`: deletes ASCII punctuation."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


_UNSPACED = re.compile(rf"([{UNSPACED}\u3005-\u3007])")


def separate_words(text: str) -> str:
    """The text with spaces around every character of a script without spaces, and around CJK punctuation."""
    apart = _UNSPACED.sub(r" \1 ", text)
    return " ".join(re.sub(r"([\u3000-\u3004\u3008-\u303f\uff01-\uff0f\uff1a-\uff20])", r" \1 ", apart).split())


def trim_text(text: object) -> str:
    """N1: strip, drop one final period (never the only character), lower-case."""
    stripped = str(text).strip()
    return (stripped[:-1] if len(stripped) > 1 and stripped.endswith(".") else stripped).lower()


def lower_text(text: object) -> str:
    """N2: strip, lower-case."""
    return str(text).strip().lower()


def squad(text: object) -> str:
    """N3: lower-case, without ASCII punctuation and articles, words separated by one space."""
    return " ".join(_ARTICLES.sub(" ", str(text).lower().translate(PUNCTUATION)).split())


class Token(NamedTuple):
    """A word, a number or a sign, and whether it follows the previous one without a space."""

    text: str
    glued: bool


_MARKED = re.compile(r"[\u00b2\u00b3\u00b9\u2070-\u2079]+")
_VULGAR = re.compile(r"(?<=[0-9])(?=[\u00bc-\u00be\u2150-\u215e])")
_ROMAN = re.compile(r"(?<=[\w.] )(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})(?![\w'.+-])")
_DOTTED = re.compile(r"(?<![^\W_])([a-z])\.\s?(?=[a-z](?![^\W_]))")
_WORD = r"[^\s\x00-@\[-`{-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u206f\u20a0-\u20cf\u2190-\u22ff\u3000-\u3020]"
_TOKEN = re.compile(rf"[0-9]+(?:[.,:/-][0-9]+)*|{_WORD}(?:{_WORD}|[0-9])*(?:'{_WORD}+)?|\S")


def fold_text(text: str) -> str:
    """Lower case, compatibility forms, ASCII digits, no accents on Latin, Greek and Cyrillic, single spaces.

    Roman numerals after a word become numbers. Other scripts keep their combining marks, which are vowels or
    distinguish consonants. Linear time.
    """
    text = " ".join(text.replace("\u2019", "'").replace("\u2032", "'").replace("\u2033", '"').split())
    text = arabic(text)
    text = _MARKED.sub(lambda match: "^" + unicodedata.normalize("NFKD", match[0]), _VULGAR.sub(" ", text))
    if text.isascii():  # of the marks below it can only contain "&"
        return " ".join(_DOTTED.sub(r"\1", text.lower().replace("&", " and ")).split())
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).lower())
    plain = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in without_accents(plain))
    for mark, ascii_mark in (("\u2044", "/"), ("\u2013", "-"), ("\u2014", " - "), ("\u2212", "-"), ("\u2010", "-"),
                             ("&", " and "), ("\u2011", "-")):  # fmt: skip
        plain = plain.replace(mark, ascii_mark)
    return " ".join(_DOTTED.sub(r"\1", plain).split())


def arabic(text: str) -> str:
    """A text with the Roman numerals behind its words as numbers. Linear time."""
    return _ROMAN.sub(lambda match: str(_roman(match[0])) if match[0] else "", text)


def _roman(letters: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}[letter] for letter in letters]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def tokens(text: str) -> list[Token]:
    """The tokens of a folded text. Linear time."""
    words = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    ends = [-1, *(end for _, _, end in words)]
    return [Token(word, start == end) for (word, start, _), end in zip(words, ends, strict=False)]
