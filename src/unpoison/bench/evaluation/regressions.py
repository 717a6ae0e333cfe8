"""Regressions: figures that are significantly worse than in an earlier run, by a statistical test of the same cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isnan, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from unpoison.algorithms.intervals import Estimate, holm, mcnemar_exact
from unpoison.bench.evaluation.gates import GateResult, MeasuredCell, figures_of
from unpoison.bench.evaluation.measures import Measure
from unpoison.bench.evaluation.summary import SIGNIFICANT
from unpoison.errors import InputError, clip

__all__ = ["COMPARED", "check_regressions", "read_measured"]

COMPARED = ("poisoned", "asr", "accuracy", "asr_after", "gold_kept", "clean_kept")
"""The measures that are compared, where both runs have them."""

MAX_BYTES = 1 << 29
"""Of the JSON of an earlier run, which is read whole."""


def read_measured(path: str | Path) -> list[MeasuredCell]:
    """The cells of an earlier run, from the JSON that `evaluate --json` or `redteam --json` wrote.

    Raises:
        InputError: It cannot be read, or is no such document.
    """
    source = Path(path)
    try:
        if source.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} is larger than {MAX_BYTES:,} bytes; give the JSON of an earlier run")
        document = json.loads(source.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give the JSON of an earlier run") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {clip(str(error))}; give the JSON of an earlier run") from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list) or not all(isinstance(c, dict) and isinstance(c.get("id"), str) for c in cells):
        raise InputError(
            f"{path} holds no cells; give what 'unpoison evaluate --json' or 'unpoison redteam --json' wrote"
        )
    outcomes = _outcomes(document.get("trials"))
    return [
        MeasuredCell(cell["id"], cell["id"], figures_of(cell.get("figures")), outcomes=outcomes.get(cell["id"], {}))
        for cell in cells
    ]


def check_regressions(
    old: Sequence[MeasuredCell], new: Sequence[MeasuredCell], measures: Mapping[str, Measure[Any]]
) -> list[GateResult]:
    """Every figure that both runs have, and whether it is significantly worse now.

    Yes and no of the same questions are compared by McNemar's exact test where both runs kept them, shares of counts
    otherwise by Fisher's exact test, and other figures by their intervals, as if they were normal. The p-values are
    corrected together (Holm); below 0.05 a worsening is one.

    Raises:
        InputError: The runs have no cell in common.
    """
    before = {cell.id: cell for cell in old}
    pairs = [
        (before[cell.id], cell, name)
        for cell in new
        if cell.id in before
        for name in COMPARED
        if name in measures and _has_figure(before[cell.id], name) and _has_figure(cell, name)
    ]
    if not pairs:
        raise InputError(
            "the earlier run has no cell in common with this one, so nothing can be compared; see its options"
        )
    tested = [_probability(first, second, name) for first, second, name in pairs]
    return [
        _gate_result(first, second, name, p, measures[name].better)
        for (first, second, name), p in zip(pairs, holm(tested), strict=True)
    ]


def _gate_result(first: MeasuredCell, second: MeasuredCell, name: str, probability: float, better: str) -> GateResult:
    old, now = first.figures[name].value, second.figures[name].value
    worse = now < old if better == "higher" else now > old
    failed = worse and probability < SIGNIFICANT
    sentence = f"{second.caption}: {name} was {100 * old:.1f} % and is {100 * now:.1f} % (p = {probability:.2g})"
    return GateResult(f"{name} not worse than before", name, second.caption, failed, sentence)


def _has_figure(cell: MeasuredCell, name: str) -> bool:
    return name in cell.figures and not isnan(cell.figures[name].value)


def _probability(first: MeasuredCell, second: MeasuredCell, name: str) -> float:
    """The two-sided p-value of no difference."""
    old, now = first.outcomes.get(name, {}), second.outcomes.get(name, {})
    shared = [key for key in now if key in old]
    if shared and len(shared) >= 0.9 * max(len(old), len(now)):
        return mcnemar_exact([old[key] for key in shared], [now[key] for key in shared])
    a, b = first.figures[name], second.figures[name]
    counted = [_successes(figure) for figure in (a, b)]
    if None not in counted and name in _YES_NO:
        from scipy.stats import fisher_exact

        table = [[s, figure.count - s] for s, figure in zip(counted, (a, b)) if s is not None]
        return float(fisher_exact(np.array(table)).pvalue)
    return _normal(a, b)


_YES_NO = frozenset(("poisoned", "asr", "accuracy", "asr_after"))
"""Figures that are shares of questions."""


def _successes(estimate: Estimate) -> int | None:
    """How many said yes, where the share is one of its count."""
    whole = round(estimate.value * estimate.count)
    return (
        whole
        if estimate.count and abs(whole - estimate.value * estimate.count) < 1e-6 and 0 <= whole <= estimate.count
        else None
    )


def _normal(a: Estimate, b: Estimate) -> float:
    """By the intervals: 95 % of a normal distribution are 3.92 standard errors wide. nan where one has no interval."""
    widths = [(estimate.high - estimate.low) / 3.92 for estimate in (a, b)]
    error = sqrt(sum(width**2 for width in widths))
    distance = abs(a.value - b.value)
    if not error:
        return 1.0 if not distance else 0.0
    return 2 * (1 - NormalDist().cdf(distance / error))


def _outcomes(trials: Any) -> dict[str, dict[str, dict[str, bool]]]:
    """By cell, measure and question, what the trials of a `redteam` document say."""
    outcomes: dict[str, dict[str, dict[str, bool]]] = {}
    for trial in trials if isinstance(trials, list) else ():
        if not isinstance(trial, dict) or trial.get("error") is not None:
            continue
        poisons, attack = trial.get("poisons"), trial.get("attack")
        cell = f"{attack} x {poisons}" if poisons else str(attack)
        read = trial.get("read")
        values = {
            "asr": trial.get("is_attacked"),
            "accuracy": trial.get("is_correct"),
            "asr_after": trial.get("is_attacked_after"),
            "poisoned": read > 0 if isinstance(read, int) else None,
        }
        for name, value in values.items():
            if isinstance(value, bool):
                outcomes.setdefault(cell, {}).setdefault(name, {})[str(trial.get("example"))] = value
    return outcomes
