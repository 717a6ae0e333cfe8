"""The questions of a run as data for the page: what the defense was shown, what it decided, what was answered."""

from __future__ import annotations

import json
from typing import Any

from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.poisoning import Staged
from unpoison.bench.evaluation.records import Cell, Record
from unpoison.bench.report.model import Report
from unpoison.core.reasons import Reason
from unpoison.report.rendering import excerpt

__all__ = ["MAX_BYTES", "MAX_PER_SCENARIO", "question_data", "script_json"]

MAX_PER_SCENARIO = 100
"""Questions whose passages are on the page; all of a large run would be too much for a browser."""
MAX_BYTES = 1_400_000
"""The page stays below 2 MB, and one that a browser opens at once."""

TEXT = 700
"""Characters of a passage or an answer; more are cut."""


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
