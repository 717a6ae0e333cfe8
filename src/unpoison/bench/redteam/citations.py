"""What an answer cites in its own words: `[1]`, `[handbook.pdf]`, `【4:0†handbook.pdf】`, `[^2]`, `(source: 17)`.

A number alone says nothing without the list that it points into; a line that begins with it, as in `[1] handbook.pdf`,
is such a list.
"""

from __future__ import annotations

import re

__all__ = ["read_markers"]

MAX_MARKERS = 1000
_BRACKETS = re.compile(r"[\[【(]([^\[\]【】()\n]{1,300})[\]】)]")
_LISTED = re.compile(r"(?m)^[ \t]{0,8}[\[【(]\^?\d{1,4}[\]】)][:.]?[ \t]{1,8}([^\n]{1,300})$")
_PARTS = re.compile(r"[,;|†]")
_LABEL = re.compile(r"[^\W\d_]{1,20}[ \t]?[:\uff1a](?!/)[ \t]{0,4}")
"""Such as `source: `, in any language."""


def read_markers(answer: str) -> list[str]:
    """The names that an answer cites, in order, each once; at most a thousand.

    In round brackets and behind a number in a list, words are taken as they stand; who compares them with the ids of
    documents finds those that are meant.
    """
    texts = [*_BRACKETS.findall(answer), *_LISTED.findall(answer)]
    parts = [part.strip(" \t\"'`^") for text in texts for part in _PARTS.split(text)]
    names = [name for part in parts for name in (part, *_without_label(part)) if name and not part.isdigit()]
    return list(dict.fromkeys(names))[:MAX_MARKERS]


def _without_label(name: str) -> list[str]:
    label = _LABEL.match(name)
    return [] if label is None else [name[label.end() :]]
