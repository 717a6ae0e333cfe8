"""Test doubles: deterministic, instant, offline. Shipped, because users test their code too.

from unpoison import Radar
from unpoison.models import FakeNLI, ScriptedGenerator

generator = ScriptedGenerator({"on the Seine": "Paris", "on the Rhône": "Lyon"})
answer = Radar(generator=generator, nli=FakeNLI()).answer("What is the capital of France?", passages)
generator.prompts          # the prompts it received, in order of arrival
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.core.answers import Reply
from unpoison.errors import ModelError, clip
from unpoison.models.prompts import Prompt
from unpoison.utils.checks import at_least
from unpoison.utils.processes import CopyableLock

__all__ = ["FakeEncoder", "FakeNLI", "ScriptedGenerator"]

Judgement: TypeAlias = str | Sequence[float]
"""A label ("entailment", "neutral", "contradiction") or the three probabilities in that order."""

Scripted: TypeAlias = str | Reply | ModelError
"""A reply, or an error to raise instead."""

_LABELS = ("entailment", "neutral", "contradiction")


class FakeEncoder:
    """Unit vectors from a mapping, or from a hash of the text: equal texts get equal vectors, others nearly orthogonal.

    Args:
        vectors: Text to vector, all of one dimension; they are scaled to length 1. A missing text raises `ModelError`,
            so that a typo in a test is not silently encoded. None hashes every text.
        dimensions: The dimension of hashed vectors.

    Attributes:
        calls: The texts of each call so far.
    """

    def __init__(self, vectors: Mapping[str, ArrayLike] | None = None, *, dimensions: int = 32) -> None:
        at_least("dimensions", dimensions, 1)
        self.name = "fake"
        self.calls: list[tuple[str, ...]] = []
        self._given = None if vectors is None else {text: _unit(np.asarray(v, float)) for text, v in vectors.items()}
        self._dimensions = next((v.size for v in self._given.values()), 1) if self._given is not None else dimensions

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), rows of length 1; the row of an empty text is 0 unless the mapping has it."""
        self.calls.append(tuple(texts))
        rows = [self._row(text) for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), self._dimensions)

    def _row(self, text: str) -> NDArray[np.float64]:
        if self._given is not None:
            if text not in self._given:
                raise ModelError(f"FakeEncoder was given no vector for {clip(text)}; add it to the mapping")
            return self._given[text]
        if not text.strip():
            return np.zeros(self._dimensions)
        seed = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
        return _unit(np.random.default_rng(seed).standard_normal(self._dimensions))


class FakeNLI:
    """Judgements from a function or a mapping.

    Args:
        judgements: `f(premise, hypothesis)` or `{(premise, hypothesis): ...}`; each result is a label or three
            probabilities. None judges equal texts as entailment.
        otherwise: The judgement of pairs that are not in the mapping.

    Attributes:
        calls: The pairs of each call so far.
    """

    def __init__(
        self,
        judgements: Callable[[str, str], Judgement] | Mapping[tuple[str, str], Judgement] | None = None,
        *,
        otherwise: Judgement = "neutral",
    ) -> None:
        self.name = "fake"
        self.calls: list[tuple[tuple[str, str], ...]] = []
        self._judgements, self._otherwise = judgements, otherwise

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction)."""
        self.calls.append(tuple(pairs))
        rows = [_probabilities(self._judgement(*pair)) for pair in pairs]
        return np.array(rows, np.float64).reshape(len(rows), 3)

    def _judgement(self, premise: str, hypothesis: str) -> Judgement:
        if callable(self._judgements):
            return self._judgements(premise, hypothesis)
        if self._judgements is None:
            return "entailment" if premise == hypothesis else self._otherwise
        return self._judgements.get((premise, hypothesis), self._otherwise)


class ScriptedGenerator:
    """Replies from a script.

    Args:
        replies: One text for every prompt; a sequence, consumed in order of arrival (which is undefined for concurrent
            calls); a mapping, where the first key in the rendered prompt decides; or a function of the prompt. A
            `ModelError` among them is raised.
        seconds: The latency of every reply, to simulate a network call.

    Attributes:
        prompts: The prompts received, in order of arrival.
        most_in_flight: The maximum number of concurrent calls.
    """

    def __init__(
        self,
        replies: str | Sequence[Scripted] | Mapping[str, Scripted] | Callable[[Prompt], Scripted],
        *,
        seconds: float = 0.0,
    ) -> None:
        self.name, self.seconds, self._replies = "scripted", seconds, replies
        self.prompts: list[Prompt] = []
        self.most_in_flight = self._in_flight = 0
        self._lock = CopyableLock()

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The next reply.

        Raises:
            ModelError: A scripted error, no reply for this prompt, or a latency above `timeout`.
        """
        with self._call(prompt) as scripted:
            time.sleep(self._wait(timeout))
            return self._reply(prompt, scripted, timeout)

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate` for asyncio."""
        with self._call(prompt) as scripted:
            await asyncio.sleep(self._wait(timeout))
            return self._reply(prompt, scripted, timeout)

    @contextmanager
    def _call(self, prompt: Prompt) -> Iterator[Scripted]:
        """Record the prompt and choose the reply, both in order of arrival."""
        with self._lock:
            position = len(self.prompts)
            self.prompts.append(prompt)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            yield self._choose(prompt, position)
        finally:
            with self._lock:
                self._in_flight -= 1

    def _choose(self, prompt: Prompt, position: int) -> Scripted:
        replies = self._replies
        if isinstance(replies, str):
            return replies
        if isinstance(replies, Mapping):
            text = prompt.text()
            for key, reply in replies.items():
                if key in text:
                    return reply
            raise ModelError(f"no key of the script is in the prompt {clip(text)}; add one")
        if isinstance(replies, Sequence):
            if position >= len(replies):
                raise ModelError(f"the script has only {len(replies)} replies; add replies")
            return replies[position]
        return replies(prompt)

    def _wait(self, timeout: float | None) -> float:
        return self.seconds if timeout is None else min(self.seconds, timeout)

    def _reply(self, prompt: Prompt, scripted: Scripted, timeout: float | None) -> Reply:
        if timeout is not None and self.seconds > timeout:
            raise ModelError(f"no reply within {timeout:g} s", retryable=True)
        if isinstance(scripted, ModelError):
            raise scripted
        if isinstance(scripted, Reply):
            return scripted
        return Reply(scripted, prompt_tokens=len(prompt.text().split()), completion_tokens=len(scripted.split()))


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def _probabilities(judgement: Judgement) -> Sequence[float]:
    if not isinstance(judgement, str):
        return judgement
    if judgement not in _LABELS:
        raise ModelError(f"a judgement must be one of {', '.join(_LABELS)} or three numbers, got {clip(judgement)}")
    return [float(judgement == label) for label in _LABELS]
