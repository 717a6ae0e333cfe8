import json
from dataclasses import replace
from math import isnan

import pytest

from unpoison.algorithms.intervals import wilson
from unpoison.core.codec import from_row, to_row
from unpoison.core.verdicts import Verdict
from unpoison.errors import InputError, ModelError, UnknownNameError
from unpoison.models.doubles import ScriptedGenerator
from unpoison_lab.evaluation.llm_judge import (
    GRADING,
    grade_prompt,
    judge_prompt,
    judge_run,
    read_grade,
    read_scores,
)
from unpoison_lab.evaluation.measures import MEASURES
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.runs import Cell, Record
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.summary import compare, summarise


def record(name="q", kept=(), size=4, poison=(), gold=(), scores=None, **fields):
    rank = {index: place for place, index in enumerate(kept)}
    scores = scores or [float(size - i) for i in range(size)]
    verdicts = tuple(Verdict(i, i in rank, scores[i], rank.get(i), "why") for i in range(size))
    return Record(name, ("Paris",), ("Lyon",), len(poison), len(poison), poison, gold, verdicts=verdicts, **fields)


def cell(*records, identifier="c", expected=None, **fields):
    scenario = Scenario("sample", **{"attack": "pia", "poisons": 1, "k": 4, **fields})
    return Cell(identifier, scenario, "x", len(records) if expected is None else expected, records)


def figures(*records, **fields):
    (summary,) = summarise([cell(*records, **fields)])
    return summary


TWO = (
    record("one", kept=(3, 1), poison=(0, 1), gold=(2,)),
    record("two", kept=(0, 1, 2, 3), poison=(), gold=(1,)),
)


def test_what_does_not_apply_is_nan_not_zero():
    measured = figures(record(kept=(0, 1, 2, 3)))
    for name in ("asr", "accuracy", "precision", "recall", "f1", "auroc", "gold_kept", "prompt_tokens", "seconds_p95"):
        assert isnan(measured[name].value), name
        assert not measured.applies(name)
    document = json.loads(json.dumps(measured.to_dict(), allow_nan=False))
    assert document["figures"]["asr"]["value"] is None
    assert set(document["figures"]) == set(MEASURES)


def test_ranks_put_the_dropped_behind_the_kept():
    measured = figures(record(kept=(2, 0), poison=(3,), gold=(2,)), record(kept=(1,), poison=(0,), gold=(1,)))
    assert measured.poison_ranks == (0, 1, 0, 1)
    assert measured.gold_ranks == (2, 0, 0, 0)


@pytest.mark.parametrize(
    ("reply", "values"),
    [("It is Paris, not Lyon", (0, 1, 0, 1, 0)), ("the Paris!", (0, 0, 0, 1, 1)), ("Lyonnais", (0, 1, 1, 0, 0))],
)
def test_each_matching_rule(reply, values):
    measured = figures(record(kept=(0,), answer=reply, abstained=False))
    names = ("asr", "asr_substring", "asr_exclusive", "accuracy", "exact_match")
    assert tuple(measured[name].value for name in names) == values


def test_failures_stay_in_the_denominator():
    """A question that the defense failed on stays in the denominator; one that was not attacked never was in it."""
    failed = Record("late", ("Paris",), ("Lyon",), error="too late", stage="defense", unanswered=True)
    answered = record("one", kept=(0,), answer="It is Paris.")
    measured = figures(answered, failed, failed, Record("never", error="no text", stage="attack"), expected=5)
    assert (measured.expected, measured.done, measured.failed, measured.complete) == (5, 4, 3, False)
    assert measured["failed"] == wilson(3, 4)
    assert measured["accuracy"] == wilson(1, 3)
    for name in ("asr", "poisoned"):  # a failure may have been an attack's success: it is one in the interval's end
        assert (measured[name].value, measured[name].high, measured[name].count) == (0, wilson(2, 3).high, 3)
    assert measured["clean_kept"].count == 1
    assert measured.problems == ("2 of 5: too late", "1 of 5: no text")


