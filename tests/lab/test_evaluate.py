"""A plan from Python: what it gives, and what it refuses before anything is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.check.corpus import write_documents
from unpoison.errors import InputError, OptionError
from unpoison_lab.evaluate import EvaluationPlan, _outcome, _problems, evaluate
from unpoison_lab.evaluation.presets import stream_preset_names
from unpoison_lab.evaluation.runs import Cell, Record, Run
from unpoison_lab.evaluation.scenarios import Scenario

AXES = {"data": "sample", "defense": "vanilla:keep=3", "limit": 2}


def test_a_plan_is_measured_written_and_resumed(tmp_path: Path) -> None:
    said: list[str] = []
    plan = EvaluationPlan(AXES, folder=tmp_path / "run", fail_if=("poisoned > 100%",))
    result = evaluate(plan, note=said.append)
    assert (result.status, said) == (0, [])
    assert result.report is not None and len(result.report.summaries) == 4  # with and without the attack and defense
    assert result.remarks[-2].startswith("measured 8 questions in 4 scenarios")
    assert result.remarks[-1] == "all 4 checks passed"
    result.write(tmp_path / "report.md")
    assert "vanilla" in (tmp_path / "report.md").read_text()
    assert len(json.loads(result.as_json())["cells"]) == 4
    again = evaluate(EvaluationPlan(AXES, folder=tmp_path / "run", fail_if=("poisoned >= 0%",)))
    assert any("8 were there already" in line for line in again.remarks) and again.status == 1


def test_a_file_adds_axes_and_settings_and_what_is_given_precedes(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("defense: [grada]\nk: [5]\njudge: extractive\ndeadline: 9\n")
    plan = EvaluationPlan({"defense": "guard"}).with_file(path)
    assert plan.axes == {"defense": "guard", "k": [5]}
    assert (plan.judge, plan.grader, plan.deadline) == ("extractive", None, 9)
    path.write_text("deadline: soon\n")
    with pytest.raises(OptionError, match="deadline must be a number of seconds"):
        EvaluationPlan().with_file(path)


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (EvaluationPlan(stream="timeline", questions=3), "--stream determines questions"),
        (EvaluationPlan({"k": "5"}, stream="timeline"), "--stream determines k"),
        (EvaluationPlan({"k": "5"}, preset="grada-table-1"), "--preset determines k"),
        (EvaluationPlan(AXES, fail_if=("asr > 5%",)), "needs answers"),
    ],
)
def test_what_excludes_each_other_is_refused(plan: EvaluationPlan, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        evaluate(plan)


def test_a_refused_plan_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        evaluate(EvaluationPlan({"data": str(tmp_path / "missing.jsonl")}, folder=tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []


def test_questions_are_made_of_documents_and_lie_beside_the_run(tmp_path: Path) -> None:
    said: list[str] = []
    axes = {"data": str(write_documents(tmp_path / "docs")), "defense": "vanilla:keep=3", "limit": 1}
    result = evaluate(EvaluationPlan(axes, questions=2, folder=tmp_path / "run"), note=said.append)
    (line,) = [one for one in said if "questions are in" in one]
    path = Path(line.partition(" are in ")[2].partition(";")[0])
    assert line.startswith("2 questions") and path.is_relative_to(tmp_path / "run" / "questions")
    assert len(path.read_text().splitlines()) == 2
    assert result.status == 0 and result.report is not None
    with pytest.raises(OptionError, match="give one data here"):
        evaluate(EvaluationPlan({"data": ["a", "b"]}, questions=2, folder=tmp_path / "other"))


class SummaryPart(SimpleNamespace):
    """As much of a summary as remarks are made of."""

    def applies(self, name: str) -> bool:
        return name == "reached"

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(value=self.reached)


def report_of(rows: Sequence[str] = (), problems: Sequence[Sequence[str]] = (), reached: Sequence[float] = ()) -> Any:
    """A report with rows left out, the problems of each cell, and the share of texts that reached their goal."""
    cells = [
        SummaryPart(problems=own, reached=share, scenario=Scenario("sample", attack="pia", poisons=i))
        for i, (own, share) in enumerate([*zip(problems, repeat(1.0)), *zip(repeat(()), reached)], 1)
    ]
    return SimpleNamespace(run=SimpleNamespace(manifest={"data": {"d": {"left_out": list(rows)}}}), summaries=cells)


def test_rows_with_one_problem_are_said_five_times_and_then_counted() -> None:
    rows = [f"line {i:,} ('q{i}'): question is empty" for i in range(1, 8)] + ["line 9: no JSON"]
    said = _problems(report_of(rows))
    assert [line for line in said if "is empty" in line] == [f"d: {row}" for row in rows[:5]] + [
        "and 2 more rows: d: question is empty"
    ]
    assert "d: line 9: no JSON" in said and len(said) == 7
    assert not any("more rows" in line for line in _problems(report_of(rows[:5])))


def test_a_problem_of_several_scenarios_is_said_once_and_twenty_at_most() -> None:
    many = [f"problem {i}" for i in range(20)]
    assert _problems(report_of(problems=[["down"], ["down", "other"]])) == ["down (in 2 scenarios)", "other"]
    assert _problems(report_of(problems=[many])) == many
    assert _problems(report_of(problems=[[*many, "x", "y"]])) == [*many, "and 2 more; --json and --report list them"]


def test_texts_that_missed_their_goal_are_a_note() -> None:
    assert _problems(report_of(reached=[1.0, 0.25])) == [
        "note: pia x 2: 75 % of the planted texts missed the attack's own goal"
    ]


@pytest.mark.parametrize(
    ("cells", "resumed", "sentence", "status"),
    [
        ([(3, 0, None)], 0, "measured 3 questions in 1 scenario; the run is in f", 0),
        ([(1, 0, None), (2, 0, None)], 1_000, "measured 3 questions in 2 scenarios; 1,000 were there already; ", 0),
        ([(1, 2, None)], 0, "measured 1 question in 1 scenario; 2 failed; the run", 1),
        ([(1, 0, None), (0, 0, "no model")], 0, "measured 1 question in 2 scenarios; 1 scenario could not begin; ", 1),
        ([(0, 3, None)], 0, "measured 0 questions in 1 scenario; 3 failed; ", 2),
        ([], 0, "measured 0 questions in 0 scenarios; the run", 2),
    ],
)
def test_the_outcome_counts_what_was_measured(cells: Any, resumed: int, sentence: str, status: int) -> None:
    made = [
        Cell("c", Scenario("sample"), records=(*[Record("a")] * fine, *[Record("b", error="x")] * failed), error=error)
        for fine, failed, error in cells
    ]
    said, found = _outcome(Run(Path("f"), {"resumed": resumed}, tuple(made)))
    assert said.startswith(sentence) and found == status


def test_a_file_is_a_mapping_and_a_deadline_a_number(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("- grada")
    with pytest.raises(
        InputError, match=r"grid\.yaml must hold a mapping such as 'defense: \[grada\]', got \['grada'\]"
    ):
        EvaluationPlan().with_file(path)
    path.write_text("deadline: true")
    with pytest.raises(OptionError, match="deadline must be a number of seconds, got True"):
        EvaluationPlan().with_file(path)
    path.write_text("deadline: 2.5\ngrader: extractive")
    plan = EvaluationPlan().with_file(path)
    assert (plan.deadline, plan.grader, plan.judge, dict(plan.axes)) == (2.5, "extractive", None, {})
    path.write_text("{}")
    assert EvaluationPlan().with_file(path).deadline == 120


def test_several_values_of_an_axis_are_refused_where_one_is_wanted_except_of_seeds(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="give one encoder here, got 'minilm, lexical'"):
        evaluate(EvaluationPlan({"encoder": "minilm,lexical"}, preset="grada-table-1"))
    with pytest.raises(OptionError, match="is measured over time; give its data as well, such as --stream timeline"):
        evaluate(EvaluationPlan(preset=stream_preset_names()[0]))
    with pytest.raises(
        OptionError, match="nothing of radar-table-1 can be measured here: every row needs a generator; "
    ):
        evaluate(EvaluationPlan(preset="radar-table-1"))
