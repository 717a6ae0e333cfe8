"""Requests to models: defenses do no I/O themselves.

A defense that needs models is a Python generator (a *flow*). It yields a tuple of requests that may run concurrently,
and is sent the replies, one per request, in order:

    vectors, replies = yield Encode(texts), Generate(prompts, "atomic answer")

`runtime/driver.py` runs a flow, synchronously or asynchronously, with concurrency, retries, deadlines and accounting.
So the order of calls can be tested without a model, and there is no second, asynchronous copy of a method.
"""

from __future__ import annotations

from collections.abc import Generator as PyGenerator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.core.passages import Query
from unpoison.core.screenings import Screening
from unpoison.models.prompts import Prompt

__all__ = [
    "Classify", "Compare", "Encode", "Flow", "Generate", "Judge", "Likelihood", "NextToken", "Read", "Relate",
    "Request", "Retrieve", "classify", "compare", "encode", "generate", "judge", "likelihood", "next_token", "read",
    "relate", "retrieve", "run_side_by_side",
]  # fmt: skip

if TYPE_CHECKING:
    from unpoison.text.answers import Relation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Encode:
    """Texts to vectors, shape (n, d), float32; of length 1 unless the encoder's similarity is "dot"."""

    texts: tuple[str, ...]
    purpose: str = "embedding"
    queries: bool = False


@dataclass(frozen=True, slots=True)
class Generate:
    """Prompts to a list of `Reply`.

    Attributes:
        final: The screening behind the reply, if the user reads this reply; listeners get both early.
    """

    prompts: tuple[Prompt, ...]
    purpose: str = "answer"
    final: Screening | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Judge:
    """(premise, hypothesis) pairs to P(entailment), P(neutral), P(contradiction), shape (n, 3)."""

    pairs: tuple[tuple[str, str], ...]
    purpose: str = "entailment"


@dataclass(frozen=True, slots=True)
class Read:
    """Passages to their answers to the question (`models.passage_reader.Reading`), by a reader."""

    question: str
    passages: tuple[str, ...]
    purpose: str = "reading"


@dataclass(frozen=True, slots=True)
class Relate:
    """Pairs of answers to one question to a list of `Relation`, by a reader."""

    question: str
    pairs: tuple[tuple[str, str], ...]
    purpose: str = "rivals"


@dataclass(frozen=True, slots=True)
class Compare:
    """(text, text) pairs to relevance scores of a cross-encoder, shape (n,)."""

    pairs: tuple[tuple[str, str], ...]
    purpose: str = "relevance"


@dataclass(frozen=True, slots=True)
class Classify:
    """Texts to the probability that each contains a prompt injection, shape (n,)."""

    texts: tuple[str, ...]
    purpose: str = "prompt injection"


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Texts to token log-probabilities, an array of shape (T - 1,) for each."""

    texts: tuple[str, ...]
    purpose: str = "likelihood"


@dataclass(frozen=True, slots=True)
class NextToken:
    """Prompts, each with the same reply so far, to log-probabilities of the next token, shape (n, vocabulary)."""

    prompts: tuple[Prompt, ...]
    tokens: tuple[int, ...]
    purpose: str = "next token"


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Questions to a list with the passages of each, as returned by the caller's retriever."""

    questions: tuple[str | Query, ...]
    purpose: str = "retrieval"


Request: TypeAlias = Encode | Generate | Judge | Read | Relate | Compare | Classify | Likelihood | NextToken | Retrieve

Flow: TypeAlias = PyGenerator[tuple[Request, ...], tuple[Any, ...], T]
"""A generator that yields requests, receives replies, and returns a `T`."""


def _ask(request: Request) -> Flow[T]:
    """One request alone."""
    (reply,) = yield (request,)
    return reply  # type: ignore[no-any-return]  # the driver checked it


