"""A plan from Python: what it gives, and what it refuses before anything is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.check.corpus import write_documents
from unpoison.errors import InputError, OptionError
from unpoison_lab.evaluate import EvaluationPlan, evaluate

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
