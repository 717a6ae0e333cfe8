"""What every page has in common: one file with its own style, sections under one another, tables and figures.

The content security policy allows the page's own style and script by their hashes and nothing else. Cells, names and
titles are hostile and are escaped here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files

from unpoison.evaluation.report.charts import label, legend, svg
from unpoison.evaluation.report.figures import Bars, Figure, Lines, Scatter
from unpoison.evaluation.report.tables import Table

__all__ = ["Section", "document", "figure_markup", "resource", "table_markup"]

Section = tuple[str, str, str]
"""(anchor, title, HTML)."""


def document(title: str, lead: str, sections: Iterable[Section | None], data: str = "", script: str = "") -> str:
    """A whole page.

    Args:
        title: The heading, also of the window.
        lead: HTML below the heading.
        sections: What follows, with links to them; None where there is nothing to show.
        data: A block of JSON for the script, as HTML.
        script: The page's own script; without one no script runs.
    """
    style = resource("page.css") + resource("report.css")
    allowed = f"script-src '{_digest(script)}'; " if script else ""
    policy = f"default-src 'none'; style-src '{_digest(style)}'; {allowed}base-uri 'none'; form-action 'none'"
    shown = [section for section in sections if section]
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in shown)
    body = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{title}</h2>\n{inner}\n</section>'
        for name, title, inner in shown
    )
    running = f"{data}\n<script>{script}</script>\n" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>unpoison: {title.lower()}</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="report">\n<header><h1>{title}</h1>{lead}</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{body}\n</main>\n'
        f"{running}</body>\n</html>\n"
    )


@cache
def resource(name: str) -> str:
    """A file of the package's own data as text."""
    return files("unpoison").joinpath("data", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


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


def table_markup(table: Table) -> str:
    """A table that scrolls by itself where it is too broad; what a heading means is told when it is pointed at."""
    hints = (*table.hints, *[""] * (len(table.columns) - len(table.hints)))
    head = "".join(
        f'<th scope="col"{f" title={chr(34)}{label(hint, 300)}{chr(34)}" if hint else ""}>{label(name, 80)}</th>'
        for name, hint in zip(table.columns, hints, strict=True)
    )
    rows = "\n".join(
        f'<tr><th scope="row">{label(row[0], 160)}</th>{"".join(map(_cell, row[1:]))}</tr>' for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{label(table.title, 300)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    value, bracket, interval = text.partition(" [")
    return f"<td>{label(value, 160)}{f' <small>[{label(interval)}</small>' if bracket else ''}</td>"
