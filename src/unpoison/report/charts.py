"""The pictures of reports: lines with intervals, a scatter of two shares, bars by place; `chart.svg` draws them.

Every series has a colour and a marker of its own, so that no picture rests on colour alone, and every point says its
value when it is pointed at. Drawn here and not by a library, for the package would need one that is larger than itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate
from unpoison.report.pages import render

__all__ = ["HUES", "Bars", "Figure", "Lines", "Scatter", "Series", "percent", "svg"]

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BASE = 72, 614, 14, 290
"""The picture's size, and the edges of its plane, in SVG units."""

HUES = 8
"""Series beyond these share colours again, with other markers."""

MAX_TICKS = 16
"""Names on the horizontal axis; of more, every n-th is written, so that they do not run into each other."""


def percent(value: float) -> str:
    """A share as a percentage with one decimal, a hyphen where it is undefined."""
    return f"{100 * value:.1f} %" if isfinite(value) else "-"


class Series(NamedTuple):
    """The points of one defense or measure.

    Attributes:
        name: What the legend calls it.
        hue: Which colour and marker it has; a defense has the same one in every picture.
        points: (place, share): a place is a number, or a name on an axis of names, and has at most one point; the
            share is finite.
    """

    name: str
    hue: int
    points: tuple[tuple[float | str, Estimate], ...]


class Mark(NamedTuple):
    """A point as drawn, in SVG units: `tip` is said when it is pointed at, `whisker` is the path of its interval.

    `label` is its name beside it at `label_x`, `label_y`; "" for none.
    """

    x: float
    y: float
    tip: str
    whisker: str
    label: str = ""
    label_x: float = 0.0
    label_y: float = 0.0


class Group(NamedTuple):
    """Marks of one colour, and the line through them as the points of a polyline; "" for none."""

    hue: int
    marks: Sequence[Mark]
    line: str = ""


class Bar(NamedTuple):
    """A bar as drawn, in SVG units, with its class of the style sheet and what it says when it is pointed at."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    tip: str


@dataclass(frozen=True, slots=True)
class Axes:
    """What every picture has.

    Attributes:
        title: What the picture shows.
        across: The horizontal axis in words.
        up: The vertical axis in words, a share.
    """

    title: str
    across: str
    up: str

    @property
    def scale(self) -> list[tuple[float, str]]:
        """The ticks of the vertical axis: (height, name)."""
        return [(_up(tick / 100), f"{tick} %") for tick in range(0, 101, 20)]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The ticks of the horizontal axis: (place, name)."""
        return [(_across(tick / 100), f"{tick} %") for tick in range(0, 101, 20)]

    @property
    def groups(self) -> list[Group]:
        """What is drawn with markers."""
        return []

    @property
    def bars(self) -> list[Bar]:
        """What is drawn as bars."""
        return []

    @property
    def legend(self) -> list[tuple[str, int | str]]:
        """Names, each with its hue, or with its class of the style sheet."""
        return []


