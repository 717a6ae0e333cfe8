"""Certified accuracy: counted from answers without an attack, shown beside the attacks that were run."""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unpoison.bench.evaluation.records import Cell, Record
from unpoison.bench.evaluation.runner import Runner
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.report import Report, as_json, as_markdown, page
from unpoison.bench.report.certification import certify, guarantee_figures, guarantee_tables
from unpoison.cli import app

CLEAN = Scenario(data="d", k=6, defense="vote", generator="extractive")


def record(answer: str, guarantee: int | None) -> Record:
    return Record("q", correct=("Paris",), wanted=("Lyon",), answer=answer, abstained=False, guarantee=guarantee)


def cell(*records: Record, **changed: object) -> Cell:
    from dataclasses import replace

    return Cell("id", replace(CLEAN, **changed), expected=len(records), records=records)  # type: ignore[arg-type]


def test_only_right_answers_with_a_guarantee_count() -> None:
    (certified,) = certify([cell(record("Paris", 0), record("Paris", 2), record("Lyon", 3), record("Paris", None))])
    assert [round(one.value, 2) for one in certified.certified] == [0.75, 0.25, 0.25, 0.0]
    assert certified.accuracy.value == 0.75
    assert certified.certified[1].low < 0.25 < certified.certified[1].high


def test_the_worst_attack_stands_beside() -> None:
    cells = [
        cell(record("Paris", 1), record("Paris", 1)),
        cell(record("Paris", 1), record("Paris", 1), attack="published", poisons=1),
        cell(record("Paris", 1), record("Lyon", 1), attack="pia", poisons=1),
    ]
    (certified,) = certify(cells)
    assert certified.attacked[1].attack == "pia"
    assert certified.attacked[1].accuracy.value == 0.5


def test_without_any_proof_there_is_nothing_to_show() -> None:
    assert certify([cell(record("Paris", None))]) == []
    assert certify([cell(Record("q", correct=("Paris",)))]) == [], "screened only"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("certified")
    rows = [
        {
            "id": f"q{n}",
            "question": f"where is tower {n}",
            "correct_answers": ["Paris"],
            "incorrect_answers": ["Lyon"],
            "passages": [
                *({"text": f"Tower {n} is in Paris, says guide {i}.", "label": "clean"} for i in range(6)),
                {"text": f"Tower {n} is in Lyon.", "label": "poison", "attack": "published"},
            ],
        }
        for n in range(3)
    ]
    data = folder / "towers.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    shared = {"data": str(data), "k": 6, "generator": "extractive", "corpus": None}
    scenarios = [
        Scenario(attack="published", poisons=poisons, defense=defense, **shared)  # type: ignore[arg-type]
        for poisons in (0, 1)
        for defense in ("vanilla", "vote", "guard:answer=guaranteed")
    ]
    return Report.of(Runner(folder / "run", scenarios).run())


def test_a_run_shows_it_in_every_format(report: Report) -> None:
    (table,) = guarantee_tables(report)
    assert table.columns[:3] == ("defense", "no attack", "certified, m = 1")
    rows = {row[0]: row for row in table.rows}
    assert rows["vanilla"][2] == "no proof"
    assert rows["vote"][1].startswith("100.0 [") and rows["vote"][3].startswith("100.0 [")
    assert rows["vote"][1:] == rows["guard:answer=guaranteed"][1:]
    assert rows["vote"][-1].endswith("published")
    (figure,) = guarantee_figures(report)
    assert [share.value for _, share in figure.series[0].points] == [1.0, 1.0, 1.0, 0.0], (
        "six say so: two are withstood"
    )
    assert "What is guaranteed" in page(report)
    assert "Certified accuracy" in as_markdown(report)
    certified_by_id = {one["id"]: one for one in json.loads(as_json(report))["certified"]}
    assert sorted(len(one["certified"]) for one in certified_by_id.values()) == [0, 4, 4]


def test_the_command_shows_it_and_says_where_there_is_none(report: Report, tmp_path: Path) -> None:
    data = report.run.cells[0].scenario.data
    shared = [data, "--k", "6", "--limit", "1", "--corpus", "none", "-g", "extractive", "-a", "published", "--certify"]
    shown = CliRunner().invoke(app, ["evaluate", "-d", "vote", "--folder", str(tmp_path / "a"), *shared])
    assert shown.exit_code == 0, shown.output
    assert "Certified accuracy" in shown.output
    none = CliRunner().invoke(app, ["evaluate", "-d", "grada", "--folder", str(tmp_path / "b"), *shared])
    assert "nothing is certified" in none.output
    refused = CliRunner().invoke(app, ["evaluate", "-d", "vote", "--no-clean", *shared])
    assert refused.exit_code == 2
    assert "--no-clean" in refused.output


def test_a_share_of_nothing_is_no_number() -> None:
    (certified,) = certify([cell(record("Paris", 1), Record("p", answer="x"))])
    assert not isnan(certified.accuracy.value)
    assert certified.accuracy.count == 1
