"""The HTML of every report: sections under one another, tables and figures.

Cells, names and titles are hostile and are escaped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unpoison.bench.report.charts import label, legend, svg
from unpoison.bench.report.figures import Bars, Figure, Lines, Scatter
from unpoison.bench.report.tables import Table
from unpoison.report.html_page import html_page, resource

__all__ = ["Section", "document", "figure_markup", "table_markup"]

Section = tuple[str, str, str]
"""(anchor, title, HTML)."""


def document(
    title: str,
    lead: str,
    sections: Iterable[Section | None],
    data: str = "",
    script: str = "",
    *,
    front: str = "",
) -> str:
    """A whole page.

    Args:
        title: The heading, also of the window.
        lead: HTML below the heading.
        sections: What follows, with links to them; None where there is nothing to show.
        data: A block of JSON for the script, as HTML.
        script: The page's own script; without one no script runs.
        front: A first page, as HTML; the sections are folded behind it.
    """
    shown = [section for section in sections if section]
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in shown)
    body = "\n".join((_collapsible_section if front else _open)(*section) for section in shown)
    between = (
        "<h2>The measurements behind it</h2>\n<p>Everything that was measured, to be unfolded.</p>" if front else ""
    )
    return html_page(
        title.lower(),
        f"<header><h1>{title}</h1>{'' if front else lead}</header>\n{front}"
        f'<nav aria-label="Sections">{between}<ul>{links}</ul></nav>\n<main>\n{lead if front else ""}{body}\n</main>',
        style=resource("page.css", "report.css"),
        script=script,
        data=data,
        attributes=' class="report"',
    )


def _open(name: str, title: str, inner: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{title}</h2>\n{inner}\n</section>'
    )


def _collapsible_section(name: str, title: str, inner: str) -> str:
    """A link to what stands inside unfolds it: browsers do so by themselves."""
    return (
        f'<details class="part"><summary><h2 id="{name}-title">{title}</h2></summary>\n'
        f'<section id="{name}" aria-labelledby="{name}-title">\n{inner}\n</section></details>'
    )


def figure_markup(figure: Figure) -> str:
    """A picture with its title above and the names of its colours below."""
    match figure:
        case Lines():
            key = legend((series.name, series.hue) for series in figure.series)
        case Scatter():
            key = legend((name, hue) for name, hue, _, _ in figure.points)
        case Bars():
            items = "".join(f'<li class="{kind}">{label(name)}</li>' for name, kind, _ in figure.groups)
            key = f'<ul class="legend">{items}</ul>'
    return f"<figure><figcaption>{label(figure.title, 300)}</figcaption>\n{svg(figure)}\n{key}</figure>"


BROAD = 6
"""Columns beside the first one that fit on a page; a broader table goes on below."""


def table_markup(table: Table) -> str:
    """A table no broader than the page; what a heading means is told when it is pointed at.

    A broad one is cut into several with the same rows. On a phone every row becomes a block, each cell under its name.
    """
    columns = range(1, len(table.columns))
    parts = [columns[start : start + BROAD] for start in range(0, len(columns), BROAD)] or [columns]
    return "\n".join(_part(table, part, number) for number, part in enumerate(parts))


def _part(table: Table, columns: Sequence[int], number: int) -> str:
    hints = (*table.hints, *[""] * (len(table.columns) - len(table.hints)))
    head = "".join(
        f'<th scope="col"{f" title={chr(34)}{label(hints[i], 300)}{chr(34)}" if hints[i] else ""}>'
        f"{label(table.columns[i], 80)}</th>"
        for i in (0, *columns)
    )
    rows = "\n".join(
        f'<tr><th scope="row">{label(row[0], 160)}</th>'
        + "".join(_cell(row[i], table.columns[i], table.marks.get((number_of_row, i), "")) for i in columns)
        + "</tr>"
        for number_of_row, row in enumerate(table.rows)
    )
    going_on = " (continued)" if number else ""
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{label(table.title, 300)}{going_on}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str, name: str, mark: str) -> str:
    value, bracket, interval = text.partition(" [")
    spread = f" <small>[{label(interval)}</small>" if bracket else ""
    sign = {"best": ' class="best"', "worst": ' class="worst"'}.get(mark, "")
    return f'<td data-name="{label(name, 80)}"{sign}><span>{label(value, 160)}</span>{spread}</td>'
