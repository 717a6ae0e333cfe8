"""Records: passages from one template, with different subjects and values.

Product sheets, tickets and clauses share a template. Words that most texts of a retrieval have in common are no
evidence against any of them; only the other words of a text can have been written for the question.

Planted copies of one claim must not count as a template. Records differ from them by their subjects: every two have
different names or numbers, and at most half of them contain all of the question's words that any of them contains.
Planted texts that answer the question contain all of these. An attacker who fills half of a retrieval with texts of one
template about other subjects can hide one that answers the question; without neighbours (`guard-ablation:independent`)
this attack does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel, LCSseq
from rapidfuzz.process import cdist

from unpoison.text.analysis import CAPITAL, MARK, SHAPES, STOP, Words
from unpoison.text.features import QuestionTerms

__all__ = ["words_of_form"]

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

ALIKE: Final = 0.4
"""Minimum share of words in the same order of two texts with one template; two pages on one topic share a fifth."""

FEWEST: Final = 3
"""Minimum number of different records of a template, besides `MAJORITY` of the texts."""

MAJORITY: Final = 2 / 3
"""Minimum share of a retrieval; an attacker must control as much of it to plant a template."""

MOST_TEXTS: Final = 64
"""Maximum number of texts, evenly spread, that represent a larger retrieval."""

MOST_WORDS: Final = 512
"""Maximum number of words and marks of a text to compare."""

COMPARED: Final = 4
"""Number of most similar records; words that half of them contain belong to the template."""


class RecordText(NamedTuple):
    """A text for comparison.

    Attributes:
        stems: Its words and marks, including the title, at most `MOST_WORDS`.
        every: The same as a set.
        values: The names and numbers among them.
    """

    stems: list[int]
    every: frozenset[int]
    values: frozenset[int]

    @classmethod
    def of(cls, parts: Sequence[Words]) -> Self:
        """The parts of one text."""
        stem = np.concatenate([part.stem for part in parts])[:MOST_WORDS]
        kind = np.concatenate([part.kind for part in parts])[:MOST_WORDS]
        shape = kind & (CAPITAL - 1)
        number = (shape == SHAPES.index("year")) | (shape == SHAPES.index("number"))
        value = ((kind & (MARK | STOP)) == 0) & (number | ((kind & CAPITAL) > 0))
        return cls(stem.tolist(), frozenset(stem.tolist()), frozenset(stem[value].tolist()))


def words_of_form(
    wanted: QuestionTerms, texts: Sequence[Sequence[Words]], rows: Sequence[int], readings: Sequence[int] = ()
) -> dict[int, Flags]:
    """The template words of texts, as flags of their first words and marks, by position; other texts are missing.

    Args:
        wanted: The question.
        texts: The retrieval, each text in one or more parts, followed by other readings of some texts.
        rows: The texts to examine.
        readings: The texts to which the last ones are other readings. These are records if the originals are, and are
            compared with the same readings of other texts.

    Complexity: O(r m n^2 / 64) time for r rows, at most `MOST_TEXTS` others and `MOST_WORDS` words.
    """
    among = len(texts) - len(readings)
    others = np.unique(np.linspace(0, among - 1, min(among, MOST_TEXTS)).astype(int)).tolist()
    if len(others) < FEWEST or not rows:
        return {}
    written = dict(enumerate(readings, among))
    meant = {i: n for n, i in written.items()}
    asked = sorted({written.get(n, n) for n in rows})
    known = {n: RecordText.of(texts[n]) for n in {*others, *asked}}
    mates = _mates(wanted, known, asked, others)
    formed: dict[int, Flags] = {}
    for n in rows:
        near = mates.get(written.get(n, n), ())
        if near:
            same = [meant.get(i, i) if n in written else i for i in near]
            own, *shared = ((known.get(i) or RecordText.of(texts[i])).stems for i in (n, *same))
            formed[n] = _in_common(own, shared)
    return formed


def _mates(
    wanted: QuestionTerms, known: Mapping[int, RecordText], rows: Sequence[int], others: Sequence[int]
) -> dict[int, list[int]]:
    """The `COMPARED` most similar others of each text that is a record."""
    shares = cdist(
        [known[n].stems for n in rows],
        [known[n].stems for n in others],
        scorer=Indel.normalized_similarity,
        score_cutoff=ALIKE,
    )
    least = max(FEWEST, MAJORITY * len(others))
    asked = frozenset(wanted.stems.tolist())
    mates: dict[int, list[int]] = {}
    for n, row in zip(rows, shares.tolist(), strict=True):
        near = sorted((-share, known[o].stems, o) for share, o in zip(row, others) if share > 0 and o != n)
        own = [o for _, _, o in near if _differ(known[n], known[o])]
        different = 1 + len({known[o].values for o in own})
        if different >= least and not _same_subject([known[n], *(known[o] for o in own)], asked):
            mates[n] = own[:COMPARED]
    return mates


def _differ(one: RecordText, other: RecordText) -> bool:
    """Whether each has a name or number that the other does not have."""
    return bool(one.values - other.every) and bool(other.values - one.every)


def _same_subject(group: Sequence[RecordText], asked: frozenset[int]) -> bool:
    """Whether more than half contain all of the question's words that any of them contains."""
    covered = [text.every & asked for text in group]
    return 2 * covered.count(frozenset().union(*covered)) > len(group)


def _in_common(stems: list[int], others: Sequence[list[int]]) -> Flags:
    """The words that at least half of the others contain in the same order, as flags, shape (n,)."""
    count = np.zeros(len(stems))
    for other in others:
        for block in LCSseq.opcodes(stems, other):
            if block.tag == "equal":
                count[block.src_start : block.src_end] += 1
    return np.asarray(2 * count >= len(others))
