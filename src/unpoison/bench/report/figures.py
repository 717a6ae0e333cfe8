"""The charts of a report: what is left of the poison along every axis that a run varies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report.model import SETTINGS, Report, setting
from unpoison.core.registry import parse
from unpoison.report.charts import LineChart, Series

__all__ = ["sweep_figures"]

SHOWN = ("poisoned", "asr")
"""The measures of an axis of the run, one chart each, a line for each defense."""

OF_OPTIONS = ("poisoned", "asr", "accuracy", "clean_kept")
"""The measures of a defense's option, one line each in one chart."""

Points = list[tuple[float | str, Summary]]


def sweep_figures(report: Report) -> Iterator[LineChart]:
    """A chart for each measure and axis with several values, then one for each option of a defense."""
    for axis in (name for name in report.varying if name not in ("data", "attack")):
        by_setting: dict[tuple[Any, ...], dict[str, Points]] = {}
        for summary in report.summaries:
            if not summary.scenario.clean:
                lines = by_setting.setdefault(_key(summary, axis), {})
                value = setting(getattr(summary.scenario, axis))
                lines.setdefault(summary.scenario.defense, []).append((value, summary))
        for lines in by_setting.values():
            yield from _of_axis(report, axis, lines)
    yield from _of_options(report)


def _of_axis(report: Report, axis: str, lines: Mapping[str, Points]) -> Iterator[LineChart]:
    title = axis.replace("_", " ")
    scenario = next(iter(lines.values()))[0][1].scenario
    for name in SHOWN:
        series = [
            Series(defense, report.defenses[defense], drawn)
            for defense, points in sorted(lines.items(), key=lambda line: report.defenses[line[0]])
            if len(drawn := _drawn(points, name)) > 1
        ]
        if series:
            heading = MEASURES[name].title
            where = report.caption(scenario, axis, "positions")
            yield LineChart(f"{heading} by {title}: {where}", title, f"{heading}, %", tuple(series))


def _of_options(report: Report) -> Iterator[LineChart]:
    """One chart for each option that a run varies."""
    lines: dict[tuple[Any, ...], Points] = {}
    for summary in report.summaries:
        name, options = parse(summary.scenario.defense)
        for option, value in options.items() if not summary.scenario.clean else ():
            rest = tuple(pair for pair in sorted(options.items()) if pair[0] != option)
            lines.setdefault((f"{name}: {option}", rest, _key(summary)), []).append((_numeric(value), summary))
    for (axis, *_), points in lines.items():
        drawn = ((MEASURES[name].title, hue, _drawn(points, name)) for hue, name in enumerate(OF_OPTIONS))
        series = tuple(Series(*line) for line in drawn if len(line[2]) > 1)
        if series:
            yield LineChart(f"{axis}: {report.caption(points[0][1].scenario)}", axis, "%", series)


def _drawn(points: Sequence[tuple[float | str, Summary]], name: str) -> tuple[tuple[float | str, Any], ...]:
    """The points of a measure, one for each place, ascending where places are numbers."""
    found = {place: summary[name] for place, summary in points if isfinite(summary[name].low)}
    numbers = all(isinstance(place, (int, float)) for place in found)
    return tuple(sorted(found.items(), key=lambda point: float(point[0])) if numbers else found.items())


def _key(summary: Summary, *ignoring: str) -> tuple[Any, ...]:
    return tuple(getattr(summary.scenario, name) for name in SETTINGS if name not in (*ignoring, "positions"))


def _numeric(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value
