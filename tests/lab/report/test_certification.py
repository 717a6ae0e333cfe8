"""Certified accuracy: counted from answers without an attack."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.runs import Cell, Record
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.report import Report, as_json, as_markdown, page
from unpoison_lab.report.tables import certified_accuracy, guarantee_tables

CLEAN = Scenario(data="d", k=6, defense="vote", generator="extractive")


def record(answer: str, guarantee: int | None) -> Record:
    return Record("q", correct=("Paris",), wanted=("Lyon",), answer=answer, abstained=False, guarantee=guarantee)


def cell(*records: Record, **changed: object) -> Cell:
    return Cell("id", replace(CLEAN, **changed), expected=len(records), records=records)  # type: ignore[arg-type]


def test_only_right_answers_with_a_guarantee_count() -> None:
    shares = certified_accuracy(
        cell(record("Paris", 0), record("Paris", 2), record("Lyon", 3), record("Paris", None), Record("p", answer="x"))
    )
    assert [round(one.value, 2) for one in shares] == [0.75, 0.25, 0.25, 0.0]
    assert shares[1].low < 0.25 < shares[1].high
    assert certified_accuracy(cell(record("Paris", None))) == ()
    assert certified_accuracy(cell(record("Paris", 1), attack="pia", poisons=1)) == ()


def test_a_run_shows_it_in_every_format(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"q{n}",
            "question": f"where is tower {n}",
            "correct_answers": ["Paris"],
            "incorrect_answers": ["Lyon"],
            "passages": [{"text": f"Tower {n} is in Paris, says guide {i}.", "label": "clean"} for i in range(6)],
        }
        for n in range(3)
    ]
    data = tmp_path / "towers.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    scenarios = [Scenario(str(data), defense=d, k=6, generator="extractive") for d in ("vanilla", "vote")]
    report = Report.of(Runner(tmp_path / "run", scenarios).run())
    (table,) = guarantee_tables(report)
    assert table.columns == ("defense", "no attack", "certified, m = 1", "certified, m = 2", "certified, m = 3")
    assert [row[0] for row in table.rows] == ["vote"]
    assert table.rows[0][3].startswith("100.0 [")
    assert "What is guaranteed" in page(report)
    assert "Certified accuracy" in as_markdown(report)
    assert [len(one.get("certified", ())) for one in json.loads(as_json(report))["cells"]] == [0, 4]
