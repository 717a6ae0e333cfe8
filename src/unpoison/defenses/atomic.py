"""Reading each passage alone, and comparing what was read: the steps that several defenses share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.models.prompts import Prompt
from unpoison.models.requests import Flow, generate, judge
from unpoison.types import Passage, Query

__all__ = ["MAX_ANSWER_CHARS", "contradictions", "read_alone", "statements"]

MAX_ANSWER_CHARS = 2000
"""Characters of one answer that are compared; a model may return a megabyte."""


def read_alone(
    query: Query, passages: Sequence[Passage], prompt: Callable[[str, str], Prompt], purpose: str = "atomic answer"
) -> Flow[list[str]]:
    """What the generator answers from each passage alone, all calls at the same time; a refusal answers nothing."""
    replies = yield from generate([prompt(query.reading, passage.reading) for passage in passages], purpose)
    return ["" if reply.finish == "refusal" else reply.text[:MAX_ANSWER_CHARS] for reply in replies]


def statements(question: str, answers: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """Each distinct answer as a statement for an NLI model, and for every answer which statement is its own.

    Answers are equal but for case, white space and a final period; the first one's wording stands for all. The
    question is part of the statement, for a short answer means nothing alone.
    """
    spoken: dict[str, tuple[int, str]] = {}
    positions = []
    for answer in answers:
        key = " ".join(answer.casefold().split()).rstrip(".")
        positions.append(spoken.setdefault(key, (len(spoken), f"Question: {question} Answer: {answer}"))[0])
    return [statement for _, statement in spoken.values()], np.array(positions, dtype=np.intp)


def contradictions(question: str, answers: Sequence[str]) -> Flow[NDArray[np.float64]]:
    """P(contradiction) of each two answers, judged in one direction, the earlier one as premise (ReliabilityRAG).

    Returns:
        Shape (n, n), symmetric; equal answers do not contradict.
    """
    distinct, positions = statements(question, answers)
    left, right = np.triu_indices(len(distinct), 1)
    judged = yield from judge([(distinct[i], distinct[j]) for i, j in zip(left, right, strict=True)], "contradiction")
    conflict = np.zeros((len(distinct), len(distinct)))
    conflict[left, right] = conflict[right, left] = judged[:, 2]
    return conflict[np.ix_(positions, positions)]
