"""The tables of the quality benchmark, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from unpoison.algorithms.intervals import bootstrap_ratio
from unpoison.bench.evaluation import CellTally, Estimate, wilson

Tallies = Sequence[CellTally]
Measure = Callable[[Tallies], str]


def table(corner: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A Markdown table."""
    lines = [f"| {corner} | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows]
    return "\n".join(lines) + "\n"


def percent(estimate: Estimate) -> str:
    if np.isnan(estimate.value):
        return "-"
    return f"{100 * estimate.value:.0f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def poisoned(tallies: Tallies) -> str:
    return percent(wilson(sum(t.poisoned for t in tallies), len(tallies)))


def poison_left(tallies: Tallies) -> str:
    mean = bootstrap_ratio([t.poison_kept for t in tallies], [1] * len(tallies))
    return f"{mean.value:.2f} [{mean.low:.2f}, {mean.high:.2f}]"


def damaged(tallies: Tallies) -> str:
    return percent(wilson(sum(t.damaged for t in tallies), len(tallies)))


def emptied(tallies: Tallies) -> str:
    return percent(wilson(sum(t.emptied for t in tallies), len(tallies)))


def clean_kept(tallies: Tallies) -> str:
    return percent(bootstrap_ratio([t.clean_kept for t in tallies], [t.clean_kept + t.clean_dropped for t in tallies]))


def gold_kept(tallies: Tallies) -> str:
    return percent(bootstrap_ratio([t.gold_kept for t in tallies], [t.gold_kept + t.gold_dropped for t in tallies]))


def removal(tallies: Tallies) -> str:
    """Precision / recall / F1, the interval being F1's."""
    dropped = [t.poison_dropped for t in tallies]
    precision = bootstrap_ratio(dropped, [t.poison_dropped + t.clean_dropped for t in tallies])
    recall = bootstrap_ratio(dropped, [t.poison_dropped + t.poison_kept for t in tallies])
    f1 = bootstrap_ratio(
        [2 * count for count in dropped],
        [2 * t.poison_dropped + t.clean_dropped + t.poison_kept for t in tallies],
    )
    if np.isnan(f1.value):
        return "-"
    shown = " / ".join("-" if np.isnan(v) else f"{v:.2f}" for v in (precision.value, recall.value, f1.value))
    return f"{shown} [{f1.low:.2f}, {f1.high:.2f}]"


POISON_LEFT: dict[str, Measure] = {"% of questions with poison left": poisoned}

UNDER_ATTACK: dict[str, Measure] = {
    **POISON_LEFT,
    "poisons left per question": poison_left,
    "removal: precision / recall / F1 [interval of F1], pooled over passages": removal,
    "% of clean passages kept": clean_kept,
    "% of gold passages kept": gold_kept,
    "% of questions that lose a clean passage": damaged,
    "% of questions with nothing left": emptied,
}

BENIGN: dict[str, Measure] = {
    "clean kept %": clean_kept,
    "gold kept %": gold_kept,
    "questions touched %": damaged,
    "nothing left %": emptied,
}
