"""The report as one self-contained page: it opens from disk, asks the network for nothing, runs only its own script.

The questions travel as JSON in a data block, and the script puts them on the page as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from unpoison.report.document import Section, Table, document
from unpoison.utils.plain_text import excerpt
from unpoison_lab.evaluation.measures import MEASURES
from unpoison_lab.evaluation.poisoning import Staged
from unpoison_lab.evaluation.runs import Record
from unpoison_lab.report.model import Report
from unpoison_lab.report.tables import (
    comparison_tables,
    conclusions,
    cost_table,
    difference_table,
    guarantee_tables,
    problems,
    status,
    summary_tables,
)

__all__ = ["page", "question_data"]

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
    tables, remarks, preset = summary_tables(report), problems(report), report.preset
    cut = len(tables) - MAX_TABLES
    more = [f"and {len(remarks) - MAX_PROBLEMS} more"] if len(remarks) > MAX_PROBLEMS else []
    sections = [
        Section(
            "preset",
            "Published and measured",
            notes=preset.describe() if preset else (),
            tables=list(comparison_tables(report)),
        ),
        Section(
            "results",
            "Results",
            tables=tables[:MAX_TABLES],
            left_out=f"{cut} further tables are left out; a report in JSON has all of them." if cut > 0 else "",
        ),
        Section(
            "certified",
            "What is guaranteed",
            "Right without an attack, and proved to stay right under any change of m passages.",
            tables=guarantee_tables(report)[:MAX_TABLES],
        ),
        Section("differences", "Paired differences", tables=_filled(difference_table(report))),
        Section("cost", "Time and tokens", tables=_filled(cost_table(report))),
        Section("questions", "Questions", part="drill-down.html" if any(c.records for c in report.run.cells) else ""),
        Section("problems", "Problems", notes=[*remarks[:MAX_PROBLEMS], *more]),
    ]
    complete = report.run.complete
    return document(
        f"{preset.source}: {preset.title}" if preset else "Evaluation",
        sections,
        facts=list(_facts(report)),
        lead=[
            *([status(report)] if complete else []),
            *conclusions(report),
            "Shares are in percent with 95 % intervals. Point at a heading for its meaning.",
        ],
        warning="" if complete else f"Incomplete: {status(report)}",
        questions=question_data(report),
    )


def _filled(table: Table) -> list[Table]:
    return [table] if table.rows else []


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    """Where the figures come from; the run's manifest.json has all of it."""
    manifest = report.run.manifest
    yield "command", " ".join(map(str, manifest.get("command", ()))) or "from Python"
    for name in ("unpoison", "python", "platform", "started", "finished"):
        if manifest.get(name) is not None:
            yield name, str(manifest[name])


def question_data(report: Report, per_scenario: int = MAX_PER_SCENARIO, most: int = MAX_BYTES) -> dict[str, Any]:
    """The data of the drill-down, bounded in size.

    Failed questions come first, then those with poison left, then the others, each in the order of the data set;
    successes are omitted first.

    Args:
        report: The run.
        per_scenario: The most questions of one scenario.
        most: The most bytes of JSON in all; every scenario gets an equal share of the rest.

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
        scenario = excerpt(report.caption(cell.scenario), 200)
        cells.append({"defense": excerpt(cell.scenario.defense, 120), "scenario": scenario, "records": rows})
    return {"cells": cells, "contexts": contexts, "left_out": left_out}


def _interest(record: Record) -> int:
    return 0 if record.failed else 1 if _yes(record, "poisoned") or _yes(record, "asr") else 2


def _yes(record: Record, measure: str) -> bool:
    return not record.failed and MEASURES[measure].value(record) == 1


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
            [verdict.kept, f"{verdict.score:.4g}", verdict.rank, excerpt(str(verdict.reason), 300)]
            for verdict in record.verdicts
        ],
        "order": list(record.order),
        "notes": [excerpt(note, 300) for note in record.notes[:8]],
        "answer": None if record.answer is None else excerpt(record.answer, TEXT),
        "error": None if record.error is None else excerpt(record.error, TEXT),
    }


def _outcomes(record: Record) -> list[str]:
    """The filters of a record; the page has a sentence for each."""
    if record.failed:
        return ["failed"]
    yes = {"poisoned": "poisoned", "asr": "attacked", "accuracy": "right", "gold_lost": "gold-lost"}
    yes |= {name: name for name in ("damaged", "emptied", "abstained")}
    outcomes = [name for measure, name in yes.items() if _yes(record, measure)]
    if MEASURES["accuracy"].value(record) == 0:
        outcomes.append("wrong")
    return outcomes or ["clean"]


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=True, separators=(",", ":")))