@dataclass(frozen=True, slots=True)
class Lines(Axes):
    """One line per series over a common axis.

    Attributes:
        series: The lines.
    """

    series: tuple[Series, ...]

    @property
    def positions(self) -> list[float | str]:
        """Every place of the horizontal axis: numbers ascending, names in order of appearance."""
        positions = list(dict.fromkeys(at for series in self.series for at, _ in series.points))
        return sorted(positions, key=float) if all(isinstance(at, (int, float)) for at in positions) else positions

    @property
    def places(self) -> dict[float | str, float]:
        """Where each of them stands."""
        at = self.positions
        values = (
            [float(x) for x in at] if all(isinstance(x, (int, float)) for x in at) else [*map(float, range(len(at)))]
        )
        low, high = min(values, default=0.0), max(values, default=1.0)
        aside = 0 if (low, high) == (0.0, 1.0) else 24
        share = [(value - low) / (high - low) if high > low else 0.5 for value in values]
        return {x: LEFT + aside + (RIGHT - LEFT - 2 * aside) * s for x, s in zip(at, share, strict=True)}

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The ticks of the horizontal axis: (place, name)."""
        return _thin([(x, _number(at)) for at, x in self.places.items()])

    @property
    def groups(self) -> list[Group]:
        """A group for each series, a little apart where several meet, so that their intervals stay readable."""
        places, last, groups = self.places, max(len(self.series) - 1, 1), []
        for number, series in enumerate(self.series):
            aside = 7.0 * (number - (len(self.series) - 1) / 2) / last
            marks = [
                Mark(
                    x := round(places[at] + aside, 1),
                    _up(share.value),
                    f"{series.name}, {_number(at)}: {percent(share.value)} ({percent(share.low)} to "
                    f"{percent(share.high)}), {share.count} questions",
                    f"M{x} {_up(share.low)}V{_up(share.high)}",
                )
                for at, share in series.points
            ]
            groups.append(Group(series.hue, marks, " ".join(f"{mark.x},{mark.y}" for mark in marks)))
        return groups

    @property
    def legend(self) -> list[tuple[str, int | str]]:
        """The series."""
        return [(series.name, series.hue) for series in self.series]


@dataclass(frozen=True, slots=True)
class Scatter(Axes):
    """Named points with an interval in both directions.

    Attributes:
        points: (name, hue, horizontal value, vertical value).
    """

    points: tuple[tuple[str, int, Estimate, Estimate], ...]

    @property
    def groups(self) -> list[Group]:
        """A group for each point."""
        groups, taken = [], list[tuple[float, float]]()
        for name, hue, across, up in self.points:
            x, y = _across(across.value), _up(up.value)
            tip = f"{name}: {self.across} {percent(across.value)}, {self.up} {percent(up.value)}"
            whisker = f"M{_across(across.low)} {y}H{_across(across.high)}M{x} {_up(up.low)}V{_up(up.high)}"
            beside = -10 if x > WIDTH - 150 else 10
            groups.append(Group(hue, [Mark(x, y, tip, whisker, name, x + beside, _free_height(taken, x, y))]))
        return groups

    @property
    def legend(self) -> list[tuple[str, int | str]]:
        """The points."""
        return [(name, hue) for name, hue, _, _ in self.points]


@dataclass(frozen=True, slots=True)
class Bars(Axes):
    """Shares by place, bars of several kinds side by side.

    Attributes:
        shares: (name, class of the style sheet, the shares of places 1, 2, ...).
    """

    shares: tuple[tuple[str, str, tuple[float, ...]], ...]

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The places."""
        room, count = self._room()
        return _thin([(round(LEFT + (i + 0.5) * room, 1), str(i + 1)) for i in range(count)])

    @property
    def bars(self) -> list[Bar]:
        """A bar for each share that is not 0."""
        room, _ = self._room()
        broad = min(28.0, 0.8 * room / max(len(self.shares), 1))
        drawn = []
        for i, (name, kind, values) in enumerate(self.shares):
            for place, value in enumerate(values):
                if value > 0:
                    x = LEFT + (place + 0.5) * room + (i - len(self.shares) / 2) * broad
                    height, tip = round(BASE - _up(value), 1), f"{name}, place {place + 1}: {percent(value)}"
                    drawn.append(Bar(kind, round(x, 1), _up(value), round(max(broad - 1, 1), 1), height, tip))
        return drawn

    @property
    def legend(self) -> list[tuple[str, int | str]]:
        """The kinds."""
        return [(name, kind) for name, kind, _ in self.shares]

    def _room(self) -> tuple[float, int]:
        count = max((len(values) for _, _, values in self.shares), default=0)
        return (RIGHT - LEFT) / max(count, 1), count


Figure = Lines | Scatter | Bars


def svg(figure: Figure) -> str:
    """The picture as one `svg` element, read aloud by its title."""
    return render("chart.svg", figure=figure).strip()


def _across(share: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * share, 1)


def _up(value: float) -> float:
    share = min(max(value, 0.0), 1.0) if isfinite(value) else 0.0
    return round(BASE - (BASE - TOP) * share, 1)


def _number(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else value


def _thin(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    return list(ticks[:: -(-len(ticks) // MAX_TICKS) or 1])


def _free_height(taken: list[tuple[float, float]], x: float, y: float) -> float:
    """A height for a name beside a point where no other name stands."""
    height = y - 12
    for offset in (-12, 12, -26, 26, -40, 40, -54, 54):
        height = y + offset
        if TOP + 8 <= height <= BASE and all(abs(tx - x) > 190 or abs(t - height) > 13 for tx, t in taken):
            break
    taken.append((x, height))
    return round(height, 1)
