"""The questions of a run as data for the page: what the defense was shown, what it decided, what was answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from unpoison.evaluation.measures import MEASURES
from unpoison.evaluation.records import Cell, Record
from unpoison.evaluation.report.model import Report
from unpoison.evaluation.staging import Staged
from unpoison.rendering import excerpt

__all__ = ["embedded", "questions"]

MAX_PER_SCENARIO = 100
MAX_BYTES = 6_000_000
"""The page stays one that a browser opens in a second or two."""

TEXT = 700
"""Characters of a passage; more are cut."""


def questions(report: Report, per_scenario: int = MAX_PER_SCENARIO, most: int = MAX_BYTES) -> dict[str, Any]:
    """What the drill-down shows, bounded in size.

    Failed questions come first, then those with poison left, then the others, each in the order of the data set: where
    something must be left out, it is what went well.

    Args:
        report: The run.
        per_scenario: The most questions of one scenario.
        most: The most bytes of JSON in all, roughly; every scenario gets an equal part of it.

    Returns:
        `cells`, each with its `records`; `contexts` by "contexts id / example", shared by the defenses that were
        shown the same passages; `left_out`, how many records are not here.
    """
    contexts: dict[str, Any] = {}
    cells, left_out = list[dict[str, Any]](), 0
    for number, cell in enumerate(report.run.cells):
        spent = sum(map(_size, cells)) + _size(contexts) if number % 8 == 0 else spent  # noqa: F821
        room = (most - spent) / max(len(report.run.cells) - number, 1)
        made, shown = _cell(report, cell, contexts, per_scenario, room)
        cells.append(made)
        left_out += len(cell.records) - shown
    return {"cells": cells, "contexts": contexts, "left_out": left_out, "per_scenario": per_scenario}
