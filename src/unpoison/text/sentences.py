"""Where the sentences of a text begin and end."""

from __future__ import annotations

import re

from unpoison.text.alignment import Region

__all__ = ["SENTENCE_END", "around", "sentences"]

SENTENCE_END = re.compile(
    r"[.!?\u2026][\"'\u201d\u2019)\]]*\s+|\n+|[\u3002\uff01\uff1f\u061f\u06d4\u0964\u0965\u1362\u1367]"
)
"""Beside the marks of European texts those of Chinese and Japanese, Arabic and Urdu, Hindi, and Amharic."""


def sentences(text: str) -> list[Region]:
    """The sentences of a text with their last mark, without what stands between them. O(n) time."""
    begin = len(text) - len(text.lstrip())
    close = max(len(text.rstrip()), begin)
    regions, start = list[Region](), begin
    for end in SENTENCE_END.finditer(text, begin, close):
        regions.append((start, end.start() + (text[end.start()] != "\n")))
        start = end.end()
    return [(start, end) for start, end in [*regions, (start, close)] if text[start:end].strip()]


def around(text: str, start: int, end: int) -> Region:
    """The whole sentences that a stretch of a text reaches into, with their last mark. O(n) time."""
    first, last = 0, len(text)
    for mark in SENTENCE_END.finditer(text):
        if mark.end() <= start:
            first = mark.end()
        elif mark.end() >= end:
            last = mark.end()
            break
    while last > first and text[last - 1].isspace():
        last -= 1
    return first, last
