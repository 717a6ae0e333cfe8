"""Reads each passage alone, and compares the answers: shared by the defenses with atomic answers.

A proof needs the answer of a passage to be a function of the question and of this passage. A prompt with one passage is
not enough, because a model that runs many prompts in one batch may pad and round them together. Models without this
effect set `isolated`; `read_apart` sends the prompts to any other batching model one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage, Query
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import BatchGenerator, Generator
from unpoison.models.requests import Flow, Generate, generate, judge

__all__ = ["MAX_ANSWER_CHARS", "contradictions", "is_isolated", "read_alone", "read_apart", "statements"]

MAX_ANSWER_CHARS = 2000
"""Maximum characters of an answer to compare; a model may return a megabyte."""


def read_alone(query: Query, passages: Sequence[Passage], prompt: Callable[[str, str], Prompt]) -> Flow[list[str]]:
    """The generator's answer from each passage alone, with concurrent calls; "" for a refusal."""
    replies = yield from generate([prompt(query.reading, passage.reading) for passage in passages], "atomic answer")
    return ["" if reply.finish == "refusal" else reply.text[:MAX_ANSWER_CHARS] for reply in replies]


def statements(question: str, answers: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
    """The distinct answers as statements for an NLI model, and for every answer the index of its statement.

    Answers are compared without case, white space and a final period; the first wording is used. The question is part
    of the statement, because a short answer has no meaning by itself.
    """
    spoken: dict[str, tuple[int, str]] = {}
    positions = []
    for answer in answers:
        key = " ".join(answer.casefold().split()).rstrip(".")
        positions.append(spoken.setdefault(key, (len(spoken), f"Question: {question} Answer: {answer}"))[0])
    return [statement for _, statement in spoken.values()], np.array(positions, dtype=np.intp)


def contradictions(question: str, answers: Sequence[str]) -> Flow[NDArray[np.float64]]:
    """P(contradiction) of each pair of answers, in one direction, with the earlier one as premise (ReliabilityRAG).

    Returns:
        Shape (n, n), symmetric; equal answers do not contradict.
    """
    distinct, positions = statements(question, answers)
    left, right = np.triu_indices(len(distinct), 1)
    judged = yield from judge([(distinct[i], distinct[j]) for i, j in zip(left, right, strict=True)], "contradiction")
    conflict = np.zeros((len(distinct), len(distinct)))
    conflict[left, right] = conflict[right, left] = judged[:, 2]
    return conflict[np.ix_(positions, positions)]


def is_isolated(generator: Generator | None) -> bool:
    """Whether the prompts of one call do not influence each other's replies."""
    return not isinstance(generator, BatchGenerator) or bool(getattr(generator, "isolated", False))


def read_apart(
    query: Query, passages: Sequence[Passage], prompt: Callable[[str, str], Prompt], generator: Generator | None
) -> Flow[list[str]]:
    """The generator's answer from each passage alone, as a function of the question and this passage; "" for a refusal.

    Assumption: the generator gives equal replies to equal prompts (temperature 0, and for a remote model a provider
    whose batching does not change replies). After a model error or a deadline there is no answer at all.
    """
    if is_isolated(generator):
        return (yield from read_alone(query, passages, prompt))
    prompts = {passage.reading: prompt(query.reading, passage.reading) for passage in passages}
    if not prompts:
        return []
    replies = yield tuple(Generate((each,), "atomic answer") for each in prompts.values())
    answers = {
        text: "" if reply.finish == "refusal" else reply.text[:MAX_ANSWER_CHARS]
        for text, (reply,) in zip(prompts, replies, strict=True)
    }
    return [answers[passage.reading] for passage in passages]
