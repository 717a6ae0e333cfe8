"""The one chart of reports: shares with their intervals over a common axis; `chart.svg` draws it.

Every series has a colour and a marker of its own, so that no chart rests on colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate
from unpoison.report.pages import render

__all__ = ["HUES", "LineChart", "Series", "percent", "svg"]

LEFT, RIGHT, TOP, BASE = 72, 614, 14, 290
"""The edges of the plane, in SVG units."""

MARGIN = 24
"""Between an edge of the plane and the first place."""

SPREAD = 7.0
"""The width, in SVG units, that all series of one place share, so that their intervals stay readable."""

HUES = 8
"""Series beyond these share colours again, with other markers."""

MAX_TICKS = 16
"""Names on the horizontal axis; of more, every n-th is written."""


def percent(value: float) -> str:
    """A share as a percentage with one decimal, a hyphen if undefined."""
    return f"{100 * value:.1f} %" if isfinite(value) else "-"


class Series(NamedTuple):
    """The points of one defense or measure.

    Attributes:
        name: Its name in the legend.
        hue: Which colour and marker it has; a defense has the same one in every chart.
        points: (place, share): a place is a number, or a name on an axis of names, and has at most one point; the
            share is finite.
    """

    name: str
    hue: int
    points: tuple[tuple[float | str, Estimate], ...]


class Mark(NamedTuple):
    """A point as drawn, in SVG units: `tip` is its tooltip, `whisker` the path of its interval."""

    x: float
    y: float
    tip: str
    whisker: str


class Group(NamedTuple):
    """Marks of one colour, and the points of the line through them."""

    hue: int
    marks: Sequence[Mark]
    line: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """One line per series over a common axis.

    Attributes:
        title: Its title.
        across: The horizontal axis in words.
        up: The vertical axis in words, a share.
        series: The lines.
    """

    title: str
    across: str
    up: str
    series: tuple[Series, ...]

    @property
    def scale(self) -> list[tuple[float, str]]:
        """The ticks of the vertical axis: (height, name)."""
        return [(_height(tick / 100), f"{tick} %") for tick in range(0, 101, 20)]

    @property
    def places(self) -> dict[float | str, float]:
        """The position of each place: numbers ascending and to scale, names evenly in order of appearance."""
        found = list(dict.fromkeys(place for series in self.series for place, _ in series.points))
        numbers = sorted(place for place in found if isinstance(place, (int, float)))
        if len(numbers) == len(found):
            values = dict[float | str, float](zip(numbers, numbers))
        else:
            values = {place: number for number, place in enumerate(found)}
        low, high = min(values.values(), default=0.0), max(values.values(), default=1.0)
        width = RIGHT - LEFT - 2 * MARGIN
        return {
            place: LEFT + MARGIN + width * ((value - low) / (high - low) if high > low else 0.5)
            for place, value in values.items()
        }

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The ticks of the horizontal axis: (place, name)."""
        ticks = [(x, _name(place)) for place, x in self.places.items()]
        return ticks[:: -(-len(ticks) // MAX_TICKS) or 1]

    @property
    def groups(self) -> list[Group]:
        """A group for each series, slightly apart if several meet."""
        places, groups = self.places, []
        for number, series in enumerate(self.series):
            aside = SPREAD * (number - (len(self.series) - 1) / 2) / max(len(self.series) - 1, 1)
            marks = [_mark(series.name, place, places[place] + aside, share) for place, share in series.points]
            groups.append(Group(series.hue, marks, " ".join(f"{mark.x},{mark.y}" for mark in marks)))
        return groups


def svg(figure: LineChart) -> str:
    """The chart as one `svg` element, read aloud by its title."""
    return render("chart.svg", figure=figure).strip()


def _mark(series: str, place: float | str, x: float, share: Estimate) -> Mark:
    x = round(x, 1)
    interval = f"{percent(share.low)} to {percent(share.high)}"
    tip = f"{series}, {_name(place)}: {percent(share.value)} ({interval}), {share.count} questions"
    return Mark(x, _height(share.value), tip, f"M{x} {_height(share.low)}V{_height(share.high)}")


def _height(value: float) -> float:
    share = min(max(value, 0.0), 1.0) if isfinite(value) else 0.0
    return round(BASE - (BASE - TOP) * share, 1)


def _name(place: float | str) -> str:
    return f"{place:g}" if isinstance(place, (int, float)) else place
