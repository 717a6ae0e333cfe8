"""A paper's numbers over time beside the measured ones: one table for each measure, methods by attack."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from unpoison.evaluation.report.published import SAME
from unpoison.evaluation.report.tables import Table
from unpoison.evaluation.stream_presets import StreamPreset
from unpoison.evaluation.streams import StreamResult, StreamStudy

__all__ = ["published_over_time"]

_MEASURES = {
    "accuracy": ("accuracy", StreamResult.accuracy),
    "attack_success": ("ASR", StreamResult.attack_success),
}


def published_over_time(preset: StreamPreset, study: StreamStudy) -> Iterator[Table]:
    """Each published number with the one measured for it, in percent; below each column whether it was measured."""
    methods = list(dict.fromkeys(one.method for one in preset.published))
    for measure, (heading, share) in _MEASURES.items():
        theirs = {(one.method, one.attack): one.value for one in preset.published if one.measure == measure}
        attacks = [attack for attack in preset.attacks if any((method, attack) in theirs for method in methods)]
        rows = []
        for method in methods:
            cells = []
            for attack in attacks:
                result = study.results.get(attack, {}).get(method)
                ours = None if result is None else share(result)
                measured = f" \u2192 {100 * ours.value:.1f}" if ours is not None and isfinite(ours.value) else ""
                cells.append(f"{100 * theirs[method, attack]:.2f}{measured}")
            why = preset.lacking.get(method)
            rows.append((method, *cells, f"not measured: it {why}" if why else "; ".join(_differs(preset, study))))
        last = [_of_attack(preset, study, attack) for attack in attacks]
        title = f"{preset.source}: {heading}, published \u2192 measured, %"
        yield Table(title, ("", *attacks, SAME), (*rows, (SAME, *last, "")))


def _differs(preset: StreamPreset, study: StreamStudy) -> list[str]:
    return [f"{study.data}: {len(study.timelines)} questions, {study.steps} steps", *preset.differs]


def _of_attack(preset: StreamPreset, study: StreamStudy, attack: str) -> str:
    if attack not in study.results:
        return "not measured: a step brings no text of it"
    position = preset.attacks[attack][1] or 0
    short = sum(len(step.passages) < position for timeline in study.timelines for step in timeline.steps)
    return f"{short} of {study.steps} steps have fewer passages: behind the last one" if short else "yes"
