"""Discern-and-Answer: find the perturbed passages, ignore them, answer (Hong et al., 2024).

The model names the perturbed passages itself (the paper's Disc-inst), or a trained discriminator fills in that line of
the prompt (Disc-FiD to LLM). The paper's third variant is a reader with the discriminator in its own encoder: use such
a checkpoint as the generator, `models.FusionInDecoder` (`-g fid:FOLDER`), which names the perturbed passages and
answers from all of them.

`Discriminator` trains the same head, with the same losses except that of the reader, on the vectors of any encoder. In
the paper it uses the first encoder token of a T5 that reads question and passage together, and is trained with the
reader. Here any encoder with vectors of a fixed size is used, without training: the features are the passage's vector,
its elementwise product with the question's, and their inner product. Training on hundreds of questions takes seconds on
a CPU; the result is saved as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ShellOptions, make_answer
from unpoison.defenses.embedding import embed_passages
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.baseline_prompts import discern_prompt
from unpoison.models.checkpoints import sigmoid
from unpoison.models.protocols import Encoder, Generator, TwoTowers
from unpoison.models.requests import Flow, generate
from unpoison.utils.checks import at_least, within

__all__ = ["Discern", "Discriminator", "Labelled", "parse_reply"]


class Discern(Defense):
    """Ignore perturbed passages (Discern-and-Answer).

    If all passages are perturbed, the model answers from its own knowledge.

    Args:
        generator: Finds perturbed passages and answers in one call; with a discriminator it only answers.
        discriminator: A `Discriminator` or its saved file; with it `screen` needs no generator.
        threshold: The discriminator's minimum P(perturbed) of a perturbed passage, in [0, 1].
        encoder: The encoder of the discriminator's training; by default the one named in its file.

    As every defense it also takes the options of the shell (`ShellOptions`).

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
        **shell: Unpack[ShellOptions],
    ) -> None:
        if isinstance(discriminator, (str, Path)):
            discriminator = Discriminator.load(discriminator)
        if discriminator is not None:
            encoder = encoder or discriminator.encoder
            self.needs = ()
        super().__init__(generator=generator, encoder=encoder, **shell)
        self.discriminator = discriminator
        self.threshold = within("threshold", threshold, 0.0, 1.0)
        used = getattr(self.models.encoder, "name", None)
        if discriminator is not None and used != discriminator.encoder:
            raise OptionError(
                f"the discriminator was trained on vectors of {clip(discriminator.encoder)}, got the encoder "
                f"{clip(used)}; pass that one, or train another discriminator"
            )

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Discernment only; without a discriminator the model's answer is discarded."""
        if self.discriminator is not None:
            return (yield from self._classify(query, passages, self.discriminator))
        return (yield from self._by_prompt(query, passages))[0]

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Discernment and answer, in one call if the model does both."""
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
        assert target is not None  # noqa: S101  requested above
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
    """A parsed reply: the numbers of the perturbed passages, from 1, and the answer."""

    perturbed: frozenset[int]
    answer: str


_ANSWER = re.compile(r"answer:", re.IGNORECASE)
_NUMBERS = re.compile(r"\bpassages?\s+(\d+(?:\s*(?:,\s*(?:and\s+)?|and\s+)\d+)*)", re.IGNORECASE)


def parse_reply(reply: str) -> Discerned:
    """Parse "Passage 2, 4 are perturbed. ... answer: Paris"; any other reply is an answer as a whole."""
    marker = _ANSWER.search(reply)
    head = reply[: marker.start()] if marker else reply
    first = re.split(r"[.\n]", head.strip().removeprefix("perturbed:").strip(), maxsplit=1)[0]
    named = _NUMBERS.search(first) if marker or "perturbed" in first else None
    numbers = frozenset(int(number) for number in re.findall(r"\d{1,6}", named[1])) if named else frozenset[int]()
    return Discerned(numbers, reply[marker.end() :].strip() if marker else reply.strip())


FORM = "unpoison discriminator 1"
MAX_FILE_BYTES = 10_000_000
"""Maximum bytes of a file; a head for vectors of 100,000 entries is smaller."""


class Labelled(NamedTuple):
    """A question, its passages in retrieval order, and which of them are perturbed."""

    question: str
    passages: Sequence[str]
    perturbed: Sequence[bool]


@dataclass(frozen=True, slots=True, eq=False)
class Discriminator:
    """A trained head.

    Attributes:
        encoder: The name of the encoder of its training.
        weights: Shape (2 d + 1,), for vectors of d entries.
        bias: Added to the product of weights and features.
    """

    encoder: str
    weights: NDArray[np.float64]
    bias: float

    @classmethod
    def train(cls, examples: Sequence[Labelled], encoder: Encoder, *, penalty: float = 0.01) -> Self:
        """Fit the head to labelled passages.

        The loss of a question is the mean cross-entropy of its passages, plus the paper's contrastive term: minus the
        logarithm of the share of exp(z) of the perturbed passages among themselves and as many others, taken from the
        end of the list. A question without a perturbed passage has no such term. `penalty` times half the squared
        weights is added to the mean over questions. L-BFGS starts from 0, so that the result is deterministic.

        Args:
            examples: Several hundred, with perturbed and clean passages.
            encoder: Any encoder whose vectors do not depend on the other texts of a call.
            penalty: L2 regularisation, 0 or more.

        Raises:
            OptionError: An unsuitable encoder, or a negative penalty.
            InputError: Labels and passages do not match, or there is only one label.
        """
        from scipy.optimize import minimize

        at_least("penalty", penalty, 0.0, whole=False)
        if getattr(encoder, "per_set", False):
            raise OptionError(
                f"the vectors of {clip(encoder.name)} depend on the other texts of a call and cannot be used for "
                "training; pass a sentence encoder such as 'minilm' or 'st:NAME_OR_PATH'"
            )
        for example in examples:
            if len(example.passages) != len(example.perturbed):
                raise InputError(
                    f"{clip(example.question)} has {len(example.passages)} passages and {len(example.perturbed)} "
                    "labels; give one label for each"
                )
        groups = [_features(*_vectors(encoder, example)) for example in examples if example.passages]
        labels = [np.array(example.perturbed, bool) for example in examples if example.passages]
        if len({bool(label) for group in labels for label in group}) < 2:
            raise InputError("the examples must have both perturbed and clean passages; label both")

        def objective(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            weights = parameters[:-1]
            total, slope = penalty / 2 * float(weights @ weights), np.append(penalty * weights, 0.0)
            for features, perturbed in zip(groups, labels, strict=True):
                loss, by_logit = _loss(features @ weights + parameters[-1], perturbed)
                total += loss / len(groups)
                slope[:-1] += features.T @ by_logit / len(groups)
                slope[-1] += by_logit.sum() / len(groups)
            return total, slope

        solution = minimize(objective, np.zeros(groups[0].shape[1] + 1), jac=True, method="L-BFGS-B").x
        return cls(encoder.name, np.asarray(solution[:-1], float), float(solution[-1]))

    def probabilities(self, question: ArrayLike, passages: ArrayLike) -> NDArray[np.float64]:
        """P(perturbed) of each passage, shape (k,), from the question's vector (d,) and the passages' (k, d).

        Raises:
            InputError: The vectors differ in size from those of the training.
        """
        features = _features(np.asarray(question, float), np.asarray(passages, float))
        if features.shape[1] != len(self.weights):
            raise InputError(
                f"the discriminator was trained on vectors of {(len(self.weights) - 1) // 2} entries, got "
                f"{(features.shape[1] - 1) // 2}; use the encoder {clip(self.encoder)}"
            )
        return sigmoid(features @ self.weights + self.bias)

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        document = {"form": FORM, "encoder": self.encoder, "bias": self.bias, "weights": self.weights.tolist()}
        Path(path).write_text(json.dumps(document), "utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the output of `save`.

        Raises:
            InputError: The file is unreadable or invalid.
        """
        try:
            with Path(path).open("rb") as file:
                document: Any = json.loads(file.read(MAX_FILE_BYTES))
            weights, bias = np.array(document["weights"], dtype=float), float(document["bias"])
            sound = document["form"] == FORM and isinstance(document["encoder"], str) and weights.ndim == 1
            if not sound or not np.isfinite([*weights, bias]).all():
                raise ValueError("the wrong form")
        except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"{clip(str(path), 200)} is not a saved discriminator ({type(error).__name__}); "
                "give a file written by Discriminator.save"
            ) from error
        return cls(document["encoder"], weights, bias)


