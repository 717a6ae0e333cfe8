"""How many names and numbers a text has: a page that somebody wrote to inform is full of them, a planted claim has one.

Capital letters and digits tell, so in languages that write no capitals only numbers count, and a collection is compared
with itself. It is no style: the same claim among the details of an honest page has as many as the page.
"""

from __future__ import annotations

import re
from math import log1p

__all__ = ["USUAL_DETAILS", "details"]

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[.!?\u3002\uff01\uff1f\n]")
_ENDS = frozenset(".!?\u3002\uff01\uff1f\n")

MAX_CHARACTERS = 2_000
"""Characters of a text that are looked at, about as many as a unit has."""

USUAL_DETAILS = log1p(9)
"""Of an ordinary passage."""


def details(text: str) -> float:
    """The logarithm of 1 and the different names and numbers of a text; a sentence's first word is no name. O(n) time.

    Args:
        text: Canonical.
    """
    found, begins = set[str](), True
    for word in _WORD.findall(text[:MAX_CHARACTERS]):
        if word in _ENDS:
            begins = True
            continue
        if word[0].isdigit() or (word[0].isupper() and not begins):
            found.add(word)
        begins = False
    return log1p(len(found))
