"""The string rules by which the field compares answers."""

from __future__ import annotations

import re
import string

__all__ = ["PUNCTUATION", "lower_text", "separate_words", "squad", "trim_text"]

PUNCTUATION = str.maketrans("", "", string.punctuation)
"""For `str.translate`: deletes ASCII punctuation."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


# Chinese, Japanese, Thai, Lao, Burmese and Khmer put no space between words.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff])"
)


def separate_words(text: str) -> str:
    """The text with every character of a script without spaces as a word of its own, and every punctuation mark."""
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
