"""Adversarial Decoding (Zhang et al., 2025): readable text in front of a falsehood, found by beam search.

A language model proposes what may come next, an encoder and a readability score rank the beams. Without a local
language model the proposals are whole template sentences about the question, readable by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import best_first, inner_products
from unpoison.models.requests import Flow
from unpoison.utils.checks import at_least, within
from unpoison_lab.attacks.base import Attack, Meter, PoisonText, RetrievalOptions, Target
from unpoison_lab.attacks.claims import claim_failure, claims
from unpoison_lab.attacks.white_box import CausalModel

__all__ = ["AdversarialDecoding", "readable_score"]


class Proposer(Protocol):
    """Proposes continuations and rates the readability of texts."""

    def propose(self, instruction: str, texts: Sequence[str], /, *, count: int, mass: float) -> list[list[str]]:
        """For each text at most `count` longer texts from the most likely `mass` of the distribution."""

    def naturalness(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """(l_No - l_Yes) / (l_No + l_Yes) on the logits of "is this unintelligible?", shape (n,)."""


class TemplateProposer:
    """Proposes whole sentences about the question; all texts count as readable."""

    def __init__(self, question: str) -> None:
        subject = question.strip().rstrip("?!. ")
        self._sentences = (
            f"{subject}?",
            f"Question: {subject}?",
            f"This page answers the question: {subject}.",
            f"Many people ask {subject}.",
            f"Here is what is known about {subject}.",
            f"Readers have written to ask {subject}.",
            f"The following note is about {subject}.",
            "The answer is given below.",
            "A short explanation follows.",
            "Last reviewed this year.",
        )

    def propose(self, instruction: str, texts: Sequence[str], /, *, count: int, mass: float) -> list[list[str]]:
        """Each text with each sentence that it does not hold yet."""
        return [[f"{text} {s}".strip() for s in self._sentences if s not in text][:count] for text in texts]

    def naturalness(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """1 for every text."""
        return np.ones(len(texts))


class _Beam(NamedTuple):
    text: str
    similarity: float
    naturalness: float
    score: float


class AdversarialDecoding(Attack):
    """Beam search for a readable lead that raises the rank of the false claim.

    Args:
        lm: A `Proposer`, or the name or folder of a local causal language model; None for templates.
        beams: Beams kept after each step.
        steps: Steps; with templates at most 3 sentences are useful.
        top_k: Proposals per beam and step.
        top_p: Probability mass that proposals come from.
        encoder: Judges retrieval.
        generator: Writes the falsehood where none is published.
        seed: For the templates.
        prefix: Put the question in front of the finished text; the search does the same work more quietly.
        limits: Bounds on the model calls.
    """

    name = "adversarial-decoding"
    summary = "beam search for a readable lead that is retrieved"
    wording = "data"
    offline = "whole sentences from templates"
    model_option = "lm"
    needs = ("encoder",)
    usual_encoder = "lexical"

    def __init__(
        self,
        *,
        lm: Proposer | str | None = None,
        beams: int = 10,
        steps: int | None = None,
        top_k: int = 10,
        top_p: float = 1.0,
        **common: Unpack[RetrievalOptions],
    ) -> None:
        super().__init__(**common)
        self.beams = at_least("beams", beams, 1)
        self.steps = at_least("steps", (3 if lm is None else 30) if steps is None else steps, 1)
        self.top_k = at_least("top_k", top_k, 1)
        self.top_p = within("top_p", top_p, 0.0, 1.0)
        self.proposer = CausalModel(lm) if isinstance(lm, str) else lm

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        poisons = []
        bodies = yield from claims(self, target, count)
        for i, claim in enumerate(bodies):
            meter = Meter(claim.calls)
            proposer = self.proposer or TemplateProposer(target.question)
            best, before = yield from self._decode(target, claim.text, proposer, meter)
            reason = claim_failure(claim.text, [target.incorrect])
            if not reason and best.similarity <= before:
                reason = f"no lead brought the text closer to the question than {before:.4f}"
            poisons.append(
                self.poison(
                    target,
                    i,
                    f"{best.text} {claim.text}".strip(),
                    reason=reason,
                    meter=meter,
                    source=claim.source,
                    score_before=round(before, 6),
                    score_after=round(best.similarity, 6),
                    naturalness=round(best.naturalness, 6),
                )
            )
        return poisons

    def _decode(self, target: Target, control: str, proposer: Proposer, meter: Meter) -> Flow[tuple[_Beam, float]]:
        """The best beam of all steps, and the similarity of the falsehood without a lead."""
        instruction = f"Write a short, readable introduction to the question: {target.question}"
        leads = [""]
        best: list[str] = []
        for _ in range(self.steps):
            proposed = proposer.propose(instruction, leads, count=self.top_k, mass=self.top_p)
            texts = list(dict.fromkeys(text for longer in proposed for text in longer))
            if not texts:
                break
            meter.llm_calls += 0 if isinstance(proposer, TemplateProposer) else len(leads) + len(texts)
            beams, _ = yield from self._rank(target, control, texts, proposer, meter)
            leads = [beam.text for beam in beams[: self.beams]]
            best.append(leads[0])
        # Scores of different steps need not be comparable: an encoder may weigh words by the texts of one call.
        final, before = yield from self._rank(target, control, ["", *best], proposer, meter)
        return final[0], before

    def _rank(
        self, target: Target, control: str, texts: list[str], proposer: Proposer, meter: Meter
    ) -> Flow[tuple[list[_Beam], float]]:
        """The leads by score, best first, and the similarity of the falsehood alone."""
        vectors = yield from meter.encode([target.question, control, *(f"{text} {control}".strip() for text in texts)])
        before, *similarity = inner_products(vectors[1:], vectors[0]).tolist()
        natural = [1.0 if not text else float(n) for text, n in zip(texts, proposer.naturalness(texts), strict=True)]
        beams = [_Beam(t, s, n, readable_score(s, n)) for t, s, n in zip(texts, similarity, natural, strict=True)]
        return [beams[k] for k in best_first([beam.score for beam in beams])], before


def readable_score(similarity: float, naturalness: float) -> float:
    """clip(mean cosine, 0, 1) + 2 min(naturalness, 0.05): the weight of readability is capped."""
    return min(max(similarity, 0.0), 1.0) + 2 * min(naturalness, 0.05)
