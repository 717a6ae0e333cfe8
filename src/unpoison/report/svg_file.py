"""A picture of a report as a file of its own, for a page of the docs: its style inside, light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from textwrap import wrap

from unpoison.report.charts import Figure, svg
from unpoison.utils.plain_text import excerpt

__all__ = ["figure_file", "svg_file"]

STYLE = """\
.back{fill:#fbfaf8;stroke:#dcdfe2}text{fill:#5f6b76;font-size:12px;text-anchor:middle;dominant-baseline:central}text.end{text-anchor:end}
text.axis{fill:#1d2329}text.name{text-anchor:start;font-weight:600;fill:currentColor}
.kept{color:#1b7f4d}.dropped{color:#b3261e}rect.bar{fill:currentColor}text.start{text-anchor:start}
.grid{stroke:#dcdfe2}polyline{fill:none;stroke:currentColor;stroke-width:2}
.whisker{fill:none;stroke:currentColor;stroke-width:1.5;opacity:.55}.mark{fill:currentColor}
.hue0{color:#5f6b76}.hue1{color:#b3261e}.hue2{color:#1b7f4d}.hue3{color:#2457c5}.hue4{color:#8a5a00}.hue5{color:#6b3fa0}.hue6{color:#00707a}.hue7{color:#a3346b}
@media(prefers-color-scheme:dark){.back{fill:#14181c;stroke:#323a42}text{fill:#9aa6b1}text.axis{fill:#e6e9ec}
.grid{stroke:#323a42}.hue0{color:#aab5c0}.hue1{color:#ff8a80}.hue2{color:#5fcf97}.hue3{color:#8fb4ff}.hue4{color:#e0b04f}.hue5{color:#c7a6ff}.hue6{color:#5cd0da}.hue7{color:#ff9ac6}}"""

MARKERS = "●■◆▲"
"""As `charts` draws series, moved on by one after eight colours."""

LEGEND = 20
"""Height of a row of names."""

WIDEST = 84
"""Characters of a title on one line."""


def svg_file(figure: Figure, names: Iterable[tuple[str, int, int]] = ()) -> str:
    """The picture with the names of its lines above it.

    Args:
        figure: What is drawn.
        names: (name, hue, where it begins from the left, of 640).
    """
    chart = svg(figure)
    heads = "".join(
        f'<g class="hue{hue}"><text class="name" x="{x}" y="-12">{MARKERS[hue % 3]} {escape(name)}</text></g>'
        for name, hue, x in names
    )
    opening, drawn = chart.split(">", 1)
    opening = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    opening = opening.replace("0 0 640 340", "0 -36 640 376")
    back = '<rect class="back" x=".5" y="-35.5" width="639" height="375" rx="12"/>'
    return f'{opening} font-family="system-ui, sans-serif"><style>{STYLE}</style>{back}{heads}{drawn}\n'


def figure_file(figure: Figure) -> str:
    """The picture with its title and the names of its colours above it, for a paper or a slide."""
    chart = svg(figure)
    title = wrap(excerpt(figure.title, 2 * WIDEST), WIDEST)
    rows = len(title) + (len(figure.legend) + 1) // 2
    top = LEGEND * rows + 16
    heads = [
        f'<text class="axis" x="320" y="{LEGEND * number - top}">{escape(line)}</text>'
        for number, line in enumerate(title, 1)
    ]
    for number, (name, hue) in enumerate(figure.legend):
        kind, mark = (hue, "■") if isinstance(hue, str) else (f"hue{hue % 8}", MARKERS[(hue + hue // 8) % 4])
        x, y = 24 + 308 * (number % 2), LEGEND * (number // 2 + 1 + len(title)) - top
        words = escape(excerpt(name, 42))
        heads.append(f'<g class="{escape(kind)}"><text class="name" x="{x}" y="{y}">{mark} {words}</text></g>')
    opening, drawn = chart.split(">", 1)
    opening = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ')
    opening = opening.replace("0 0 640 340", f"0 {-top} 640 {340 + top}")
    back = f'<rect class="back" x=".5" y="{0.5 - top}" width="639" height="{339 + top}"/>'
    return f'{opening} font-family="sans-serif"><style>{STYLE}</style>{back}{"".join(heads)}{drawn}\n'
