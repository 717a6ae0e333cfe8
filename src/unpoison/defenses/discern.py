"""Discern-and-Answer: find the perturbed passages, ignore them, answer (Hong et al., 2024).

The model names the perturbed passages itself (the paper's Disc-inst), or a discriminator that was trained for it fills
that line of the prompt (Disc-FiD to LLM). The paper's third variant is a reader whose own encoder carries the
discriminator: give such a checkpoint as the generator, `models.FusionInDecoder` (`-g fid:FOLDER`), which says what it
finds perturbed and answers from all passages. `unpoison.defenses.discriminator` trains the same head, with the same
losses but that of the reader, on the vectors of any encoder.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unpoison.core.reasons import Reason
from unpoison.defenses.base import Defense, SourcesOption, make_answer
from unpoison.defenses.discriminator import Discriminator
from unpoison.defenses.embedding import embed_passages
from unpoison.defenses.injections import InjectionPolicy
from unpoison.errors import OptionError, clip
from unpoison.models.baseline_prompts import discern_prompt
from unpoison.models.protocols import Encoder, Generator, InjectionClassifier
from unpoison.models.requests import Flow, generate
from unpoison.runtime.driver import Limits
from unpoison.types import Answer, Evidence, Passage, Query, Reply, Screening
from unpoison.utils.checks import within

__all__ = ["Discern", "parse_reply"]


class Discern(Defense):
    """Ignore the passages that are found to be perturbed (Discern-and-Answer).

    When all are found perturbed, the model is to answer from what it knows.

    Args:
        generator: Finds perturbed passages and answers in one call; with a discriminator it only answers.
        discriminator: A `Discriminator` or the file that one was saved to; with it `screen` needs no generator.
        threshold: P(perturbed) from which the discriminator's verdict is perturbed, in [0, 1].
        encoder: The one that the discriminator was trained on; by default the one that its file names.
        trust_embeddings: False encodes here what comes with an embedding, for vectors can be forged.
        prompt_injection: What becomes of passages that hold a prompt injection, before anything reads them: `redact`
            cuts its sentences and drops what has no harmless rest, `drop`, `flag` only says so, `keep` does not look.
        injection_model: A classifier that finds injections in place of the built-in detector, or the string of one:
            `hf:NAME_OR_PATH` or `onnx:FOLDER` (`models.load_injection_model`).
        sources: Who says what: `Sources`, or a policy as a file or a mapping. What is of a blocked source is dropped
            unread, and what a source repeats is read once.
        limits: Bounds on the model calls.

    Raises:
        OptionError: An option out of its range, or another encoder than the discriminator's.
        InputError: The discriminator's file cannot be used.
    """

    name = "discern"
    needs: tuple[str, ...] = ("generator",)
    summary = "has the model, or a trained discriminator, name the perturbed passages, and ignores them"
    calls = "1"
    source = "Hong et al., 2024"

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        discriminator: Discriminator | Path | str | None = None,
        threshold: float = 0.5,
        encoder: Encoder | str | None = None,
        trust_embeddings: bool = True,
        prompt_injection: InjectionPolicy = "keep",
        injection_model: InjectionClassifier | str | None = None,
        sources: SourcesOption = None,
        limits: Limits | None = None,
    ) -> None:
        if isinstance(discriminator, (str, Path)):
            discriminator = Discriminator.load(discriminator)
        if discriminator is not None:
            encoder = encoder or discriminator.encoder
            self.needs = ()
        super().__init__(
            generator=generator,
            encoder=encoder,
            trust_embeddings=trust_embeddings,
            prompt_injection=prompt_injection,
            injection_model=injection_model,
            sources=sources,
            limits=limits,
        )
        self.discriminator = discriminator
        self.threshold = within("threshold", threshold, 0.0, 1.0)
        used = getattr(self.models.encoder, "name", None)
        if discriminator is not None and used != discriminator.encoder:
            raise OptionError(
                f"the discriminator was trained on vectors of {clip(discriminator.encoder)}, got the encoder "
                f"{clip(used)}; pass that one, or train another discriminator"
            )

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Discernment alone; without a discriminator the model's answer is thrown away."""
        if self.discriminator is not None:
            return (yield from self._classify(query, passages, self.discriminator))
        return (yield from self._by_prompt(query, passages))[0]

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Discernment and answer; in one call where the model does both."""
        if self.discriminator is None:
            screening, reply = yield from self._by_prompt(query, passages)
        else:
            screening = yield from self._classify(query, passages, self.discriminator)
            perturbed = [i + 1 for i in screening.dropped_indices]
            prompt = discern_prompt(query.reading, [passage.reading for passage in passages], perturbed)
            (reply,) = yield from generate([prompt], "answer")
        return make_answer(replace(reply, text=parse_reply(reply.text).answer), screening, {"reply": reply.text})

    def _by_prompt(self, query: Query, passages: tuple[Passage, ...]) -> Flow[tuple[Screening, Reply]]:
        prompt = discern_prompt(query.reading, [passage.reading for passage in passages])
        (reply,) = yield from generate([prompt], "discern and answer")
        perturbed = parse_reply(reply.text).perturbed
        scores = [0.0 if i + 1 in perturbed else 1.0 for i in range(len(passages))]
        reasons = [Reason.of("discern.unperturbed" if score else "discern.perturbed") for score in scores]
        kept = [i for i, score in enumerate(scores) if score]
        return self._build_screening(query, passages, kept, scores, reasons, Evidence()), reply

    def _classify(self, query: Query, passages: tuple[Passage, ...], discriminator: Discriminator) -> Flow[Screening]:
        if not passages:
            return self._build_screening(query, passages, [], [], [], Evidence())
        vectors, target = yield from embed_passages(query, passages, self.models.encoder, with_query=True)
        assert target is not None  # noqa: S101  asked for above
        probabilities = discriminator.probabilities(target, vectors)
        kept = np.flatnonzero(probabilities < self.threshold).tolist()
        reasons = [
            Reason.of(
                f"discern.classified_{'unperturbed' if p < self.threshold else 'perturbed'}",
                probability=p,
                threshold=self.threshold,
            )
            for p in probabilities
        ]
        evidence = Evidence({"perturbed": probabilities})
        return self._build_screening(query, passages, kept, (1 - probabilities).tolist(), reasons, evidence)

    def _build_screening(
        self,
        query: Query,
        passages: tuple[Passage, ...],
        kept: list[int],
        scores: list[float],
        reasons: list[Reason],
        evidence: Evidence,
    ) -> Screening:
        if passages and not kept:
            evidence = replace(evidence, notes=("every passage was found perturbed: answered from own knowledge",))
        return Screening.decided(
            self.name, query, passages, kept=kept, scores=scores, reasons=reasons, evidence=evidence
        )


class Discerned(NamedTuple):
    """What a reply says: the numbers of the perturbed passages, from 1, and the answer."""

    perturbed: frozenset[int]
    answer: str


_ANSWER = re.compile(r"answer:", re.IGNORECASE)
_NUMBERS = re.compile(r"\bpassages?\s+(\d+(?:\s*(?:,\s*(?:and\s+)?|and\s+)\d+)*)", re.IGNORECASE)


def parse_reply(reply: str) -> Discerned:
    """Read a reply of the form "Passage 2, 4 are perturbed. ... answer: Paris"; without one it is the answer whole."""
    marker = _ANSWER.search(reply)
    head = reply[: marker.start()] if marker else reply
    first = re.split(r"[.\n]", head.strip().removeprefix("perturbed:").strip(), maxsplit=1)[0]
    named = _NUMBERS.search(first) if marker or "perturbed" in first else None
    numbers = frozenset(int(number) for number in re.findall(r"\d{1,6}", named[1])) if named else frozenset[int]()
    return Discerned(numbers, reply[marker.end() :].strip() if marker else reply.strip())
