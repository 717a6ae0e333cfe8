"""Passages from one template: texts that share a frame of words with different subjects and values.

Product sheets, tickets and clauses are each written as the next one is. What most texts of a retrieval have in common
says nothing against any one of them; only what a text has beside its form can have been written for the question.

Whoever plants copies wants to be the form, so records are told from copies of one claim by what they are about: each
two have other names or numbers, and at most half of them have all the words of the question that any of them has.
Planted texts that answer the question have these all. An attacker who fills half of a retrieval with texts of one form
about other things than the question hides one that answers it; `Guard(alone=True)` is not open to that.
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

__all__ = ["RecordText", "words_of_form"]

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

ALIKE: Final = 0.4
"""From this share of their words in the same order on, two texts can have one form; two pages about one thing share a
fifth."""

FEWEST: Final = 3
"""So many different records are a form, and `MAJORITY` of the texts."""

MAJORITY: Final = 2 / 3
"""Of a retrieval; so much of it must an attacker own who wants to be the form."""

MOST_TEXTS: Final = 64
"""So many texts, evenly spread, stand for a larger retrieval."""

MOST_WORDS: Final = 512
"""So many words and marks of a text are compared."""

COMPARED: Final = 4
"""The most similar records, by which it is told what of a record is the form: what half of them have too."""


class RecordText(NamedTuple):
    """What is compared of a text.

    Attributes:
        stems: Its words and marks, the title in front, at most `MOST_WORDS`.
        every: The same without order.
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
    """Which of their first words and marks are the form of texts, by position; texts that are no records are missing.

    Args:
        wanted: The question.
        texts: The retrieval, each text in one or more parts, and behind it other readings of some texts.
        rows: Of which texts it is asked.
        readings: Of which texts the last are readings. They are records where these are, and compared with the same
            readings of the others.

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
    """Of texts that are records, the `COMPARED` others that are most similar."""
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
    """Whether each has a name or number that the other has not."""
    return bool(one.values - other.every) and bool(other.values - one.every)


def _same_subject(group: Sequence[RecordText], asked: frozenset[int]) -> bool:
    """Whether more than half have all the words of the question that any of them has."""
    covered = [text.every & asked for text in group]
    return 2 * covered.count(frozenset().union(*covered)) > len(group)


def _in_common(stems: list[int], others: Sequence[list[int]]) -> Flags:
    """The words that at least half of the others have in the same order, shape (n,)."""
    count = np.zeros(len(stems))
    for other in others:
        for block in LCSseq.opcodes(stems, other):
            if block.tag == "equal":
                count[block.src_start : block.src_end] += 1
    return np.asarray(2 * count >= len(others))
