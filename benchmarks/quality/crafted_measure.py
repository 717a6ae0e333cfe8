"""What the check `crafted` finds and what it costs, on questions, sets and generators that it was not fitted on.

    python -m benchmarks crafted_measure evaluation-data

Crafted alone, without the other checks: contexts with any poison left, clean passages kept, questions touched, and
passages lost that hold a right answer.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality.headline_claims import of_data
from benchmarks.training.guard_data import Sample, measured_samples
from unpoison.bench.evaluation import load, wilson
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


def rate(hits: int, total: int) -> str:
    if not total:
        return "-"
    estimate = wilson(hits, total)
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def answers_of(folder: Path) -> dict[str, tuple[str, ...]]:
    """The right answers of each question."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        try:
            found.update({e.question: e.correct_answers for e in load(path).examples})
        except Exception:  # noqa: S112  not all files hold questions
            continue
    return found


def report(measured: Measured, bar: float, answers: dict[str, tuple[str, ...]]) -> None:
    clean = measured.clean()
    shares = {name: float(np.mean(np.concatenate(parts) <= bar)) for name, parts in clean.items()}
    touched = [bool((p > bar).any()) for parts in clean.values() for p in parts]
    gold, bearing = [], []
    for s, p in zip(measured.samples, measured.probability):
        if s.attack == "none":
            kept = p <= bar
            if any(s.gold):
                gold.append(bool((np.array(s.gold) & kept).any()))
            right = [a.casefold() for a in answers.get(s.question, ()) if len(a) > 2]
            bearing.extend(not k for t, k in zip(s.passages, kept) if any(a in t.reading.casefold() for a in right))
    print(f"Threshold {bar:.4f}\n\n| measure | % [95 % interval] | n |\n|---|---|---|")
    print(f"| clean passages kept, average set | {100 * np.mean(list(shares.values())):.2f} | {len(shares)} sets |")
    for name, hits in (("questions that keep a gold passage", gold), ("questions touched", touched),
                       ("answer-bearing passages lost", bearing)):  # fmt: skip
        print(f"| {name} | {rate(sum(hits), len(hits))} | {len(hits)} |")
    for name, hits in measured.left(bar).items():
        print(f"| left: {name} | {rate(sum(hits), len(hits))} | {len(hits)} |")
    print("\n| clean set | passages kept % | questions touched % | questions |\n|---|---|---|---|")
    for name, parts in sorted(clean.items(), key=lambda item: shares[item[0]]):
        values = np.concatenate(parts)
        hit = sum(bool((p > bar).any()) for p in parts)
        print(f"| {name} | {rate(int((values <= bar).sum()), len(values))} | {rate(hit, len(parts))} | {len(parts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--damage", type=float, default=0.02)
    parser.add_argument("--kept", type=float, help="the threshold at which so much is kept, instead")
    arguments = parser.parse_args()
    crafted = Crafted.load()
    measured = measure(crafted, measured_rows(arguments.folder))
    bar = measured.bar(arguments.kept) if arguments.kept else crafted.threshold(arguments.damage)
    report(measured, bar, answers_of(arguments.folder))


if __name__ == "__main__":
    main()
