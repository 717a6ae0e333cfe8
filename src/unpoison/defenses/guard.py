"""Guard: decides whether there is an attack and which passages carry it, and touches nothing otherwise.

The published defenses rerank or delete in every set, so they also cost something where nobody attacks. Guard gathers
evidence on each passage in the company of the others (`kernels.evidence`), turns it into a probability of poison with
coefficients fitted on open data (`defenses.guard_model`), and drops only what is above a threshold that was set for a
stated damage on clean retrievals. What is kept stays in the retriever's order.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unpoison.checks import among, within
from unpoison.defenses.base import Defense, embedded
from unpoison.defenses.guard_model import GuardModel, company
from unpoison.defenses.guard_reasons import reasons
from unpoison.driver import Limits
from unpoison.kernels.evidence import signs
from unpoison.kernels.trees import evaluate
from unpoison.models.protocols import Encoder, Generator
from unpoison.requests import Flow, encode
from unpoison.types import Evidence, Passage, Query, Screening

__all__ = ["Guard"]

Matrix = NDArray[np.float64]


class Guard(Defense):
    """Drop the passages that are probably poison, and only those.

    Args:
        damage: The share of clean passages that may be lost on a clean retrieval, in [0.0025, 0.1]; it chooses the
            threshold by the clean data sets of the training.
        threshold: The probability above which a passage is dropped, in [0, 1], instead of `damage`; `unpoison guard
            calibrate` finds one for your own retrievals.
        coefficients: `minilm`, fitted on the vectors of all-MiniLM-L6-v2, `lexical`, on those of the built-in
            encoder, or `auto`: `lexical` for the built-in encoder's vectors and `minilm` for all others. For an
            encoder other than these two calibrate the threshold.
        encoder: For passages that bring no embedding; the built-in lexical encoder by default. Given embeddings are
            used when the query brings one too, or the encoder can make one.
        generator: For `answer`.
        limits: Bounds on the model calls.

    Raises:
        OptionError: An option out of its range.
    """

    name = "guard"
    summary = "drops only what is probably poison, at a stated damage on clean retrievals"
    calls = "1"
    source = "this package"

    def __init__(
        self,
        *,
        damage: float = 0.02,
        threshold: float | None = None,
        coefficients: Literal["auto", "minilm", "lexical"] = "auto",
        encoder: Encoder | str | None = None,
        generator: Generator | str | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(encoder=encoder or "lexical", generator=generator, limits=limits)
        among("coefficients", coefficients, ("auto", "minilm", "lexical"))
        self.coefficients = coefficients
        self.damage = damage
        self.threshold = None if threshold is None else within("threshold", threshold, 0.0, 1.0)
        for name in ("minilm", "lexical") if coefficients == "auto" else (coefficients,):
            GuardModel.load(name).threshold(damage)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Evidence, two passes, threshold."""
        if not passages:
            return Screening.decided(self.name, query, passages, kept=(), scores=(), reasons=())
        vectors, target, notes = yield from self._vectors(query, passages)
        model = GuardModel.load(self._coefficients(passages, notes))
        found = signs(query.text, [p.text for p in passages], vectors, target)

        rows = model.table(found)
        around = company(evaluate(model.first, rows), found)
        probability = model.judged(rows, around)
        threshold = model.threshold(self.damage) if self.threshold is None else self.threshold
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=np.flatnonzero(probability <= threshold).tolist(),
            scores=1 - probability,
            reasons=reasons(model, found, rows, around, probability),
            evidence=Evidence(
                {
                    "probability": probability,
                    "threshold": np.array(threshold),
                    "similarity": found.columns["similarity"],
                    "residual": found.residual,
                    "overlap": found.overlap,
                },
                notes,
                graph="residual",
            ),
        )

    def _vectors(
        self, query: Query, passages: tuple[Passage, ...]
    ) -> Flow[tuple[NDArray[np.float32], NDArray[np.float32], tuple[str, ...]]]:
        """The passages' vectors, the query's, and a note where given ones could not be used.

        Vectors of the built-in encoder only compare within one call, so it cannot add to what is given.
        """
        given = [p.embedding is not None for p in passages]
        per_set = getattr(self.models.encoder, "per_set", False)
        if per_set and any(given) and not (all(given) and query.embedding is not None):
            made = yield from encode([*(p.text for p in passages), query.text])
            note = "given embeddings are not used: the query or a passage has none, and the encoder cannot add to them"
            return made[:-1], made[-1], (note,)
        if per_set and query.embedding is not None and not any(given):
            query = Query(query.text)
        vectors, target = yield from embedded(query, passages, self.models.encoder, with_query=True)
        assert target is not None  # noqa: S101  it was asked for
        return vectors, target, ()

    def _coefficients(self, passages: tuple[Passage, ...], notes: tuple[str, ...]) -> str:
        if self.coefficients != "auto":
            return self.coefficients
        given = any(p.embedding is not None for p in passages) and not notes
        return "minilm" if given or not getattr(self.models.encoder, "per_set", False) else "lexical"
