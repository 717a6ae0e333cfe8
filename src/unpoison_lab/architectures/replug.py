"""REPLUG: an ensemble over passages, each read alone, its next-token probabilities weighted by retrieval likelihood.

Shi et al., 2023 (NAACL 2024), Section 3.2, the inference of the method without its training:
p(y | x) = sum over passages d of lambda(d, x) p(y | d, x), lambda the softmax of the cosine similarities of d and x.
An architecture, not a defense: it answers from the passages that a defense kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import cosine
from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.defenses.base import ShellOptions, make_answer
from unpoison.defenses.embedding import embed_passages
from unpoison.defenses.robustrag_decoding import MAX_PASSAGES, token_model
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import InputError
from unpoison.models.lexical import LexicalEncoder
from unpoison.models.loading import load_encoder
from unpoison.models.prompts import answer_alone_prompt, answer_prompt
from unpoison.models.protocols import Encoder, Generator
from unpoison.models.requests import Flow, next_token
from unpoison.utils.checks import at_least

__all__ = ["Replug", "mixture", "weights"]


class Replug(Vanilla):
    """Decodes one reply from the weighted mixture of next-token distributions, one per passage.

    Each token takes one forward pass with one row per passage. The most likely token is chosen; ties go to the lower
    id.

    Args:
        generator: A local model with next-token probabilities, `hf:NAME_OR_PATH`.
        encoder: For the weights of passages without an embedding; the retriever's.
        temperature: Of the weights' softmax; large ones weigh all passages alike.
        keep: Maximum number of passages, the best ones; None for all.
        max_tokens: Of the reply, at least 1.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "replug"
    summary = "an ensemble over passages, weighted by retrieval likelihood"
    calls = "0; each token takes a forward pass of k rows"
    source = "Shi et al., 2023"

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        encoder: Encoder | str | None = None,
        temperature: float = 1.0,
        keep: int | None = None,
        max_tokens: int = 50,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(keep, generator=generator, **shell)
        loaded = load_encoder(encoder) if isinstance(encoder, str) else encoder
        self.models = replace(self.models, encoder=loaded or LexicalEncoder())
        self.temperature = at_least("temperature", temperature, 1e-3, 1e3, whole=False)
        self.max_tokens = at_least("max_tokens", max_tokens, 1, 4096)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The weights, then joint decoding."""
        model = token_model(self)
        screening = yield from self.screening(query, passages)
        kept = tuple(passages[i] for i in screening.kept_indices)
        if passages and not kept:
            return Answer.abstention(screening)
        if len(kept) > MAX_PASSAGES:
            raise InputError(f"{self.name} reads at most {MAX_PASSAGES} passages at the same time, got {len(kept)}")
        shares = np.ones(1)
        prompts = [answer_alone_prompt(query.reading)]
        if kept:
            vectors, target = yield from embed_passages(query, kept, self.models.encoder, with_query=True)
            assert target is not None  # noqa: S101  it was asked for
            shares = weights(cosine(target[None], vectors)[0], self.temperature)
            prompts = [answer_prompt(query.reading, [passage.reading]) for passage in kept]
        tokens, finish = list[int](), "length"
        while len(tokens) < self.max_tokens:
            token = int(mixture((yield from next_token(prompts, tokens)), shares).argmax())
            if token in model.ends:
                finish = "stop"
                break
            tokens.append(token)
        reply = Reply(model.text(tokens), finish=finish)
        return make_answer(reply, screening, {"weights": [round(float(share), 6) for share in shares]})


def weights(similarities: Sequence[float] | NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """The softmax of the similarities over the temperature, shape (n,), summing to 1 (Equation 3)."""
    scaled = np.asarray(similarities, float) / temperature
    powers = np.exp(scaled - scaled.max())
    return np.asarray(powers / powers.sum())


def mixture(logs: NDArray[np.floating], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mixture of next-token distributions, shape (vocabulary,).

    Args:
        logs: Natural logarithms of probabilities, shape (n, vocabulary).
        shares: The weight of each row, shape (n,).
    """
    return np.asarray(shares @ np.exp(np.asarray(logs, float)))
