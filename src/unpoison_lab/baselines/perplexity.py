"""Perplexity filtering: drop passages of high perplexity (Alon and Kamfonas, 2023; Jain et al., 2023).

It detects token sequences without meaning, such as the output of a gradient attack. Fluent false passages have normal
perplexity: TrustRAG's Figure 4 shows that the two distributions overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, add_sentences
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ScreeningOptions
from unpoison.errors import InputError
from unpoison.models.protocols import LogProbabilities
from unpoison.models.requests import Flow, likelihood
from unpoison.utils.checks import at_least, within

__all__ = ["Perplexity", "perplexity"]

add_sentences({
    "perplexity.above": "perplexity {perplexity:.1f} is above {threshold:.1f}",
    "perplexity.within": "perplexity {perplexity:.1f} is within {threshold:.1f}",
})  # fmt: skip


class Perplexity(Defense):
    """Drop passages whose perplexity is above a threshold.

    Args:
        threshold: The maximum perplexity of clean text under this model; `calibrate` measures it.
        window: Judge the worst window of this many tokens instead of the whole passage; None for the whole.
        language_model: A model with token log-probabilities; `hf:NAME_OR_PATH` loads a causal language model.

    Like every defense, it also takes the common options (`ScreeningOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "perplexity"
    needs = ("language_model",)
    summary = "drops passages that a causal language model finds unlikely"
    calls = "1"
    source = "Alon and Kamfonas, 2023; Jain et al., 2023"

    def __init__(
        self,
        threshold: float,
        *,
        window: int | None = None,
        language_model: LogProbabilities | str | None = None,
        **shell: Unpack[ScreeningOptions],
    ) -> None:
        super().__init__(language_model=language_model, **shell)
        self.threshold = at_least("threshold", threshold, 1.0, whole=False)
        self.window = None if window is None else at_least("window", window, 1)

    @classmethod
    def calibrate(
        cls,
        clean: Sequence[str],
        language_model: LogProbabilities,
        *,
        quantile: float = 0.95,
    ) -> Self:
        """Create a defense whose threshold is a quantile of the perplexities of known clean texts.

        Raises:
            InputError: No text to measure.
        """
        if not clean:
            raise InputError("clean has no text to calibrate on; pass a few hundred trusted passages")
        values = [perplexity(scores) for scores in language_model.logprobs(clean)]
        threshold = float(np.quantile(values, within("quantile", quantile, 0.0, 1.0)))
        return cls(max(threshold, 1.0), language_model=language_model)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        scores = yield from likelihood([p.reading for p in passages])
        values = np.array([perplexity(score, self.window) for score in scores])
        kept = values <= self.threshold
        notes = () if kept.any() or not passages else ("every passage is above the threshold: nothing is left",)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=np.flatnonzero(kept).tolist(),
            scores=-np.log(values),
            reasons=[
                Reason.of(
                    f"perplexity.{'above' if value > self.threshold else 'within'}",
                    perplexity=value,
                    threshold=self.threshold,
                )
                for value in values
            ],
            evidence=Evidence({"perplexity": values}, notes),
        )


def perplexity(log_probabilities: NDArray[np.float64], window: int | None = None) -> float:
    """Exp of the mean negative log-probability; with a window, the maximum over windows without overlap.

    Args:
        log_probabilities: From the second token on, shape (T - 1,); empty for a text of fewer than two tokens.
        window: Tokens in a window.

    Returns:
        At least 1; 1 for an empty input. Capped at e^700, near the largest float.
    """
    if len(log_probabilities) == 0:
        return 1.0
    size = window or len(log_probabilities)
    stretches = [log_probabilities[i : i + size] for i in range(0, len(log_probabilities), size)]
    return float(np.exp(min(700.0, max(-float(np.mean(stretch)) for stretch in stretches))))
