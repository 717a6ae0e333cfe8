"""The discriminator of Discern-and-Answer: a linear head that tells perturbed passages from the vectors of an encoder.

In the paper it sits on the first encoder token of a T5 that reads question and passage together, and is trained with
the reader. Here the encoder is any that gives vectors of a fixed size, and stays as it is: the head sees the passage's
vector, its product with the question's, entry by entry, and their cosine. That trains on hundreds of questions in
seconds, on a CPU, and is saved as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.errors import InputError, OptionError, clip
from unpoison.models.protocols import Encoder, TwoTowers
from unpoison.utils.checks import at_least

__all__ = ["Discriminator", "Labelled"]

FORM = "unpoison discriminator 1"
MAX_FILE_BYTES = 10_000_000
"""Bytes of a file that is read: a head for vectors of 100,000 entries is smaller."""


class Labelled(NamedTuple):
    """A question, its passages in retrieval order, and which of them are perturbed."""

    question: str
    passages: Sequence[str]
    perturbed: Sequence[bool]


@dataclass(frozen=True, slots=True, eq=False)
class Discriminator:
    """A trained head.

    Attributes:
        encoder: The name of the encoder whose vectors it was trained on.
        weights: Shape (2 d + 1,), for vectors of d entries.
        bias: Added to their product with the features.
    """

    encoder: str
    weights: NDArray[np.float64]
    bias: float

    @classmethod
    def train(cls, examples: Sequence[Labelled], encoder: Encoder, *, penalty: float = 0.01) -> Self:
        """Fit the head to labelled passages.

        The loss of a question is the mean cross-entropy of its passages, plus the paper's contrastive term: minus the
        logarithm of the share of exp(z) that the perturbed passages have among themselves and as many others, taken
        from the end of the list. A question without a perturbed passage has none. To the mean over questions `penalty`
        times half the squared weights is added. Minimised by L-BFGS from 0, so that equal examples give equal heads.

        Args:
            examples: Some hundreds; perturbed and clean passages must both occur.
            encoder: Any but one whose vectors depend on the other texts of a call.
            penalty: The larger, the smaller the weights; 0 or more.

        Raises:
            OptionError: An encoder that cannot be used, or a negative penalty.
            InputError: Labels and passages do not match, or only one label occurs.
        """
        from scipy.optimize import minimize

        at_least("penalty", penalty, 0.0, whole=False)
        if getattr(encoder, "per_set", False):
            raise OptionError(
                f"the vectors of {clip(encoder.name)} depend on the other texts of a call, so nothing can be trained "
                "on them; pass a sentence encoder such as 'minilm' or 'st:NAME_OR_PATH'"
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
            raise InputError("the examples must hold perturbed passages and clean ones; label both")

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
            InputError: Vectors of another size than it was trained on.
        """
        features = _features(np.asarray(question, float), np.asarray(passages, float))
        if features.shape[1] != len(self.weights):
            raise InputError(
                f"the discriminator was trained on vectors of {(len(self.weights) - 1) // 2} entries, got "
                f"{(features.shape[1] - 1) // 2}; use the encoder {clip(self.encoder)}"
            )
        return 0.5 * (1 + np.tanh((features @ self.weights + self.bias) / 2))

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        document = {"form": FORM, "encoder": self.encoder, "bias": self.bias, "weights": self.weights.tolist()}
        Path(path).write_text(json.dumps(document), "utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote.

        Raises:
            InputError: The file cannot be read, or is of another kind.
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
                f"{clip(str(path), 200)} holds no discriminator ({type(error).__name__}); "
                "give a file that Discriminator.save wrote"
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
    """Cross-entropy plus contrast of one question, and its derivative by the logits, shape (k,)."""
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
