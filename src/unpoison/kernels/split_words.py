"""Words with white space inside, such as "po ison", "p o i s o n" or "poi<br>son", and where they belong together."""

from __future__ import annotations

import re
from collections.abc import Container

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels.alignment import Change
from unpoison.kernels.gibberish import shipped
from unpoison.kernels.gibberish_tokens import hashes, lower_codes

__all__ = ["crowded", "gaps"]

LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
RUN = re.compile(rf"(?<![^\W_])[{LATIN}]++(?:[ \n][{LATIN}]++)++(?![^\W_])")
"""Pieces of words, or words, with nothing but white space between them."""
PIECE = re.compile(r"\S+")

CROWDED = 5.0
"""Characters for each white space, on average, below which words may be split: English has six, in halves three."""

LONGEST = 16
"""Letters of a word that is put together, and so of its pieces."""

STOP_WORD, WORD, PAIR, LETTER = 1.0, 1.5, 1.9, 1.0
"""What it costs to read a stop word, a known word, one of two letters, and a letter of no known word."""

FEWEST = 4
"""So many words at least are split."""

SHARE = 0.4
"""Of the pieces, so many at least belong to known words that are split."""


def crowded(text: str) -> bool:
    """Whether there is so much white space that it may stand inside words."""
    return CROWDED * (text.count(" ") + text.count("\n")) > len(text)


def gaps(text: str, stop_words: Container[str]) -> list[Change]:
    """The white space inside words; none where few words are split.

    Pieces are read as known words where that takes the fewest; what stands between these is one word, up to the next
    capital letter.

    Args:
        text: A stretch of a text, of a few hundred characters.
        stop_words: In lower case.

    Complexity: O(n) time for n characters, times `LONGEST`.
    """
    found, split, count = list[Change](), list[int](), 0
    for run in RUN.finditer(text):
        pieces = [piece.span() for piece in PIECE.finditer(text, *run.span())]
        count += len(pieces)
        for first, last, known in _words(text, pieces, stop_words):
            found += [(pieces[i][1], pieces[i + 1][0], "") for i in range(first, last - 1)]
            if known and not all(text[slice(*pieces[i])].lower() in stop_words for i in range(first, last)):
                split.append(last - first)
    return found if len(split) >= FEWEST and sum(split) >= SHARE * count else []


def _words(text: str, pieces: list[tuple[int, int]], stop_words: Container[str]) -> list[tuple[int, int, bool]]:
    """Which pieces in a row, from the first to before the last, are a word, where there are several; whether known."""
    count = len(pieces)
    known = _known(text, pieces)
    cost, before = [0.0] * (count + 1), [0] * (count + 1)
    for last in range(1, count + 1):
        start, end = pieces[last - 1]
        cost[last], before[last] = cost[last - 1] + LETTER * (end - start), -last  # negative: of no known word
        for first in known.get(last, ()):
            word = "".join(text[slice(*piece)] for piece in pieces[first:last]).lower()
            price = cost[first] + (STOP_WORD if word in stop_words else PAIR if len(word) == 2 else WORD)
            if price < cost[last]:
                cost[last], before[last] = price, first
    words, last, rest = list[tuple[int, int, bool]](), count, count
    while last > 0:
        first = before[last]
        if first >= 0:
            words += _unknown(text, pieces, last, rest)
            words.append((first, last, True))
            last = rest = first
        else:
            last -= 1
    words += _unknown(text, pieces, 0, rest)
    return sorted(word for word in words if word[1] - word[0] > 1)


def _unknown(text: str, pieces: list[tuple[int, int]], first: int, last: int) -> list[tuple[int, int, bool]]:
    """Pieces of no known word: one word, but a capital letter behind a small one begins anew."""
    edges = [i for i in range(first + 1, last) if text[pieces[i][0]].isupper() and text[pieces[i][0] - 2].islower()]
    return [(a, b, False) for a, b in zip([first, *edges], [*edges, last]) if a < b]


def _known(text: str, pieces: list[tuple[int, int]]) -> dict[int, list[int]]:
    """Where known words begin that end before a piece, both as numbers of pieces."""
    letters = lower_codes("".join(text[slice(*piece)] for piece in pieces))
    edge = np.concatenate([[0], np.cumsum([end - start for start, end in pieces])])
    first, last = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
    for many in range(1, min(LONGEST, len(pieces)) + 1):
        start = np.arange(len(pieces) - many + 1)
        start = start[edge[start + many] - edge[start] <= LONGEST]
        first.append(start)
        last.append(start + many)
    begin, until = np.concatenate(first), np.concatenate(last)
    words = shipped().words
    number = hashes(letters, edge[begin], edge[until])
    place = np.minimum(np.searchsorted(words, number), len(words) - 1)
    found = dict[int, list[int]]()
    for n in np.flatnonzero(words[place] == number).tolist():
        found.setdefault(int(until[n]), []).append(int(begin[n]))
    return found
