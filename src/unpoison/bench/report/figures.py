"""Which pictures a report has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report.model import Report, Sweep, attack_title
from unpoison.report.charts import Bars, Lines, Scatter, Series

__all__ = ["poison_figures", "rank_figures", "sweep_figures", "trade_off_figures"]

SWEPT = ("poisoned", "asr", "accuracy", "recall", "clean_kept")
"""What the sweep of a defense's option shows, one line each."""


def poison_figures(report: Report) -> Iterator[Lines]:
    """Poison left and ASR against the number of poisons, one picture per data set, attack and setting."""
    for scenario, group in report.groups("poisons", "positions"):
        cells = [*group, *(twin for s in group if (twin := report.twin(s)) is not None)]
        if scenario.clean or len({s.scenario.poisons for s in cells}) < 3:
            continue
        where = f"{attack_title(scenario)} on {report.caption(scenario, 'attack', 'poisons', 'positions')}"
        for name in ("poisoned", "asr"):
            series = _by_defense(report, list({s.id: s for s in cells}.values()), name)
            if series:
                title = MEASURES[name].title
                yield Lines(
                    f"{title} by number of poisons: {where}", "poisons planted per question", f"{title}, %", series
                )


def _by_defense(report: Report, cells: Sequence[Summary], name: str) -> tuple[Series, ...]:
    series = []
    for defense, hue in report.defenses.items():
        own = [(s.scenario.poisons, s[name]) for s in cells if s.scenario.defense == defense and _is_finite(s[name])]
        points = tuple(sorted(own, key=lambda point: point[0]))
        if len(points) > 2:
            series.append(Series(defense, hue, points))
    return tuple(series)


def trade_off_figures(report: Report) -> Iterator[Scatter]:
    """What a defense costs on clean queries against what it saves, at the largest number of poisons of each attack."""
    for scenario, group in report.groups("poisons", "positions"):
        if scenario.clean:
            continue
        most = max(s.scenario.poisons for s in group)
        cells = [s for s in group if s.scenario.poisons == most and report.twin(s) is not None]
        where = f"{attack_title(scenario)} x {most} on {report.caption(scenario, 'attack', 'poisons', 'positions')}"
        lost = "gold" if any(s.applies("gold_kept") for s in cells) else "clean"
        for cost, saved, across, up in (
            (
                f"{lost}_kept",
                "poisoned",
                f"{lost} passages lost without an attack",
                "questions without poison in context",
            ),
            ("accuracy", "asr", "questions answered wrongly without an attack", "questions where the attack fails"),
        ):
            points = tuple(_tradeoff_points(report, cells, cost, saved))
            if len(points) > 1:
                yield Scatter(f"{across} against {up}: {where}", across, up, points)


def _tradeoff_points(
    report: Report, cells: Sequence[Summary], cost: str, saved: str
) -> Iterator[tuple[str, int, Estimate, Estimate]]:
    for summary in cells:
        twin = report.twin(summary)
        if twin is not None and _is_finite(twin[cost]) and _is_finite(summary[saved]):
            defense = summary.scenario.defense
            yield defense, report.defenses[defense], _complement(twin[cost]), _complement(summary[saved])


def sweep_figures(report: Report) -> Iterator[Lines]:
    """Every other axis: a field of the scenario with one line per defense, a defense's option with one per measure."""
    fields: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in report.sweeps():
        if ": " in sweep.axis:
            where = report.caption(sweep.scenario)
            lines = [_series(MEASURES[name].title, hue, sweep, name) for hue, name in enumerate(SWEPT)]
            yield Lines(f"{sweep.axis}: {where}", sweep.axis, "%", tuple(line for line in lines if line.points))
        else:
            where = report.caption(sweep.scenario, sweep.axis, *(("positions",) if sweep.axis == "policy" else ()))
            fields.setdefault((sweep.axis, where), []).append(sweep)
    for (axis, where), sweeps in fields.items():
        for name in ("poisoned", "asr"):
            lines = [_series(s.scenario.defense, report.defenses[s.scenario.defense], s, name) for s in sweeps]
            drawn = tuple(line for line in lines if line.points)
            if drawn:
                title = MEASURES[name].title
                yield Lines(
                    f"{title} by {axis.replace('_', ' ')}: {where}", axis.replace("_", " "), f"{title}, %", drawn
                )


def _series(name: str, hue: int, sweep: Sweep, measure: str) -> Series:
    points = tuple((at, s[measure]) for at, s in sweep.points if _is_finite(s[measure]))
    return Series(name, hue, points if len(points) > 1 else ())


def rank_figures(report: Report) -> Iterator[Bars]:
    """Where a defense ranks the poison and the annotated passages, dropped ones last (GRADA, Figure 4)."""
    for summary in report.summaries:
        poison, gold = sum(summary.poison_ranks), sum(summary.gold_ranks)
        if not poison:
            continue
        groups = [("poison", "dropped", tuple(count / poison for count in summary.poison_ranks))]
        if gold:
            groups.append(("gold", "kept", tuple(count / gold for count in summary.gold_ranks)))
        title = f"{summary.scenario.defense}: {report.caption(summary.scenario)}"
        yield Bars(title, "rank in the defense's order", "share of the poison, of the gold", tuple(groups))


def _is_finite(estimate: Estimate) -> bool:
    return all(map(isfinite, (estimate.value, estimate.low, estimate.high)))


def _complement(estimate: Estimate) -> Estimate:
    return Estimate(1 - estimate.value, 1 - estimate.high, 1 - estimate.low, estimate.count)
