"""How what a reader reads in several texts becomes one answer: texts that say the same count together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.models.sentences import split
from unpoison.text.answers import relation

__all__ = ["GivenAnswer", "alike", "central", "heaviest_group", "sentence"]

SAME = 0.5
"""Answers that say the same with at least this probability are one."""

COMPARED = 200
"""Distinct answers that are compared with each other; one that comes later counts for itself."""


class GivenAnswer(NamedTuple):
    """An answer, the text that gives it, where it begins there, and how much it counts."""

    answer: str
    text: str
    start: int
    weight: float


def heaviest_group(question: str, given: Sequence[GivenAnswer]) -> list[GivenAnswer]:
    """Of the answers given those of the heaviest group that says the same, in order; empty where none is."""
    same = alike(question, [answer.answer for answer in given])
    groups = [[supporter for j, supporter in enumerate(given) if same[i, j]] for i in range(len(given))]
    return max(groups, key=lambda group: sum(answer.weight for answer in group), default=[])


def alike(question: str, answers: Sequence[str]) -> NDArray[np.bool_]:
    """Which answers say the same, shape (n, n); each two distinct ones are compared once, the first `COMPARED` only."""
    position: dict[str, int] = {}
    where = np.array([position.setdefault(answer, len(position)) for answer in answers], dtype=int)
    distinct = list(position)
    same = np.eye(len(distinct), dtype=bool)
    for i, left in enumerate(distinct[:COMPARED]):
        for j, right in enumerate(distinct[:i]):
            same[i, j] = same[j, i] = relation(question, left, right).same >= SAME
    alike: NDArray[np.bool_] = same[np.ix_(where, where)]
    return alike


def central(question: str, answers: Sequence[str]) -> str | None:
    """The answer that most others equal, contain or are contained in; of equals the earlier one."""
    same = alike(question, answers)
    folded = [answer.casefold() for answer in answers]
    votes = [(int(same[i].sum()), sum(contained in folded[i] for contained in folded), -i) for i in range(len(answers))]
    return answers[-max(votes)[2]] if votes else None


def sentence(given: GivenAnswer) -> str:
    """The sentence of the text in which the answer stands; the answer itself where it spans several."""
    at = 0
    for part in split(given.text):
        at = given.text.find(part.text, at)
        if at < 0:
            break
        at += len(part.text)
        if given.start < at:
            return part.text if given.answer in part.text else given.answer
    return given.answer
