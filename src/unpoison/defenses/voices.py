"""Reads each passage alone, and tells which passages share one vote, because one source wrote them.

A proof needs the answer of a passage to be a function of the question and of this passage. A prompt with one passage is
not enough, because a model that runs many prompts in one batch may pad and round them together. Models without this
effect set `isolated`; `read_isolated` sends the prompts to any other batching model one by one.

Without `sources` every passage is a voice. With `sources`, all passages of one origin share a voice, and so do equal
texts of unknown origin. If a policy or a history distinguishes sources, new sources do not count beside known ones
(`Voice.counts`), and an unknown source with many texts for one question weighs less.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.core.passages import Passage, Query
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import BatchGenerator, Generator
from unpoison.models.requests import Flow, Generate, generate, judge

if TYPE_CHECKING:
    from unpoison.sources.sources import Sources

__all__ = [
    "COUNTING", "MAX_ANSWER_CHARS", "Voice", "as_statements", "by_turns", "contradictions", "is_isolated", "read_alone",
    "read_isolated", "those_that_count", "voices_of",
]  # fmt: skip

MAX_ANSWER_CHARS = 2000
"""Maximum characters of an answer to compare; a model may return a megabyte."""


def read_alone(query: Query, passages: Sequence[Passage], prompt: Callable[[str, str], Prompt]) -> Flow[list[str]]:
    """The generator's answer from each passage alone, with concurrent calls; "" for a refusal."""
    replies = yield from generate([prompt(query.reading, passage.reading) for passage in passages], "atomic answer")
    return [_answer(reply) for reply in replies]


def _answer(reply: Reply) -> str:
    return "" if reply.finish == "refusal" else reply.text[:MAX_ANSWER_CHARS]


def as_statements(question: str, answers: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
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
    distinct, positions = as_statements(question, answers)
    left, right = np.triu_indices(len(distinct), 1)
    judged = yield from judge([(distinct[i], distinct[j]) for i, j in zip(left, right, strict=True)], "contradiction")
    conflict = np.zeros((len(distinct), len(distinct)))
    conflict[left, right] = conflict[right, left] = judged[:, 2]
    return conflict[np.ix_(positions, positions)]


def is_isolated(generator: Generator | None) -> bool:
    """Whether the prompts of one call do not influence each other's replies."""
    return not isinstance(generator, BatchGenerator) or bool(getattr(generator, "isolated", False))


def read_isolated(
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
    answers = {text: _answer(reply) for text, (reply,) in zip(prompts, replies, strict=True)}
    return [answers[passage.reading] for passage in passages]


COUNTING = frozenset(("trusted", "known", "seen"))
"""Levels of standing that weigh against others."""


class Voice(NamedTuple):
    """The voter behind a passage.

    Attributes:
        name: Equal for passages that share a voice: the origin; if it is unknown, the text itself, or "" for all pages
            of known addresses without an author, so that these share one vote.
        origin: The source, "" if unknown.
        level: Its standing (`sources.Standing`).
        trust: The weight of the voice, in [0, 1].
        counts: Whether it weighs against others; new sources do not, beside known ones.
    """

    name: str
    origin: str = ""
    level: str = "unknown"
    trust: float = 1.0
    counts: bool = True

    @property
    def weight(self) -> float:
        """The weight in a vote: its trust, or 1 if no sources are distinguished."""
        return 1.0 if self.counts and self.level == "unknown" else self.trust

    @property
    def most(self) -> float:
        """The maximum weight of its source in a vote, whatever the source writes."""
        return self.trust if self.level in COUNTING else 1.0


def voices_of(sources: Sources | None, question: str, passages: Sequence[Passage]) -> list[Voice]:
    """The voice of each passage.

    The trust of a source that does not count, or is unknown, is divided by n - 1 if it has n > 2 different texts: an
    attacker with one page that is retrieved may have five.
    """
    if sources is None:
        return [Voice(str(i)) for i in range(len(passages))]
    standings = sources.standings(question, passages)
    informed = sources.informed
    texts = defaultdict[str, set[str]](set)
    for standing, passage in zip(standings, passages, strict=True):
        texts[standing.origin].add(passage.reading)
    voices = []
    for standing, passage in zip(standings, passages, strict=True):
        counts = standing.level in COUNTING or (not informed and standing.level != "blocked")
        many = len(texts[standing.origin]) if standing.origin and standing.level not in COUNTING else 1
        name = standing.origin or ("" if standing.level in COUNTING else f"text: {passage.reading}")
        voices.append(Voice(name, standing.origin, standing.level, standing.trust / max(1, many - 1), counts))
    return voices


def by_turns(voices: Sequence[Voice]) -> list[int]:
    """Positions of passages: counting voices first, then the first passage of each voice before the second of any."""
    turns: list[int] = []
    passages_of = Counter[str]()
    for voice in voices:
        turns.append(passages_of[voice.name])
        passages_of[voice.name] += 1
    return sorted(range(len(voices)), key=lambda i: (not voices[i].counts, turns[i]))


def those_that_count(voices: Sequence[Voice], speaking: Iterable[int]) -> list[int]:
    """The given positions whose voice counts; all of them if none does."""
    positions = list(speaking)
    return [i for i in positions if voices[i].counts] or positions
