"""The report's figures for print, drawn by matplotlib (the `plot` extra)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from unpoison.errors import OptionError
from unpoison.evaluation.report.figures import (
    Bars,
    Figure,
    Lines,
    Scatter,
    poison_figures,
    rank_figures,
    sweep_figures,
    trade_off_figures,
)
from unpoison.evaluation.report.model import Report
from unpoison.extras import require
from unpoison.rendering import excerpt

__all__ = ["MAX_PLOTS", "write_plots"]

MAX_PLOTS = 60

# Okabe and Ito's colours, which readers with any colour vision can tell apart, the baseline's grey first.
COLOURS = ("#666666", "#0072b2", "#d55e00", "#cc79a7", "#009e73", "#56b4e9", "#e69f00", "#332288")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "<")
STYLE = {
    "font.size": 8,
    "axes.titlesize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e0e0e0",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,
    "text.usetex": False,
    "text.parse_math": False,
    "savefig.dpi": 200,
}


def write_plots(report: Report, path: Path) -> list[Path]:
    """One page per figure in a PDF, one numbered file per figure as PNG; the same bytes every time.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OptionError: The run has nothing to draw.
    """
    matplotlib = require("matplotlib", "drawing figures")
    canvas = require("matplotlib.figure", "drawing figures")
    figures = list(islice(_figures(report), MAX_PLOTS))
    if not figures:
        raise OptionError("the run has nothing to draw: no attack was measured with two or more values of anything")
    with matplotlib.rc_context(STYLE):
        drawn = [_drawn(canvas.Figure(figsize=(3.5, 3.0), layout="constrained"), figure) for figure in figures]
        if path.suffix.lower() == ".pdf":
            pages = require("matplotlib.backends.backend_pdf", "drawing figures")
            with pages.PdfPages(path, metadata={"CreationDate": None, "Producer": None, "Creator": "unpoison"}) as book:
                for one in drawn:
                    book.savefig(one)
            return [path]
        paths = [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, len(drawn) + 1)]
        for one, target in zip(drawn, paths, strict=True):
            one.savefig(target, metadata={"Software": "unpoison"})
    return paths


def _figures(report: Report) -> Iterator[Figure]:
    yield from poison_figures(report)
    yield from trade_off_figures(report)
    yield from sweep_figures(report)
    yield from rank_figures(report)


def _drawn(page: Any, figure: Figure) -> Any:
    axes = page.add_subplot()
    match figure:
        case Lines():
            _lines(axes, figure)
        case Scatter():
            _scatter(axes, figure)
        case Bars():
            _bars(axes, figure)
    axes.set_title(_wrapped(figure.title), loc="left")
    axes.set_xlabel(excerpt(figure.across, 80))
    axes.set_ylabel(excerpt(figure.up, 60))
    axes.set_ylim(-2, 102)
    page.legend(loc="outside lower center", ncols=2)
    return page


def _lines(axes: Any, figure: Lines) -> None:
    numbers = all(isinstance(at, (int, float)) for at in figure.places)
    where = {at: at if numbers else i for i, at in enumerate(figure.places)}
    for series in figure.series:
        points = series.points
        axes.errorbar(
            [where[point.at] for point in points],
            [100 * point.value for point in points],
            yerr=_errors(points),
            label=excerpt(series.name, 40),
            color=COLOURS[series.hue % len(COLOURS)],
            marker=MARKERS[series.hue % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
            elinewidth=0.7,
            capsize=2,
        )
    if numbers and len(figure.places) <= 8:
        axes.set_xticks(figure.places)
    elif not numbers:
        axes.set_xticks(range(len(figure.places)), [excerpt(str(at), 16) for at in figure.places])


def _scatter(axes: Any, figure: Scatter) -> None:
    for name, hue, x, y in figure.points:
        axes.errorbar(
            [100 * x.value],
            [100 * y.value],
            xerr=_errors((x,)),
            yerr=_errors((y,)),
            label=excerpt(name, 40),
            color=COLOURS[hue % len(COLOURS)],
            marker=MARKERS[hue % len(MARKERS)],
            markersize=5,
            elinewidth=0.7,
            capsize=2,
            linestyle="none",
        )
    axes.set_xlim(-2, 102)


def _bars(axes: Any, figure: Bars) -> None:
    broad = 0.8 / max(len(figure.groups), 1)
    for i, (name, _, values) in enumerate(figure.groups):
        places = [place + 1 + (i - (len(figure.groups) - 1) / 2) * broad for place in range(len(values))]
        axes.bar(places, [100 * value for value in values], broad, label=name, color=COLOURS[(2, 4)[i % 2]])


def _errors(points: tuple[Any, ...]) -> list[list[float]]:
    """Below and above; rounding may leave an end of an interval on the wrong side by a hair."""
    below = [max(0.0, 100 * (point.value - point.low)) for point in points]
    return [below, [max(0.0, 100 * (point.high - point.value)) for point in points]]


def _wrapped(title: str, width: int = 50) -> str:
    from textwrap import fill

    return fill(excerpt(title, 170), width)
