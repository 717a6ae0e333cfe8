"""Finds white space inside words, as in "po ison", "p o i s o n" or "poi<br>son"."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from unpoison.text.alignment import Change, Region
from unpoison.text.gibberish import are_frequent

__all__ = ["crowded", "gaps"]

LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
RUN = re.compile(rf"(?<![^\W_])[{LATIN}]++(?:[ \n][{LATIN}]++)++(?![^\W_])")
"""Words or pieces of words, separated by white space only."""
PIECE = re.compile(r"\S+")

CROWDED = 5.0
"""Average characters per white space below which words may be split: English has six, or three if split in halves."""

LONGEST = 16
"""Maximum letters of a joined word."""

STOP_WORD, WORD, SHORT = 1.0, 1.5, (9.0, 2.6, 2.2)
"""The cost of a stop word, of a known word, and of one with one, two or three letters."""

BEGIN, LETTER, LONG, BEYOND = 1.5, 0.7, 11, 1.0
"""The cost of beginning an unknown word, of each of its letters, and of each letter after the eleventh in addition."""

ENDINGS = frozenset(("s", "d", "ed", "es", "er", "ers", "ing", "ly", "al", "ment", "ness", "tion"))
"""Endings, which are joined to the word before them."""

ATTACHED = re.compile(r"(?<=[^\W_]) (?=[.,;:!?)\u2019'])|(?<= ['\u2019]) (?=[std] )|(?<=[^\W_]) - (?=[^\W_])")
"""White space next to a mark that has none in normal texts."""

FEWEST = 4
"""Minimum number of split words."""

SHARE = 0.4
"""Minimum share of pieces that belong to known split words."""


def crowded(text: str) -> bool:
    """Whether there is so much white space that some may be inside words."""
    return CROWDED * (text.count(" ") + text.count("\n")) > len(text)


@lru_cache(maxsize=64)  # called up to four times in a row with the same block
def gaps(text: str, stop_words: frozenset[str]) -> tuple[Change, ...]:
    """The white space inside words; empty if few words are split.

    Pieces are joined to known words at minimal cost; pieces between these form one unknown word, up to the next capital
    letter.

    Args:
        text: A block of a text, of a few hundred characters.
        stop_words: Stop words in lower case.

    Complexity: O(n) time for n characters, times `LONGEST`.
    """
    runs = [[piece.span() for piece in PIECE.finditer(text, *run.span())] for run in RUN.finditer(text)]
    found, split, count = list[Change](), list[int](), sum(map(len, runs))
    for pieces, known in zip(runs, _known(text, runs)):
        for first, last, whole in _words(text, pieces, known, stop_words):
            found += [(pieces[i][1], pieces[i + 1][0], "") for i in range(first, last - 1)]
            if whole and not all(text[slice(*pieces[i])].lower() in stop_words for i in range(first, last)):
                split.append(last - first)
    if len(split) < FEWEST or sum(split) < SHARE * count:
        return ()
    marks = [(*m.span(), m[0].strip()) for m in ATTACHED.finditer(text)]
    return tuple(sorted({start: (start, end, new) for start, end, new in (*found, *marks)}.values()))


def _words(
    text: str, pieces: list[Region], known: dict[int, list[int]], stop_words: frozenset[str]
) -> list[tuple[int, int, bool]]:
    """The words of several pieces: first piece, last piece (exclusive), and whether the word is known."""
    count = len(pieces)
    cost, before, familiar = [0.0] * (count + 1), [0] * (count + 1), [False] * (count + 1)
    strange, begun, long = 0.0, 0, 0  # the current unknown word: its cost, first piece and length
    lowered = [text[start:end].lower() for start, end in pieces]
    for last, (start, end) in enumerate(pieces, 1):
        size = end - start
        anew = cost[last - 1] + BEGIN + LETTER * size + BEYOND * max(0, size - LONG)
        on = strange + LETTER * size + BEYOND * max(0, min(long + size - LONG, size))
        capital = last > 1 and text[start].isupper() and text[start - 2].islower()
        if capital or long == 0 or anew < on:
            strange, begun, long = anew, last - 1, size
        else:
            strange, long = on, long + size
        cost[last], before[last] = strange, begun
        for first in known.get(last, ()):
            price = cost[first] + _price("".join(lowered[first:last]), stop_words)
            if price < cost[last]:
                cost[last], before[last], familiar[last] = price, first, True
    words, last = list[tuple[int, int, bool]](), count
    while last > 0:
        words.append((before[last], last, familiar[last]))
        last = before[last]
    return [word for word in _with_endings(lowered, words[::-1], stop_words) if word[1] - word[0] > 1]


def _price(word: str, stop_words: frozenset[str]) -> float:
    if word in stop_words:
        return STOP_WORD
    return SHORT[len(word) - 1] if len(word) <= len(SHORT) else WORD


def _with_endings(
    lowered: list[str], words: list[tuple[int, int, bool]], stop_words: frozenset[str]
) -> list[tuple[int, int, bool]]:
    """Words, joined with endings that follow them."""
    whole = list[tuple[int, int, bool]]()
    for first, last, known in words:
        word = "".join(lowered[first:last])
        if whole and word in ENDINGS and word not in stop_words:
            whole[-1] = (whole[-1][0], last, whole[-1][2])
        else:
            whole.append((first, last, known))
    return whole


def _known(text: str, runs: list[list[Region]]) -> list[dict[int, list[int]]]:
    """For each run, the known words: by their end (exclusive), their first pieces, the nearest first."""
    pieces = [piece for run in runs for piece in run]
    if not pieces:
        return []
    edge = np.cumsum([0, *(end - start for start, end in pieces)])
    size = [len(run) for run in runs]
    close = np.repeat(np.cumsum(size), size)
    count = np.arange(len(pieces))
    reach = np.minimum(np.searchsorted(edge, edge[:-1] + LONGEST, side="right") - 1, close) - count
    begin = np.repeat(count, np.maximum(reach, 0))
    until = begin + 1 + np.arange(len(begin)) - np.searchsorted(begin, begin)
    hit = are_frequent("".join(text[slice(*piece)] for piece in pieces), edge[begin], edge[until])
    owner = np.repeat(np.arange(len(runs)), size)[begin[hit]]
    offset = (close - np.repeat(size, size))[begin[hit]]
    found = [dict[int, list[int]]() for _ in runs]
    for run, start, end in np.column_stack([owner, begin[hit] - offset, until[hit] - offset])[::-1].tolist():
        found[run].setdefault(end, []).append(start)
    return found
