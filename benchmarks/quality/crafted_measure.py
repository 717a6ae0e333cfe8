"""What the check `crafted` finds and what it costs, on questions, sets and generators that it was not fitted on.

Crafted alone, without the other checks, for the ablation in `train_crafted`: contexts with any poison left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.quality.headline_claims import of_data
from benchmarks.training.guard_data import Sample, measured_samples
from unpoison.defenses.guard.crafted import Crafted

__all__ = ["Measured", "groups_of", "measure", "measured_rows"]

PLAIN = ("poisonedrag", "radar-incorrect-context")


def measured_rows(folder: Path) -> list[Sample]:
    """The cells of the quality benchmark without fitted questions, and the clean files."""
    clean = [s for name, group in of_data(folder).items() if name.startswith("clean, clean_") for s in group]
    return [*measured_samples(folder), *clean]


def groups_of(sample: Sample) -> Iterator[str]:
    """The rows of the table that a sample counts in."""
    count = sum(sample.poison)
    attack, _, front = sample.attack.partition(", ")
    if attack in PLAIN and sample.domain != "biogen" and count in (1, 3, 5):
        yield f"question in front, {count}" if front else f"without, {count}"
        if not front:
            yield f"without, {sample.domain}, {count}"
    elif attack in ("poisonedrag-revprag", "tan", "paraphrase", "synonym") and count in (1, 2, 3, 5):
        yield f"{attack}, {count}"


@dataclass(frozen=True)
class Measured:
    """The probability of every passage of every sample."""

    samples: Sequence[Sample]
    probability: Sequence[np.ndarray]

    def clean(self) -> dict[str, list[np.ndarray]]:
        by = defaultdict(list)
        for s, p in zip(self.samples, self.probability):
            if s.attack == "none":
                by[s.domain].append(p)
        return by

    def bar(self, kept: float) -> float:
        """The threshold at which this share is kept of the average clean set."""
        sets = [np.concatenate(parts) for parts in self.clean().values()]
        values = np.concatenate(sets)
        each = np.concatenate([np.full(len(v), 1 / (len(v) * len(sets))) for v in sets])
        order = np.argsort(-values, kind="stable")
        return float(values[order][np.searchsorted(np.cumsum(each[order]), 1 - kept)])

    def left(self, bar: float) -> dict[str, list[bool]]:
        """For each group whether any poison is left, context by context."""
        by = defaultdict(list)
        for s, p in zip(self.samples, self.probability):
            for group in groups_of(s):
                by[group].append(bool((np.array(s.poison) & (p <= bar)).any()))
        return dict(sorted(by.items()))


def measure(crafted: Crafted, samples: Sequence[Sample]) -> Measured:
    made = []
    for s in samples:
        given = s.passages
        made.append(crafted.judge(s.question, [p.reading for p in given], [p.body for p in given]).probability)
    return Measured(samples, made)