def test_a_defense_that_always_fails_does_not_look_safe():
    failing = [Record(name, ("Paris",), ("Lyon",), error="down", stage="defense", unanswered=True) for name in "abc"]
    attacked = [record(name, kept=(0,), answer="It is Lyon.") for name in "abc"]
    cells = [cell(*failing, identifier="fails", defense="grada"), cell(*attacked, identifier="none", defense="vanilla")]
    fails = summarise(cells)[0]
    assert (fails["failed"].value, fails["asr"].high, fails["asr"].count) == (1, 1, 3)
    assert {comparison.measure for comparison in compare(cells)}.isdisjoint({"asr", "poisoned"})


def test_a_cell_knows_its_clean_twin():
    clean = cell(record(kept=(0,)), identifier="clean", attack="none", poisons=0)
    attacked, other = cell(*TWO, identifier="a"), cell(*TWO, identifier="b", defense="grada")
    assert [summary.twin for summary in summarise([clean, attacked, other])] == ["clean", "clean", None]


def test_defenses_are_compared_on_the_questions_that_both_answered():
    first = cell(*(record(str(i), kept=(0, 1), poison=(0,)) for i in range(8)), identifier="a")
    good = [record(str(i), kept=(1,), poison=(0,)) for i in range(7)]
    second = cell(*good[::-1], Record("7", error="away", stage="attack"), identifier="b", defense="grada")
    elsewhere = cell(*good, identifier="c", defense="grada", k=3)
    (comparison,) = compare([first, second, elsewhere], ["poisoned"])
    assert (comparison.first, comparison.second, comparison.defenses) == ("a", "b", ("vanilla", "grada"))
    assert comparison.difference.value == -1.0
    assert comparison.difference.count == 7
    assert comparison.differs
    assert comparison.difference.probability == comparison.corrected == pytest.approx(2 / 2**7)
    assert json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["difference"]["value"] == -1.0


def test_several_comparisons_are_corrected():
    """Seven of seven is p = 0.016; among three pairs of defenses it is 0.047, and a fourth pair would lose its star."""
    first = [record(str(i), kept=(0, 1), poison=(0,)) for i in range(7)]
    good = [record(str(i), kept=(1,), poison=(0,)) for i in range(7)]
    cells = [cell(*first, identifier="a"), *(cell(*good, identifier=name, defense=name) for name in ("grada", "guard"))]
    by_key = {(one.first, one.second): one for one in compare(cells, ["poisoned"])}
    assert by_key["a", "grada"].corrected == pytest.approx(3 * 2 / 2**7)
    assert by_key["a", "grada"].differs
    assert not by_key["grada", "guard"].differs
    more = [*cells, cell(*good, identifier="radar", defense="radar")]
    assert not any(one.differs for one in compare(more, ["poisoned"]))


def test_measures_that_do_not_apply_are_not_compared():
    cells = [cell(record(kept=(0,)), identifier="a"), cell(record(kept=(0,)), identifier="b", defense="grada")]
    assert {one.measure for one in compare(cells)} == {"poisoned", "clean_kept"}
    (same,) = compare(cells, ["clean_kept"])
    assert (same.difference.value, same.differs) == (0.0, False)
    assert same.corrected == 1
    assert same.difference.low < 0 < same.difference.high, "one question proves nothing"
    with pytest.raises(UnknownNameError, match="did you mean 'accuracy'"):
        compare(cells, ["acuracy"])


def test_a_record_survives_json():
    for one in (*TWO, Record("late", error="no", stage="attack"), record(judged=(1, 2, 3), notes=("odd",), answer="")):
        assert from_row(Record, json.loads(json.dumps(to_row(one)))) == one
    with pytest.raises(InputError):
        from_row(Record, {"example": "q", "verdicts": [{"index": 0}]})


SCORES = "It is fine.\nFactual Accuracy: [[10]]\nRelevance and Recall: [[7]]\nCoherence and Structure: [[8]]"


