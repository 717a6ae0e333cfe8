"""The report as one self-contained page: it opens from disk, asks the network for nothing, runs only its own script.

Names, questions, passages and replies are hostile. What is written here is escaped; the questions travel as JSON in a
data block, and the script puts them on the page as text, never as markup. The content security policy allows this
file's style and script by their hashes and nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import islice

from unpoison.evaluation.report.charts import label, legend, svg
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
from unpoison.evaluation.report.questions import embedded, question_data
from unpoison.evaluation.report.tables import (
    Table,
    cost_table,
    difference_table,
    problems,
    published_tables,
    status,
    summary_tables,
)

__all__ = ["page"]

MAX_FIGURES = 12
"""Of one kind; with more a reader is better served by the tables."""

MAX_TABLES = 150
MAX_PROBLEMS = 200


def page(report: Report) -> str:
    """The whole report as HTML."""
    style, script = _resource("page.css") + _resource("report.css"), _resource("report.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    sections = [
        _preset(report),
        _results(report),
        _figures("poisons", "More poison", "What is left of it with each poison planted.", poison_figures(report)),
        _figures(
            "trade-off",
            "What protection costs",
            "The best place is the upper left corner: nothing lost on clean queries, no attack succeeds.",
            trade_off_figures(report),
        ),
        _figures("sweeps", "Sweeps", "Every other axis of the grid.", sweep_figures(report)),
        _figures(
            "ranks",
            "Where poison is ranked",
            "Kept passages first, dropped ones last. A good defense moves poison to the right and gold to the left.",
            rank_figures(report),
        ),
        _section("differences", "Paired differences", _only(difference_table(report))),
        _section("cost", "Time and cost", _only(cost_table(report))),
        _questions(report),
        _problems(report),
        _section("manifest", "Manifest", _manifest(report)),
    ]
    shown = [section for section in sections if section]
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in shown)
    body = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{title}</h2>\n{inner}\n</section>'
        for name, title, inner in shown
    )
    warning = (
        "" if report.run.complete else f'<p class="warning" role="status">Incomplete: {label(status(report), 400)}</p>'
    )
    told = "" if warning else f"<p>{label(status(report), 400)}</p>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>unpoison: evaluation</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="report">\n<header><h1>Evaluation</h1>{told}{warning}'
        "<p>Shares are in percent with 95 % intervals. Point at a heading or at a mark for its meaning.</p></header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n{body}\n</main>\n'
        f'<script type="application/json" id="questions-data">{embedded(question_data(report))}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


Section = tuple[str, str, str]
"""(anchor, title, HTML)."""


@cache
def _resource(name: str) -> str:
    return files("unpoison").joinpath("data", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _section(name: str, title: str, inner: str) -> Section | None:
    return (name, title, inner) if inner else None


def _preset(report: Report) -> Section | None:
    if report.preset is None:
        return None
    preset = report.preset
    lines = [f"<p><strong>{label(preset.source)}: {label(preset.title, 200)}.</strong> {label(preset.about, 1000)}</p>"]
    lines.append("<dl>")
    for what, sentences in (
        ("The paper used", [f"{kind}: {value}" for kind, value in preset.used.items()]),
        ("Instead", preset.substitutions),
        ("Lacking", preset.lacks),
    ):
        if sentences:
            items = "".join(f"<dd>{label(sentence, 400)}</dd>" for sentence in sentences)
            lines.append(f"<dt>{what}</dt>{items}")
    lines.append("</dl>")
    lines += [_table(table) for table in published_tables(report)]
    return "preset", "Published and measured", "\n".join(lines)


def _results(report: Report) -> Section | None:
    tables = summary_tables(report)
    if not tables:
        return None
    shown = "\n".join(_table(table) for table in tables[:MAX_TABLES])
    left = len(tables) - MAX_TABLES
    note = f"<p>{left} further tables are left out; the CSV export has all of them.</p>" if left > 0 else ""
    return "results", "Results", shown + note


def _figures(name: str, title: str, told: str, found: Iterable[Figure]) -> Section | None:
    stream = iter(found)
    shown = "\n".join(_figure(figure) for figure in islice(stream, MAX_FIGURES))
    left = sum(1 for _ in stream)
    note = f"<p>{left} further pictures are left out; the JSON export has their numbers.</p>" if left else ""
    return (name, title, f'<p>{told}</p>\n<div class="figures">\n{shown}\n</div>{note}') if shown else None


def _figure(figure: Figure) -> str:
    match figure:
        case Lines():
            key = legend((series.name, series.hue) for series in figure.series)
        case Scatter():
            key = legend((name, hue) for name, hue, _, _ in figure.points)
        case Bars():
            items = "".join(f'<li class="{kind}">{label(name)}</li>' for name, kind, _ in figure.groups)
            key = f'<ul class="legend">{items}</ul>'
    return f"<figure><figcaption>{label(figure.title, 300)}</figcaption>\n{svg(figure)}\n{key}</figure>"


def _only(table: Table) -> str:
    return _table(table) if table.rows else ""


def _table(table: Table) -> str:
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


def _questions(report: Report) -> Section | None:
    if not any(cell.records for cell in report.run.cells):
        return None
    return (
        "questions",
        "Questions",
        '<div id="drill-down"><noscript><p>The single questions need JavaScript; the rest of this page does not.</p>'
        "</noscript></div>",
    )


def _problems(report: Report) -> Section | None:
    found = problems(report)
    if not found:
        return None
    items = "".join(f"<li>{label(problem, 500)}</li>" for problem in found[:MAX_PROBLEMS])
    left = len(found) - MAX_PROBLEMS
    more = f"<li>and {left} more</li>" if left > 0 else ""
    return "problems", "Problems", f'<ul class="notes">{items}{more}</ul>'


def _manifest(report: Report) -> str:
    manifest = report.run.manifest
    rows = [
        (name, manifest[name]) for name in ("unpoison", "started", "finished", "python", "platform") if name in manifest
    ]
    rows.append(("command", " ".join(map(str, manifest.get("command", ()))) or "from Python"))
    listed = "".join(f'<tr><th scope="row">{label(name)}</th><td>{label(value, 400)}</td></tr>' for name, value in rows)
    whole = escape(json.dumps(dict(manifest), indent=2, ensure_ascii=True))
    return (
        f"<table>{listed}</table>\n<details><summary>The whole manifest, from which the run can be repeated</summary>"
        f"<pre>{whole}</pre></details>"
    )
