"""The protocols of models, with one method each. Any object that implements one can be passed to a defense."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.core.screenings import Screening
from unpoison.models.prompts import SAFE, Prompt, PromptStyle

__all__ = [
    "AsyncGenerator", "AsyncRetriever", "BatchGenerator", "CrossEncoder", "Encoder", "Generator",
    "InjectionClassifier", "Listener", "LogProbabilities", "Models", "NLIModel", "Retriever", "StreamingGenerator",
    "TokenByToken", "TwoTowers", "query_vectors",
]  # fmt: skip


class Named(Protocol):
    """A model with a name, which identifies it in records and caches."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class Encoder(Named, Protocol):
    """Texts to unit vectors.

    An encoder whose vectors depend on the other texts of the same call sets `per_set = True`; it is then never cached
    or batched across queries. An encoder with a token limit sets `longest`. An encoder for dot products, such as
    Contriever, sets `similarity = "dot"` and does not normalise its rows; retrievers rank by the dot product, and
    defenses use the cosine.
    """

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), rows of length 1 (0 for a text without tokens)."""


@runtime_checkable
class TwoTowers(Encoder, Protocol):
    """An encoder with another model for questions than for passages, such as DPR."""

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Questions to vectors in the space of `encode`, shape (n, d)."""


def query_vectors(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of questions, by the query encoder if there is one."""
    return encoder.encode_queries(texts) if isinstance(encoder, TwoTowers) else encoder.encode(texts)


@runtime_checkable
class NLIModel(Named, Protocol):
    """(premise, hypothesis) pairs to probabilities."""

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction), rows summing to 1."""


@runtime_checkable
class CrossEncoder(Named, Protocol):
    """(text, text) pairs to similarity scores, any scale, higher is more similar."""

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,)."""


@runtime_checkable
class InjectionClassifier(Named, Protocol):
    """Texts to the probability that each contains a prompt injection.

    A model with a token limit judges a longer text in windows, and returns the probability of the worst.
    """

    def probabilities(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """Shape (n,), in [0, 1]."""


@runtime_checkable
class Generator(Named, Protocol):
    """One prompt to one reply. Called from several threads concurrently."""

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """Reply within `timeout` seconds or raise `ModelError`."""


@runtime_checkable
class AsyncGenerator(Generator, Protocol):
    """A generator with a native asynchronous call."""

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply: ...


@runtime_checkable
class StreamingGenerator(Generator, Protocol):
    """A generator that streams its reply."""

    def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
        """Pieces of the text, then the whole `Reply`, whose text is their concatenation."""


class Listener(Protocol):
    """A listener to the events of an answer."""

    def on_screening(self, screening: Screening, /) -> None:
        """The screening behind the answer."""

    def on_text(self, text: str, /) -> None:
        """A piece of the model's reply."""


@runtime_checkable
class BatchGenerator(Generator, Protocol):
    """A generator that is faster with batches of prompts, such as a local model."""

    def generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]: ...


@runtime_checkable
class LogProbabilities(Named, Protocol):
    """A causal language model that returns the log-probability of each token of a text."""

    def logprobs(self, texts: Sequence[str], /) -> list[NDArray[np.float64]]:
        """Natural logarithms, shape (T - 1,) for each text: every token but the first, given the previous ones."""


@runtime_checkable
class TokenByToken(Generator, Protocol):
    """A generator with next-token distributions, for defenses that decode themselves."""

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a reply."""

    def tokens(self, text: str, /) -> list[int]:
        """A piece of a reply as tokens."""

    def text(self, tokens: Sequence[int], /) -> str:
        """Tokens as the text of a reply."""

    def next_token(self, prompts: Sequence[Prompt], tokens: Sequence[int], /) -> NDArray[np.floating]:
        """Natural logarithms, shape (n, vocabulary): the next token after each prompt and the reply so far."""


Retriever: TypeAlias = Callable[[Any], Iterable[Any]]
"""A question to passages in any form that `answer` accepts, best first. Called from several threads concurrently.

The question is a string, or a `Query` from `Rag`.
"""


@runtime_checkable
class AsyncRetriever(Protocol):
    """A retriever with a native asynchronous call."""

    def __call__(self, question: Any, /) -> Iterable[Any]: ...

    async def acall(self, question: Any, /) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class Models:
    """The models of a defense, and the style of its prompts."""

    encoder: Encoder | None = None
    generator: Generator | None = None
    nli: NLIModel | None = None
    cross_encoder: CrossEncoder | None = None
    language_model: LogProbabilities | None = None
    retriever: Retriever | None = None
    injection: InjectionClassifier | None = None
    style: PromptStyle = SAFE