def _vectors(encoder: Encoder, example: Labelled) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(encoder, TwoTowers):
        question, passages = encoder.encode_queries([example.question]), encoder.encode(example.passages)
        return np.asarray(question[0], float), np.asarray(passages, float)
    both = np.asarray(encoder.encode([example.question, *example.passages]), float)
    return both[0], both[1:]


def _features(question: NDArray[np.float64], passages: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shape (k, 2 d + 1)."""
    return np.hstack([passages, passages * question, passages @ question[:, None]])


def _loss(logits: NDArray[np.float64], perturbed: NDArray[np.bool_]) -> tuple[float, NDArray[np.float64]]:
    """The loss of one question (cross-entropy plus contrast), and its gradient by the logits, shape (k,)."""
    loss = float(np.logaddexp(0, np.where(perturbed, -logits, logits)).mean())
    slope = (0.5 * (1 + np.tanh(logits / 2)) - perturbed) / len(logits)
    positives = np.flatnonzero(perturbed)
    others = np.flatnonzero(~perturbed)[::-1][: len(positives)]
    if len(positives) and len(others):
        both = np.concatenate([positives, others])
        loss += float(np.logaddexp.reduce(logits[both]) - np.logaddexp.reduce(logits[positives]))
        slope[both] += _softmax(logits[both])
        slope[positives] -= _softmax(logits[positives])
    return loss, slope


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.exp(logits - np.logaddexp.reduce(logits)))
