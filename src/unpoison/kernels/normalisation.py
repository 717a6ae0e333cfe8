"""The string rules by which the field compares answers."""

from __future__ import annotations

import re
import string

__all__ = ["PUNCTUATION", "lowered", "squad", "trimmed"]

PUNCTUATION = str.maketrans("", "", string.punctuation)
"""For `str.translate`: deletes ASCII punctuation."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def trimmed(text: object) -> str:
    """N1: strip, drop one final period (never the only character), lower-case."""
    found = str(text).strip()
    return (found[:-1] if len(found) > 1 and found.endswith(".") else found).lower()


def lowered(text: object) -> str:
    """N2: strip, lower-case."""
    return str(text).strip().lower()


def squad(text: object) -> str:
    """N3: lower-case, without ASCII punctuation and articles, words separated by one space."""
    return " ".join(_ARTICLES.sub(" ", str(text).lower().translate(PUNCTUATION)).split())
