"""The report as one self-contained page: it opens from disk, asks the network for nothing, runs only its own script.

Names, questions, passages and replies are hostile. What is written here is escaped; the questions travel as JSON in a
data block, and the script puts them on the page as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from itertools import islice
from typing import Any

from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.poisoning import Staged
from unpoison.bench.evaluation.records import Cell, Record
from unpoison.bench.report.certification import guarantee_figures, guarantee_tables
from unpoison.bench.report.charts import label
from unpoison.bench.report.document import Section, document, figure_markup, table_markup
from unpoison.bench.report.figures import Figure, poison_figures, rank_figures, sweep_figures, trade_off_figures
from unpoison.bench.report.front_page import front
from unpoison.bench.report.headline import brief_of
from unpoison.bench.report.model import Report
from unpoison.bench.report.paper_comparison import comparison_tables, measure_meanings
from unpoison.bench.report.tables import Table, cost_table, difference_table, problems, status, summary_tables
from unpoison.core.reasons import Reason
from unpoison.report.html_page import resource
from unpoison.report.rendering import excerpt

__all__ = ["MAX_BYTES", "MAX_PER_SCENARIO", "page", "question_data", "script_json"]

MAX_FIGURES = 12
"""Of one kind; with more a reader is better served by the tables."""

MAX_TABLES = 150
MAX_PROBLEMS = 200
"""Tables and remarks on one page; the page says how many are left out."""

MAX_PER_SCENARIO = 100
"""Questions whose passages are on the page; all of a large run would be too much for a browser."""
MAX_BYTES = 1_400_000
"""The page stays below 2 MB, and one that a browser opens at once."""

TEXT = 700
"""Characters of a passage or an answer; more are cut."""


def page(report: Report) -> str:
    """The whole report as HTML."""
    sections = [
        _preset(report),
        _results(report),
        _guarantee_section(report),
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
    warning = (
        "" if report.run.complete else f'<p class="warning" role="status">Incomplete: {label(status(report), 400)}</p>'
    )
    sentence = "" if warning else f"<p>{label(status(report), 400)}</p>"
    lead = (
        f"{sentence}{warning}"
        "<p>Shares are in percent with 95 % intervals. Point at a heading or at a mark for its meaning.</p>"
    )
    data = f'<script type="application/json" id="questions-data">{script_json(question_data(report))}</script>'
    if report.preset is not None:  # what was asked for is the comparison, not a page to sign
        title = f"{label(report.preset.source)}: {label(report.preset.title, 200)}"
        return document(title, lead, sections, data, resource("report.js"))
    brief = brief_of(report)
    return document(brief.title, lead, sections, data, resource("report.js"), front=front(brief))


def _section(name: str, title: str, inner: str) -> Section | None:
    return (name, title, inner) if inner else None


def _preset(report: Report) -> Section | None:
    if report.preset is None:
        return None
    preset = report.preset
    lines = [f"<p>{label(preset.about, 1000)}</p>", *map(table_markup, comparison_tables(report)), "<dl>"]
    for what, sentences in (
        ("The paper used", [f"{kind}: {value}" for kind, value in preset.used.items()]),
        ("Prompts", preset.prompts),
        ("Counted", measure_meanings(preset)),
        ("Instead", preset.substitutions),
        ("Lacking", preset.lacks),
    ):
        if sentences:
            items = "".join(f"<dd>{label(sentence, 400)}</dd>" for sentence in sentences)
            lines.append(f"<dt>{what}</dt>{items}")
    lines.append("</dl>")
    return "preset", "Published and measured", "\n".join(lines)


def _results(report: Report) -> Section | None:
    tables = summary_tables(report)
    if not tables:
        return None
    shown = "\n".join(table_markup(table) for table in tables[:MAX_TABLES])
    left = len(tables) - MAX_TABLES
    note = f"<p>{left} further tables are left out; the CSV export has all of them.</p>" if left > 0 else ""
    return "results", "Results", shown + note


def _guarantee_section(report: Report) -> Section | None:
    tables = "\n".join(map(table_markup, guarantee_tables(report)[:MAX_TABLES]))
    sentence = "Right without an attack, and proved to stay right whatever any m of the passages become."
    pictures = _figures("", "", sentence, guarantee_figures(report))
    return _section("certified", "What is guaranteed", tables + (pictures[2] if pictures else ""))


def _figures(name: str, title: str, sentence: str, figures: Iterable[Figure]) -> Section | None:
    stream = iter(figures)
    shown = "\n".join(figure_markup(figure) for figure in islice(stream, MAX_FIGURES))
    left = sum(1 for _ in stream)
    note = f"<p>{left} further pictures are left out; the JSON export has their numbers.</p>" if left else ""
    return (name, title, f'<p>{sentence}</p>\n<div class="figures">\n{shown}\n</div>{note}') if shown else None


def _only(table: Table) -> str:
    return table_markup(table) if table.rows else ""


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
    remarks = problems(report)
    if not remarks:
        return None
    items = "".join(f"<li>{label(problem, 500)}</li>" for problem in remarks[:MAX_PROBLEMS])
    left = len(remarks) - MAX_PROBLEMS
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


def question_data(report: Report, per_scenario: int = MAX_PER_SCENARIO, most: int = MAX_BYTES) -> dict[str, Any]:
    """What the drill-down shows, bounded in size.

    Failed questions come first, then those with poison left, then the others, each in the order of the data set: where
    something must be left out, it is what went well.

    Args:
        report: The run.
        per_scenario: The most questions of one scenario.
        most: The most bytes of JSON in all; every scenario gets an equal share of what is left.

    Returns:
        `cells`, each with its `records`; `contexts` by "contexts id/example", shared by all defenses that were shown
        the same passages; `left_out`, how many records are not here.
    """
    contexts: dict[str, Any] = {}
    cells = list[dict[str, Any]]()
    spent = left_out = 0
    staged: tuple[str, dict[str, Staged]] = ("", {})
    for number, cell in enumerate(report.run.cells):
        if staged[0] != cell.contexts:
            staged = (cell.contexts, report.run.read_contexts(cell))
        allowed = spent + (most - spent) / (len(report.run.cells) - number)
        rows = list[dict[str, Any]]()
        for record in sorted(cell.records, key=_interest)[:per_scenario]:
            key = f"{cell.contexts}/{record.example}"
            context = contexts.get(key) or _context(staged[1].get(record.example))
            row = _record(record, key)
            size = _size(row) + (0 if key in contexts else _size(context))
            if spent + size > allowed:
                break
            spent += size
            contexts[key] = context
            rows.append(row)
        left_out += len(cell.records) - len(rows)
        cells.append(_cell(report, cell, rows))
    return {"cells": cells, "contexts": contexts, "left_out": left_out}


def script_json(data: object) -> str:
    """JSON that is safe inside a `script` element of any type: no `<`, `>` or `&`, only ASCII."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _interest(record: Record) -> int:
    return 0 if record.failed else 1 if _yes(record, "poisoned") or _yes(record, "asr") else 2


