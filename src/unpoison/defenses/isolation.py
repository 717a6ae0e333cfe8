"""Reading each passage, and judging each pair of answers, so that no other can change how: what every proof stands on.

What a passage answers must be a function of the question and of this passage. A prompt that holds one passage is not
enough: a model that is given many prompts at once may pad and round them together. Models that read every prompt as if
it were alone say so (`isolated`); any other that takes batches is asked prompt by prompt. NLI models all take batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.atomic import MAX_ANSWER_CHARS, read_alone
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import BatchGenerator, Generator, NLIModel
from unpoison.models.requests import Flow, Generate, Judge, judge
from unpoison.types import Passage, Query

__all__ = ["is_isolated", "judge_apart", "read_apart"]


def is_isolated(generator: Generator | None) -> bool:
    """Whether many prompts in one call are answered as if each had come alone."""
    return not isinstance(generator, BatchGenerator) or bool(getattr(generator, "isolated", False))


def read_apart(
    query: Query, passages: Sequence[Passage], prompt: Callable[[str, str], Prompt], generator: Generator | None
) -> Flow[list[str]]:
    """What the generator answers from each passage alone; a refusal answers nothing.

    Assumption: the generator gives equal replies to equal prompts (temperature 0, and for a remote model a provider
    whose batches do not change replies). A model error or a deadline ends the whole answer, and no answer is given.

    Returns:
        One answer for each passage, a function of the question and this passage.
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


def judge_apart(pairs: Sequence[tuple[str, str]], nli: NLIModel, purpose: str) -> Flow[NDArray[np.float64]]:
    """What an NLI model makes of each pair by itself, shape (n, 3); one run a pair, unless it says that it is isolated.

    Assumption: it gives equal judgements of equal pairs.
    """
    if not pairs or getattr(nli, "isolated", False):
        return (yield from judge(pairs, purpose))
    distinct = list(dict.fromkeys(pairs))
    judged = yield tuple(Judge((pair,), purpose) for pair in distinct)
    rows = dict(zip(distinct, judged, strict=True))
    return np.concatenate([rows[pair] for pair in pairs])
