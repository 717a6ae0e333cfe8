"""The report's pictures, drawn as inline SVG: lines with intervals, a scatter of two measures, bars by rank.

Every series has a colour and a marker of its own, so that no picture rests on colour alone, and every point says its
value when it is pointed at. Names come from users' files; they are escaped here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isfinite

from unpoison.bench.report.figures import Bars, Figure, Lines, Scatter, Series
from unpoison.utils.plain_text import escape_html

__all__ = ["HUES", "label", "legend", "percent", "svg"]

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 72, 26, 14, 50
HUES = 8
"""Series beyond these share colours again, with other markers."""

TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def percent(value: float) -> str:
    """A share as a percentage with one decimal, a hyphen where it is undefined."""
    return f"{100 * value:.1f} %" if isfinite(value) else "-"


def label(text: object, limit: int = 60) -> str:
    """A hostile name for a page: shortened, on one line, escaped."""
    return escape_html(str(text), limit)


def legend(names: Iterable[tuple[str, int]]) -> str:
    """Names beside their markers, as a list.

    Args:
        names: (name, hue).
    """
    items = "".join(
        f'<li><svg viewBox="-8 -8 16 16" aria-hidden="true" class="hue{hue % HUES}">{_marker(hue, 0, 0)}</svg>'
        f"{label(name)}</li>"
        for name, hue in names
    )
    return f'<ul class="legend">{items}</ul>'


def svg(figure: Figure) -> str:
    """The picture as one `svg` element, read aloud by its title."""
    match figure:
        case Lines():
            body = _lines(figure)
        case Scatter():
            body = _scatter(figure)
        case Bars():
            body = _bars(figure)
    name = label(figure.title, 300)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{body}</svg>'


def _lines(figure: Lines) -> str:
    """One line per series, with an interval at every point."""
    ticks_at = figure.positions
    numbers = all(isinstance(at, (int, float)) for at in ticks_at)
    across_at = _axis([float(at) for at in ticks_at] if numbers else [float(i) for i in range(len(ticks_at))])
    where = {at: across_at(float(at) if numbers else float(i)) for i, at in enumerate(ticks_at)}
    drawn = "".join(_line(i, len(figure.series), series, where) for i, series in enumerate(figure.series))
    ticks = _thin_ticks([(where[at], _number(at)) for at in ticks_at])
    return _frame(figure.across, figure.up, ticks) + drawn


def _scatter(figure: Scatter) -> str:
    """Named points with an interval in both directions."""
    x_at = _axis([0.0, 1.0])
    drawn, taken = [], list[tuple[float, float]]()
    for name, hue, x, y in figure.points:
        cx, cy = x_at(x.value), _up(y.value)
        tip = f"{label(name)}: {label(figure.across)} {percent(x.value)}, {label(figure.up)} {percent(y.value)}"
        left = cx > WIDTH - 150
        ty = _free(taken, cx, cy)
        drawn.append(
            f'<g class="hue{hue % HUES}"><title>{tip}</title>'
            f'<path class="whisker" d="M{x_at(x.low):.1f} {cy:.1f}H{x_at(x.high):.1f}'
            f'M{cx:.1f} {_up(y.low):.1f}V{_up(y.high):.1f}"/>{_marker(hue, cx, cy)}'
            f'<text class="{"end" if left else "start"}" x="{cx + (-10 if left else 10):.1f}" y="{ty:.1f}">'
            f"{label(name, 34)}</text></g>"
        )
    ticks = [(x_at(tick), f"{100 * tick:.0f} %") for tick in TICKS]
    return _frame(figure.across, figure.up, ticks) + "".join(drawn)


def _bars(figure: Bars) -> str:
    """Bars side by side: for each of the places 1, 2, ... one bar per group."""
    count = max((len(values) for _, _, values in figure.groups), default=0)
    room = (WIDTH - LEFT - RIGHT) / max(count, 1)
    broad = min(28.0, 0.8 * room / max(len(figure.groups), 1))
    drawn = []
    for i, (name, kind, values) in enumerate(figure.groups):
        for position, value in enumerate(values):
            if value <= 0:
                continue
            x = LEFT + (position + 0.5) * room + (i - len(figure.groups) / 2) * broad
            drawn.append(
                f'<rect class="bar {kind}" x="{x:.1f}" y="{_up(value):.1f}" width="{max(broad - 1, 1):.1f}" '
                f'height="{_up(0) - _up(value):.1f}">'
                f"<title>{label(name)}, place {position + 1}: {percent(value)}</title></rect>"
            )
    ticks = _thin_ticks([(LEFT + (position + 0.5) * room, str(position + 1)) for position in range(count)])
    return _frame(figure.across, figure.up, ticks) + "".join(drawn)


def _frame(across: str, up: str, ticks: Iterable[tuple[float, str]]) -> str:
    """The grid, the vertical scale from 0 to 100 %, the horizontal ticks and both axes' names."""
    parts = []
    for tick in TICKS:
        y = _up(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="end" x="{LEFT - 8}" y="{y:.1f}">{100 * tick:.0f} %</text>')
    base = HEIGHT - BOTTOM
    for x, name in ticks:
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{base}" x2="{x:.1f}" y2="{base + 5}"/>')
        parts.append(f'<text x="{x:.1f}" y="{base + 17}">{label(name, 16)}</text>')
    middle = (TOP + base) / 2
    parts.append(f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}">{label(across)}</text>')
    parts.append(f'<text class="axis" x="12" y="{middle}" transform="rotate(-90 12 {middle})">{label(up)}</text>')
    return "".join(parts)


def _line(number: int, total: int, series: Series, where: dict[float | str, float]) -> str:
    """Points of several series at one place are moved apart a little, so that their intervals stay readable."""
    aside = 7.0 * (number - (total - 1) / 2) / max(total - 1, 1)
    points = [(where[at] + aside, at, share) for at, share in series.points]
    path = " ".join(f"{x:.1f},{_up(share.value):.1f}" for x, _, share in points)
    marks = "".join(
        f"<g><title>{label(series.name)}, {label(_number(at))}: {percent(share.value)} "
        f"({percent(share.low)} to {percent(share.high)}), {share.count} questions</title>"
        f'<path class="whisker" d="M{x:.1f} {_up(share.low):.1f}V{_up(share.high):.1f}"/>'
        f"{_marker(series.hue, x, _up(share.value))}</g>"
        for x, at, share in points
    )
    return f'<g class="hue{series.hue % HUES}"><polyline points="{path}"/>{marks}</g>'


def _marker(number: int, x: float, y: float) -> str:
    """Circle, square, diamond, triangle: after eight colours the shapes have moved on by one."""
    match (number + number // HUES) % 4:
        case 0:
            return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
        case 1:
            return f'<rect class="mark" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"/>'
        case 2:
            return f'<path class="mark" d="M{x:.1f} {y - 6.5:.1f}l6.5 6.5l-6.5 6.5l-6.5 -6.5z"/>'
        case _:
            return f'<path class="mark" d="M{x:.1f} {y - 6:.1f}l6 10.5h-12z"/>'


def _axis(values: Sequence[float]) -> Callable[[float], float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    first, last = (LEFT, WIDTH - RIGHT) if (low, high) == (0.0, 1.0) else (LEFT + 24, WIDTH - RIGHT - 24)
    middle = (first + last) / 2
    return lambda value: first + (last - first) * (value - low) / (high - low) if high > low else middle


def _up(value: float) -> float:
    share = min(max(value, 0.0), 1.0) if isfinite(value) else 0.0
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def _number(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else value


def _thin_ticks(ticks: Sequence[tuple[float, str]], most: int = 16) -> Iterator[tuple[float, str]]:
    """Every n-th tick, so that their names do not run into each other."""
    step = -(-len(ticks) // most) or 1
    return (tick for i, tick in enumerate(ticks) if i % step == 0)


def _free(taken: list[tuple[float, float]], x: float, y: float) -> float:
    """A height for a name beside a point where no other name stands."""
    ty = y - 12
    for offset in (-12, 12, -26, 26, -40, 40, -54, 54):
        ty = y + offset
        if TOP + 8 <= ty <= HEIGHT - BOTTOM and all(abs(tx - x) > 190 or abs(t - ty) > 13 for tx, t in taken):
            break
    taken.append((x, ty))
    return ty
