"""What a defense makes of measured samples through `screen` as whoever calls it: with orders, titles and disguises.

Every number on what is kept or dropped goes through here. The functions inside a defense, which fits use, skip a part
of that way: a table that is made of them says less than whoever installs the package will see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.guard_data import Sample
from unpoison.bench.evaluation.runs import CellTally, tally
from unpoison.core.registry import create
from unpoison.defenses.base import Defense
from unpoison.models import load_encoder
from unpoison.types import Screening


@dataclass(frozen=True)
class Screened:
    """A sample, and what the defense said of its passages.

    Attributes:
        sample: The question with its labelled passages.
        screening: The defense's.
    """

    sample: Sample
    screening: Screening

    @property
    def poison(self) -> NDArray[np.bool_]:
        return np.array(self.sample.poison)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which passages a model would read, shape (k,)."""
        return np.array([verdict.kept for verdict in self.screening.verdicts])

    @property
    def probability(self) -> NDArray[np.float64]:
        """Of poison, as Guard says it; 1 for orders. Shape (k,)."""
        return np.asarray(self.screening.evidence["probability"], dtype=np.float64)

    @property
    def tally(self) -> CellTally:
        """The passages counted by what they are and what became of them."""
        poison, gold = (set(np.flatnonzero(labels).tolist()) for labels in (self.sample.poison, self.sample.gold))
        return tally(len(self.sample.poison), self.screening.kept_indices, poison, gold)


def screen_all(defense: Defense | str, samples: Sequence[Sample]) -> list[Screened]:
    """Every sample through the defense's `screen`."""
    made = create("defenses", defense, encoder=load_encoder("lexical")) if isinstance(defense, str) else defense
    return [Screened(sample, made.screen(sample.question, sample.passages)) for sample in samples]
