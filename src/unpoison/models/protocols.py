"""The one-method protocols behind which every model stands. Anything that fits them can be passed to a defense."""

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
    "AsyncGenerator",
    "AsyncRetriever",
    "BatchGenerator",
    "CrossEncoder",
    "Encoder",
    "Generator",
    "InjectionClassifier",
    "Listener",
    "LogProbabilities",
    "Models",
    "NLIModel",
    "Retriever",
    "StreamingGenerator",
    "TokenByToken",
    "TwoTowers",
    "query_vectors",
]


@runtime_checkable
class Encoder(Protocol):
    """Texts to unit vectors.

    An encoder whose vectors depend on the other texts of the same call sets `per_set = True`; it is then never
    cached nor batched across queries. One that reads only so many tokens of a text says how many in `longest`.
    One whose vectors are compared by their dot product, as Contriever's, sets `similarity = "dot"`, and its rows keep
    their length; a retriever ranks by it, and where texts are compared by cosine the length does not count.
    """

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), rows of length 1 (or 0 for a text without any token)."""


@runtime_checkable
class TwoTowers(Encoder, Protocol):
    """An encoder with another model for questions than for passages, such as DPR."""

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Questions to vectors in the space of `encode`, shape (n, d)."""


def query_vectors(encoder: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Questions as vectors, by the tower that is for them where there is one."""
    return encoder.encode_queries(texts) if isinstance(encoder, TwoTowers) else encoder.encode(texts)


@runtime_checkable
class NLIModel(Protocol):
    """(premise, hypothesis) pairs to probabilities."""

    @property
    def name(self) -> str: ...

    def judge(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n, 3): P(entailment), P(neutral), P(contradiction), rows summing to 1."""


@runtime_checkable
class CrossEncoder(Protocol):
    """(text, text) pairs to similarity scores, any scale, higher is more similar."""

    @property
    def name(self) -> str: ...

    def score(self, pairs: Sequence[tuple[str, str]], /) -> NDArray[np.float64]:
        """Shape (n,)."""


@runtime_checkable
class InjectionClassifier(Protocol):
    """Texts to the probability that each holds a prompt injection.

    One that reads only so many tokens judges a longer text in windows, and gives it the probability of the worst.
    """

    @property
    def name(self) -> str: ...

    def probabilities(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """Shape (n,), in [0, 1]."""


@runtime_checkable
class Generator(Protocol):
    """One prompt to one reply. Called from several threads at once."""

    @property
    def name(self) -> str: ...

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """Reply within `timeout` seconds or raise `ModelError`."""


@runtime_checkable
class AsyncGenerator(Generator, Protocol):
    """A generator with a native asynchronous call."""

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply: ...


@runtime_checkable
class StreamingGenerator(Generator, Protocol):
    """A generator that gives its reply as it comes."""

    def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
        """Pieces of the text, and then the whole `Reply`, whose text they are."""


class Listener(Protocol):
    """Who hears of an answer while it is made."""

    def on_screening(self, screening: Screening, /) -> None:
        """The screening that the answer will rest on."""

    def on_text(self, text: str, /) -> None:
        """A piece of the model's reply."""


@runtime_checkable
class BatchGenerator(Generator, Protocol):
    """A generator that is faster with many prompts at once, such as a local model."""

    def generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]: ...


@runtime_checkable
class LogProbabilities(Protocol):
    """A causal language model that says how likely each token of a text is."""

    @property
    def name(self) -> str: ...

    def logprobs(self, texts: Sequence[str], /) -> list[NDArray[np.float64]]:
        """Natural logarithms, shape (T - 1,) for each text: every token but the first, given those before."""


@runtime_checkable
class TokenByToken(Generator, Protocol):
    """A generator that says how likely each token of its vocabulary comes next, for defenses that decode themselves."""

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a reply."""

    def tokens(self, text: str, /) -> list[int]:
        """A piece of a reply as tokens."""

    def text(self, tokens: Sequence[int], /) -> str:
        """Tokens as the text of a reply."""

    def next_token(self, prompts: Sequence[Prompt], tokens: Sequence[int], /) -> NDArray[np.floating]:
        """Natural logarithms, shape (n, vocabulary): what follows each prompt and the tokens of the reply so far."""


Retriever: TypeAlias = Callable[[Any], Iterable[Any]]
"""A question to passages in any form that `answer` takes, best first. Called from several threads at once.

The question is a string, unless the flow asks with a `Query`, as `Rag` does.
"""


@runtime_checkable
class AsyncRetriever(Protocol):
    """A retriever with a native asynchronous call."""

    def __call__(self, question: Any, /) -> Iterable[Any]: ...

    async def acall(self, question: Any, /) -> Iterable[Any]: ...


@dataclass(frozen=True, slots=True)
class Models:
    """The models that one defense was given, and the style in which its generator is asked."""

    encoder: Encoder | None = None
    generator: Generator | None = None
    nli: NLIModel | None = None
    cross_encoder: CrossEncoder | None = None
    language_model: LogProbabilities | None = None
    retriever: Retriever | None = None
    injection: InjectionClassifier | None = None
    style: PromptStyle = SAFE