def _yes(record: Record, measure: str) -> bool:
    return not record.failed and MEASURES[measure].value(record) == 1


def _cell(report: Report, cell: Cell, records: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": cell.id,
        "defense": excerpt(cell.scenario.defense, 120),
        "scenario": excerpt(report.caption(cell.scenario), 200),
        "total": len(cell.records),
        "records": records,
    }


def _context(staged: Staged | None) -> dict[str, Any]:
    if staged is None:
        return {"query": "", "passages": []}
    passages = [
        {
            "text": excerpt(candidate.passage.text, TEXT),
            "title": excerpt(candidate.passage.title or "", 120),
            "kind": "poison" if candidate.poison else "gold" if candidate.gold else "",
        }
        for candidate in staged.context.candidates
    ]
    return {"query": excerpt(staged.context.query, 300), "passages": passages}


def _record(record: Record, context: str) -> dict[str, Any]:
    return {
        "id": excerpt(record.example, 120),
        "context": context,
        "outcomes": _outcomes(record),
        "correct": [excerpt(text, 120) for text in record.correct[:8]],
        "wanted": [excerpt(text, 200) for text in record.wanted[:8]],
        "verdicts": [
            [verdict.kept, f"{verdict.score:.4g}", verdict.rank, *_reasons(verdict.reason)]
            for verdict in record.verdicts
        ],
        "order": list(record.order),
        "notes": [excerpt(note, 300) for note in record.notes[:8]],
        "answer": None if record.answer is None else excerpt(record.answer, TEXT),
        "error": None if record.error is None else excerpt(record.error, TEXT),
        "seconds": round(record.seconds, 4),
    }


def _reasons(reason: Reason) -> list[str]:
    """The reason in plain words, and its numbers where they say more."""
    return [excerpt(text, 300) for text in ((reason.plain, reason) if reason.code else (reason.plain,))]


def _outcomes(record: Record) -> list[str]:
    """What may be filtered for; the page has a sentence for each."""
    if record.failed:
        return ["failed"]
    outcomes = [
        ("poisoned", _yes(record, "poisoned")),
        ("attacked", _yes(record, "asr")),
        ("right", _yes(record, "accuracy")),
        ("wrong", MEASURES["accuracy"].value(record) == 0),
        ("gold-lost", _yes(record, "gold_lost")),
        ("damaged", _yes(record, "damaged")),
        ("emptied", _yes(record, "emptied")),
        ("abstained", _yes(record, "abstained")),
    ]
    return [name for name, holds in outcomes if holds] or ["clean"]


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=True, separators=(",", ":")))
