"""A picture of a report as a file of its own, for a page of the docs: its style inside, light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from unpoison.report.charts import Figure, svg

__all__ = ["svg_file"]

STYLE = """\
.back{fill:#fbfaf8;stroke:#dcdfe2}text{fill:#5f6b76;font-size:12px;text-anchor:middle;dominant-baseline:central}text.end{text-anchor:end}
text.axis{fill:#1d2329}text.name{text-anchor:start;font-weight:600;fill:currentColor}
.grid{stroke:#dcdfe2}polyline{fill:none;stroke:currentColor;stroke-width:2}
.whisker{fill:none;stroke:currentColor;stroke-width:1.5;opacity:.55}.mark{fill:currentColor}
.hue0{color:#5f6b76}.hue1{color:#b3261e}.hue2{color:#1b7f4d}.hue3{color:#2457c5}.hue4{color:#8a5a00}.hue5{color:#6b3fa0}.hue6{color:#00707a}.hue7{color:#a3346b}
@media(prefers-color-scheme:dark){.back{fill:#14181c;stroke:#323a42}text{fill:#9aa6b1}text.axis{fill:#e6e9ec}
.grid{stroke:#323a42}.hue0{color:#aab5c0}.hue1{color:#ff8a80}.hue2{color:#5fcf97}.hue3{color:#8fb4ff}.hue4{color:#e0b04f}.hue5{color:#c7a6ff}.hue6{color:#5cd0da}.hue7{color:#ff9ac6}}"""

MARKERS = "●■◆"
"""As `charts` draws the first three series."""


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