@pytest.mark.parametrize(
    ("reply", "scores"),
    [
        (SCORES, (10, 7, 8)),
        (SCORES.lower().replace("[[", "").replace("]]", ""), (10, 7, 8)),
        ("**Factual Accuracy**: [[3]]\nRelevance and Recall: [[11]]\nCoherence and Structure: [[0]]", (3, None, None)),
        ("I cannot tell.", (None, None, None)),
        (SCORES.replace(": [[", " (1-10): [["), (10, 7, 8)),
        ("Factual Accuracy (1-10)\nRelevance and Recall: 1 to 10\nCoherence and Structure:", (None, None, None)),
        (f"At first Factual Accuracy: [[2]], but:\n{SCORES}", (10, 7, 8)),
    ],
)
def test_a_judges_scores_are_read(reply, scores):
    assert read_scores(reply) == scores


def test_the_judge_sees_reference_question_and_answer_apart_from_its_orders():
    system, user = judge_prompt("who", "the truth", "an answer\n#### and more").messages()
    assert "Factual Accuracy: [[score]]" in system["content"]
    assert "the truth" in user["content"]
    assert "an answer" in user["content"]
    assert "and more" not in user["content"]


def test_answers_are_judged_once_and_failures_again(tmp_path):
    scenario = Scenario("sample", generator="extractive", limit=3)
    run = Runner(tmp_path, [scenario]).run()
    away = ScriptedGenerator(lambda prompt: ModelError("away"))
    assert [one.judged for one in judge_run(run, away).cells[0].records] == [None, None, None]
    judge = ScriptedGenerator(SCORES)
    judged = judge_run(run, judge)
    assert [one.judged for one in judged.cells[0].records] == 3 * [(10, 7, 8)]
    assert summarise(judged.cells)[0]["judged_accuracy"].value == 10
    assert summarise(judged.cells)[0]["judged_coherence"].value == 8
    assert judge_run(run, ScriptedGenerator(SCORES)).cells == judged.cells
    assert len(judge.prompts) == 3


@pytest.mark.parametrize(
    ("reply", "grade"),
    [("A", "A"), ("B.", "B"), ("Grade: C", "C"), ("**A**", "A"), ("I cannot tell.", "C"), ("", "C"), ("a", "C")],
)
def test_a_grade_is_read_and_what_is_none_counts_as_not_attempted(reply, grade):
    assert read_grade(reply) == grade


def test_the_grader_sees_every_right_answer():
    _, user = grade_prompt("who", ["Ada", "Ada Lovelace"], "It was Ada.").messages()
    assert "Ada; Ada Lovelace" in user["content"]
    assert "It was Ada." in user["content"]


def test_grades_are_kept_beside_scores_and_a_failure_is_asked_again(tmp_path):
    run = Runner(tmp_path, [Scenario("sample", generator="extractive", limit=4)]).run()
    scored = judge_run(run, ScriptedGenerator(SCORES))
    replies = iter(["A", "B", "C", ModelError("away")])
    graded = judge_run(scored, ScriptedGenerator(lambda prompt: next(replies)), GRADING)
    assert [one.grade for one in graded.cells[0].records] == ["A", "B", "C", None]
    assert [one.judged for one in graded.cells[0].records] == 4 * [(10, 7, 8)]
    by_key = summarise(graded.cells)[0]["graded"]
    assert (by_key.value, by_key.count) == (pytest.approx(1 / 3), 3)
    again = ScriptedGenerator("A")
    assert [one.grade for one in judge_run(run, again, GRADING).cells[0].records] == ["A", "B", "C", "A"]
    assert len(again.prompts) == 1


@pytest.mark.parametrize(("answer", "strict"), [("Ada and Bea", 1), ("Ada", 0), ("Ada, Bea and Cleo", 0), ("Cleo", 0)])
def test_strict_accuracy_wants_every_right_answer_and_no_wrong_one(answer, strict):
    one = replace(record(answer=answer), correct=("Ada", "Bea"), wanted=("Cleo",))
    assert figures(one)["accuracy_strict"].value == strict
