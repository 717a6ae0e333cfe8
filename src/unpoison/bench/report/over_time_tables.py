"""A study over time as tables: methods by measure, static beside dynamic, and a paper's numbers beside the measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.stream_presets import StreamPreset
from unpoison.bench.evaluation.streams import StreamResult, StreamStudy
from unpoison.bench.evaluation.timelines import step_context
from unpoison.bench.report.paper_comparison import SAME
from unpoison.bench.report.tables import Table

__all__ = [
    "BY_STEP",
    "SHARES",
    "comparison_over_time",
    "mean_bytes",
    "static_dynamic_table",
    "study_summary",
    "study_tables",
]

Measure = Callable[[StreamResult], Estimate]

SHARES: Mapping[str, tuple[str, Measure, str]] = {
    "accuracy": ("accuracy", StreamResult.accuracy, "answers that are right at their time"),
    "attack_success": ("ASR", StreamResult.attack_success, "answers that the attacker wanted"),
    "unneeded_changes": (
        "unneeded",
        StreamResult.spurious_changes,
        "right answers that are lost although the truth has not changed",
    ),
    "followed": ("followed", StreamResult.update_rate, "genuine changes that are answered rightly before the next one"),
}
"""Name, heading, measure and meaning."""

BY_STEP = ("accuracy", "attack_success")
FIGURES = {"lag": "mean steps until a change that is followed is answered rightly", "bytes": "kept for a question"}


def study_summary(study: StreamStudy) -> str:
    """What was measured, in one line."""
    models = ", ".join(f"{kind} {spec}" for kind, spec in study.models.items())
    counts = f"{len(study.timelines)} questions, {study.steps} steps, {study.changes} genuine changes"
    return f"{study.data}: {counts}; {models}."


def study_tables(study: StreamStudy) -> list[Table]:
    """One table for each attack: methods by measure, shares in percent with their 95 % Wilson intervals."""
    columns = ("method", *(f"{heading} %" for heading, _, _ in SHARES.values()), *FIGURES)
    hints = ("a defense and what it carries", *(meaning for _, _, meaning in SHARES.values()), *FIGURES.values())
    return [
        Table(
            f"attack: {attack}",
            columns,
            tuple((method, *_cells(result)) for method, result in results.items()),
            hints,
        )
        for attack, results in study.results.items()
    ]


def static_dynamic_table(study: StreamStudy) -> Table | None:
    """Accuracy and ASR of each defense that remembers, beside the same defense without its memory (RADAR, Table 17)."""
    kinds = {(method.defense, method.carries): name for name, method in study.methods.items()}
    pairs = [
        (kinds[defense, "nothing"], name)
        for (defense, carries), name in kinds.items()
        if carries == "beliefs" and (defense, "nothing") in kinds
    ]
    names = [name for pair in pairs for name in pair]
    if not names:
        return None
    rows = tuple(
        (attack, *(_percent(SHARES[measure][1](results[name])) for name in names for measure in BY_STEP))
        for attack, results in study.results.items()
    )
    columns = ("attack", *(f"{name}: {SHARES[measure][0]} %" for name in names for measure in BY_STEP))
    return Table("Static against dynamic, mean over all steps", columns, rows)


def comparison_over_time(preset: StreamPreset, study: StreamStudy) -> Iterator[Table]:
    """Each published number with the one measured for it, in percent; below each column whether it was measured."""
    methods = list(dict.fromkeys(number.method for number in preset.published))
    for measure in BY_STEP:
        heading, share, _ = SHARES[measure]
        theirs = {(n.method, n.attack): n.value for n in preset.published if n.measure == measure}
        attacks = [attack for attack in preset.attacks if any((method, attack) in theirs for method in methods)]
        rows = []
        for method in methods:
            printed = [f"{100 * theirs[method, attack]:.2f}" for attack in attacks]
            if why := preset.lacking.get(method):
                rows.append((method, *printed, f"not measured: it {why}"))
            for name in preset.variants_of(method):
                results = [study.results.get(attack, {}).get(name) for attack in attacks]
                ours = [_format_estimate(None if result is None else share(result)) for result in results]
                rows.append((name, *map("".join, zip(printed, ours)), "; ".join(_differs(preset, study, name))))
        last = [_of_attack(preset, study, attack) for attack in attacks]
        title = f"{preset.source}: {heading}, published \u2192 measured, %"
        yield Table(title, ("", *attacks, SAME), (*rows, (SAME, *last, "")))


def _format_estimate(estimate: Estimate | None) -> str:
    return f" \u2192 {100 * estimate.value:.1f}" if estimate is not None and estimate.defined else ""


def _differs(preset: StreamPreset, study: StreamStudy, name: str) -> list[str]:
    return [
        f"{study.data}: {len(study.timelines)} questions, {study.steps} steps",
        *preset.differs,
        *preset.method_differs[name],
    ]


def _of_attack(preset: StreamPreset, study: StreamStudy, attack: str) -> str:
    if attack not in study.results:
        return "not measured: no question can be attacked so"
    differences = list(preset.attack_differs[attack])
    asked = {record.timeline for result in study.results[attack].values() for record in result.records}
    if len(asked) < len(study.timelines):
        differences.append(f"{len(asked)} of {len(study.timelines)} questions; the others cannot be attacked so")
    position = preset.attacks[attack][1] or 0
    lengths = [len(step_context(step)) for one in study.timelines if one.id in asked for step in one.steps]
    if short := sum(length < position for length in lengths):
        differences.append(f"{short} of {len(lengths)} steps have fewer passages: behind the last one")
    return "; ".join(differences) or "yes"


def _cells(result: StreamResult) -> list[str]:
    lag, stored = result.mean_lag(), mean_bytes(result)
    return [
        *(_percent(share(result)) for _, share, _ in SHARES.values()),
        "-" if lag is None else f"{lag:.2f}",
        "-" if stored is None else f"{stored:.0f}",
    ]


def _percent(estimate: Estimate) -> str:
    if not estimate.defined:
        return "-"
    return f"{100 * estimate.value:.0f} ({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"


def mean_bytes(result: StreamResult) -> float | None:
    """What is kept for a question, on average; None where nothing was asked."""
    return statistics.mean(result.stored) if result.stored else None
