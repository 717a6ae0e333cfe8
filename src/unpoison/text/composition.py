"""NFKC piece by piece, so that what changes is known to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from unicodedata import combining, decomposition, normalize

from unpoison.text.alignment import UNTRACED, Change

__all__ = ["recompose", "runs"]


def recompose(text: str, offset: int = 0, *, finely: bool) -> list[Change]:
    """What NFKC changes in a text that begins at `offset`.

    Args:
        text: Without long runs of combining marks, for sorting these takes quadratic time.
        offset: Added to all positions.
        finely: One change for each letter with its marks instead of one for the whole text.
    """
    new = normalize("NFKC", text)
    if new == text:
        return []
    if finely:
        parts = [(*letters.span(), normalize("NFKC", letters[0])) for letters in _letters().finditer(text)]
        if UNTRACED.put(text, parts) == new:  # it always should be; if Unicode grows, the mapping is coarser, not wrong
            return [(offset + start, offset + end, part) for start, end, part in parts]
    return [(offset, offset + len(text), new)]


@cache
def _letters() -> re.Pattern[str]:
    """A letter with what may become one with it; ASCII letters only with something behind them. Linear."""
    joining = "".join(f"{chr(a)}-{chr(b)}" for a, b in runs(_composable()))
    return re.compile(rf"[^{joining}]?[{joining}]+|[^\x00-\x7f{joining}]")


def _composable() -> Iterator[int]:
    """The characters that may become one with what stands before them, rising."""
    parts = (decomposition(c).split() for c in _characters())
    second = {int(codes[1], 16) for codes in parts if len(codes) == 2 and not codes[0].startswith("<")}
    second.update(range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # Hangul vowels and final consonants
    for c in _characters():
        first = normalize("NFKD", c)[0]
        if combining(first) or ord(first) in second:
            yield ord(c)


def _characters() -> Iterator[str]:
    """All characters but ideographs, Hangul syllables and those without meaning, which begin a letter."""
    for first, last in ((0x80, 0x3400), (0xA000, 0xAC00), (0xF900, 0x1F000)):
        yield from map(chr, range(first, last))


def runs(points: Iterable[int]) -> list[tuple[int, int]]:
    """Rising numbers as runs (first, last)."""
    ranges: list[tuple[int, int]] = []
    for point in points:
        ranges[-1:] = (
            [(ranges[-1][0], point)] if ranges and ranges[-1][1] == point - 1 else [*ranges[-1:], (point, point)]
        )
    return ranges
