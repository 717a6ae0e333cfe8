"""Words with white space inside, such as "po ison", "p o i s o n" or "poi<br>son", and where they belong together."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unpoison.text.alignment import Change
from unpoison.text.gibberish import network
from unpoison.text.gibberish_tokens import hashes, lower_codes

__all__ = ["crowded", "gaps"]

LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
RUN = re.compile(rf"(?<![^\W_])[{LATIN}]++(?:[ \n][{LATIN}]++)++(?![^\W_])")
"""Pieces of words, or words, with nothing but white space between them."""
PIECE = re.compile(r"\S+")

CROWDED = 5.0
"""Characters for each white space, on average, below which words may be split: English has six, in halves three."""

LONGEST = 16
"""Letters of a word that is put together, and so of its pieces."""

STOP_WORD, WORD, SHORT = 1.0, 1.5, (9.0, 2.6, 2.2)
"""What it costs to read a stop word, a known word, and one of one, two or three letters."""

BEGIN, LETTER, LONG, BEYOND = 1.5, 0.7, 11, 1.0
"""What it costs to begin a word that is not known, each of its letters, and each of these beyond so many."""

ENDINGS = frozenset(("s", "d", "ed", "es", "er", "ers", "ing", "ly", "al", "ment", "ness", "tion"))
"""Behind a word they are its end, where the whole is no known word."""

ATTACHED = re.compile(r"(?<=[^\W_]) (?=[.,;:!?)\u2019'])|(?<= ['\u2019]) (?=[std] )|(?<=[^\W_]) - (?=[^\W_])")
"""White space that a mark beside it has not in other texts."""

FEWEST = 4
"""So many words at least are split."""

SHARE = 0.4
"""Of the pieces, so many at least belong to known words that are split."""


def crowded(text: str) -> bool:
    """Whether there is so much white space that it may stand inside words."""
    return CROWDED * (text.count(" ") + text.count("\n")) > len(text)


@lru_cache(maxsize=16)  # a stretch is asked for up to four times in a row
def gaps(text: str, stop_words: frozenset[str]) -> tuple[Change, ...]:
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
    if len(split) < FEWEST or sum(split) < SHARE * count:
        return ()
    marks = [(*m.span(), m[0].strip()) for m in ATTACHED.finditer(text)]
    return tuple(sorted({start: (start, end, new) for start, end, new in (*found, *marks)}.values()))


def _words(text: str, pieces: list[tuple[int, int]], stop_words: frozenset[str]) -> list[tuple[int, int, bool]]:
    """Which pieces in a row, from the first to before the last, are a word, where there are several; whether known."""
    count, letters = len(pieces), "".join(text[slice(*piece)] for piece in pieces)
    edge = np.cumsum([0, *(end - start for start, end in pieces)])
    known, edges = _known(letters, edge), edge.tolist()
    cost, before, familiar = [0.0] * (count + 1), [0] * (count + 1), [False] * (count + 1)
    strange, begun, long = 0.0, 0, 0  # the word of no known kind that goes on: its cost, first piece and length
    for last in range(1, count + 1):
        start, end = pieces[last - 1]
        own = LETTER * (end - start)
        anew = cost[last - 1] + BEGIN + own + BEYOND * max(0, end - start - LONG)
        on = strange + own + BEYOND * max(0, min(long + end - start - LONG, end - start))
        capital = last > 1 and text[start].isupper() and text[start - 2].islower()
        if capital or long == 0 or anew < on:
            strange, begun, long = anew, last - 1, end - start
        else:
            strange, long = on, long + end - start
        cost[last], before[last] = strange, begun
        for first in known.get(last, ()):
            word = letters[edges[first] : edges[last]].lower()
            price = cost[first] + _price(word, stop_words)
            if price < cost[last]:
                cost[last], before[last], familiar[last] = price, first, True
    words, last = list[tuple[int, int, bool]](), count
    while last > 0:
        words.append((before[last], last, familiar[last]))
        last = before[last]
    return [word for word in _with_endings(text, pieces, words[::-1], stop_words) if word[1] - word[0] > 1]


def _price(word: str, stop_words: frozenset[str]) -> float:
    if word in stop_words:
        return STOP_WORD
    return SHORT[len(word) - 1] if len(word) <= len(SHORT) else WORD


def _with_endings(
    text: str, pieces: list[tuple[int, int]], words: list[tuple[int, int, bool]], stop_words: frozenset[str]
) -> list[tuple[int, int, bool]]:
    """Words with the endings that stand behind them."""
    whole = list[tuple[int, int, bool]]()
    for first, last, known in words:
        word = "".join(text[slice(*piece)] for piece in pieces[first:last]).lower()
        if whole and word in ENDINGS and word not in stop_words:
            whole[-1] = (whole[-1][0], last, whole[-1][2])
        else:
            whole.append((first, last, known))
    return whole


def _known(letters: str, edge: NDArray[np.int64]) -> dict[int, list[int]]:
    """Where known words begin that end before a piece, both as numbers of pieces; `edge` is where pieces begin."""
    count = len(edge) - 1
    first, last = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
    for many in range(1, min(LONGEST, count) + 1):
        start = np.arange(count - many + 1)
        start = start[edge[start + many] - edge[start] <= LONGEST]
        first.append(start)
        last.append(start + many)
    begin, until = np.concatenate(first), np.concatenate(last)
    words = network().words
    number = hashes(lower_codes(letters), edge[begin], edge[until])
    place = np.minimum(np.searchsorted(words, number), len(words) - 1)
    hit = words[place] == number
    found = dict[int, list[int]]()
    for start, end in zip(begin[hit].tolist(), until[hit].tolist()):
        found.setdefault(end, []).append(start)
    return found