def encode(texts: Sequence[str], purpose: str = "embedding", *, queries: bool = False) -> Flow[NDArray[np.float32]]:
    """Request vectors; with `queries`, of questions, for which an encoder may have a separate model.

    Use it as `vectors = yield from encode(texts)`.
    """
    return (yield from _ask(Encode(tuple(texts), purpose, queries)))


def generate(prompts: Sequence[Prompt], purpose: str = "answer", final: Screening | None = None) -> Flow[list[Reply]]:
    """Request replies.

    Use it as `replies = yield from generate(prompts)`; pass `final` if the user reads the reply.
    """
    return (yield from _ask(Generate(tuple(prompts), purpose, final)))


def judge(pairs: Sequence[tuple[str, str]], purpose: str = "entailment") -> Flow[NDArray[np.float64]]:
    """Request NLI judgements.

    Use it as `probabilities = yield from judge(pairs)`.
    """
    return (yield from _ask(Judge(tuple(pairs), purpose)))


def read(question: str, passages: Sequence[str], purpose: str = "reading") -> Flow[list[Any]]:
    """Request the answer of each passage: `answer`, and `no_answer`, the probability that it does not answer.

    Use it as `readings = yield from read(question, passages)`.
    """
    return (yield from _ask(Read(question, tuple(passages), purpose)))


def relate(question: str, pairs: Sequence[tuple[str, str]], purpose: str = "rivals") -> Flow[list[Relation]]:
    """Request the relation of answers.

    Use it as `relations = yield from relate(question, pairs)`.
    """
    return (yield from _ask(Relate(question, tuple(pairs), purpose)))


def compare(pairs: Sequence[tuple[str, str]], purpose: str = "relevance") -> Flow[NDArray[np.float64]]:
    """Request relevance scores.

    Use it as `scores = yield from compare(pairs)`.
    """
    return (yield from _ask(Compare(tuple(pairs), purpose)))


def classify(texts: Sequence[str], purpose: str = "prompt injection") -> Flow[NDArray[np.float64]]:
    """Request the probability of a prompt injection in each text.

    Use it as `probabilities = yield from classify(texts)`.
    """
    return (yield from _ask(Classify(tuple(texts), purpose)))


def likelihood(texts: Sequence[str], purpose: str = "likelihood") -> Flow[list[NDArray[np.float64]]]:
    """Request token log-probabilities.

    Use it as `log_probabilities = yield from likelihood(texts)`.
    """
    return (yield from _ask(Likelihood(tuple(texts), purpose)))


def next_token(prompts: Sequence[Prompt], tokens: Sequence[int]) -> Flow[NDArray[np.float64]]:
    """Request next-token log-probabilities: one row for each prompt."""
    return (yield from _ask(NextToken(tuple(prompts), tuple(tokens))))


def retrieve(questions: Sequence[str | Query]) -> Flow[list[Any]]:
    """Request the passages of each question."""
    return (yield from _ask(Retrieve(tuple(questions))))


def run_side_by_side(left: Flow[Any], right: Flow[Any]) -> Flow[tuple[Any, Any]]:
    """Run two flows side by side: requests of the same step run concurrently.

    `screening, replies = yield from run_side_by_side(self.screening(query, passages), generate(prompts))`
    """
    flows, results = (left, right), [None, None]
    pending: list[tuple[Request, ...] | None] = [_next(flow, None, results, side) for side, flow in enumerate(flows)]
    while any(requests is not None for requests in pending):
        first = pending[0] or ()
        replies = yield (*first, *(pending[1] or ()))
        parts = replies[: len(first)], replies[len(first) :]
        pending = [
            None if requests is None else _next(flows[side], parts[side], results, side)
            for side, requests in enumerate(pending)
        ]
    return results[0], results[1]


def _next(
    flow: Flow[Any], replies: tuple[Any, ...] | None, results: list[Any], side: int
) -> tuple[Request, ...] | None:
    """The flow's next requests; None if it has ended, with its result stored."""
    try:
        return next(flow) if replies is None else flow.send(replies)
    except StopIteration as stop:
        results[side] = stop.value
        return None
