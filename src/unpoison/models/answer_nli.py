"""NLI models for answers: whether two answers to one question say the same, by rules or by a reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.models.lexical_nli import LexicalNLI
from unpoison.text.answers import Relation, relation

__all__ = ["AnswerNLI", "judge_pairs"]

Relate = Callable[[str, Sequence[tuple[str, str]]], list[Relation]]
"""A question and pairs of answers to it, to how each two relate."""

_FRAMED = re.compile(r"\s*question:(.*?)\banswer:(.*)", re.IGNORECASE | re.DOTALL)


class AnswerNLI:
    """Compares answers by rules for numbers, dates, units, lists and names (`text.answers`). No model.

    The same answer is entailment, rival answers contradict, compatible ones are neutral. Statements that are no
    answers to one question are left to the lexical judge. Names that share no word are taken for rivals, so it does not
    know that Holland is the Netherlands; the shipped reader knows somewhat more.
    """

    name = "answers"
    isolated = True
    """Each pair is judged as if it were alone."""

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction) of each (premise, hypothesis)."""
        return judge_pairs(pairs, lambda question, answers: [relation(question, *pair) for pair in answers])

    def __repr__(self) -> str:
        return "AnswerNLI()"


def _class_probabilities(related: Relation) -> tuple[float, float, float]:
    """Entailment, neutral, contradiction: the likelier of same and rival; the other one counts as neutral.

    A small doubt on every pair adds up over many passages, and would tie answers together that differ.
    """
    agree = related.same >= related.rival
    return (related.same, 1 - related.same, 0.0) if agree else (0.0, 1 - related.rival, related.rival)


def judge_pairs(pairs: Sequence[tuple[str, str]], relate: Relate) -> NDArray[np.float64]:
    """Judge pairs of the form "Question: q Answer: a" with the same q by `relate`, others by the lexical judge."""
    probabilities = np.zeros((len(pairs), 3))
    by_question: dict[str, list[int]] = {}
    bare, answers = [], {}
    for i, (premise, hypothesis) in enumerate(pairs):
        left, right = _FRAMED.fullmatch(premise), _FRAMED.fullmatch(hypothesis)
        if left is None or right is None or left[1].strip() != right[1].strip():
            bare.append(i)
        else:
            by_question.setdefault(left[1].strip(), []).append(i)
            answers[i] = (left[2].strip(), right[2].strip())
    for question, positions in by_question.items():
        for i, related in zip(positions, relate(question, [answers[i] for i in positions]), strict=True):
            probabilities[i] = _class_probabilities(related)
    if bare:
        probabilities[bare] = LexicalNLI().judge([pairs[i] for i in bare])
    return probabilities
