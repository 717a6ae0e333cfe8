"""Gates, comparisons with an earlier run, and what pipelines read."""

from __future__ import annotations

import json
from math import nan
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.evaluation.gates import (
    Alert,
    Gate,
    GateResult,
    MeasuredCell,
    as_junit,
    as_sarif,
    check_gates,
    gate_alerts,
)
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.regressions import check_regressions, read_measured
from unpoison.errors import InputError, OptionError, UnknownNameError, UnpoisonError


def cell(name="guard", asr=0.04, high=0.12, **more) -> MeasuredCell:
    figures = {"asr": Estimate(asr, 0.01, high, 100), "accuracy": Estimate(0.9, 0.8, 0.95, 100)}
    figures["screening_p95"] = Estimate(0.2, nan, nan, 100)
    return MeasuredCell(name, name, figures, **more)


@pytest.mark.parametrize(
    ("gate", "failed"),
    [
        ("asr > 5%", False),
        ("asr>3%", True),
        ("asr >= 0.04", True),
        ("upper(asr) > 10%", True),
        ("lower(asr) > 1%", False),
        ("lower(asr) >= 1%", True),
        ("accuracy < 85%", False),
        ("lower(accuracy) < 85%", True),
        ("attacked(upper(accuracy)) <= 95%", True),
        ("screening_p95 > 0.1", True),
    ],
)
def test_a_gate_names_what_must_not_be(gate, failed):
    (result,) = check_gates([Gate.of(gate, MEASURES)], [cell()], MEASURES)
    assert result.failed is failed
    assert "guard" in result.message


def test_the_message_has_the_numbers():
    (result,) = check_gates([Gate.of("asr > 1%", MEASURES)], [cell()], MEASURES)
    assert result.message == "guard: asr is 4.0 % [1.0 % to 12.0 %] in 100"


@pytest.mark.parametrize(
    ("gate", "kind", "message"),
    [
        ("asr", OptionError, "is no gate; write a measure"),
        ("asr > five", OptionError, "is no gate"),
        ("asr == 5%", OptionError, "is no gate"),
        ("asr > 5% or 1", OptionError, "is no gate"),
        ("asf > 5%", UnknownNameError, "did you mean 'asr'"),
        ("asr > 5", OptionError, "write 5% or 0.05"),
        ("seconds_p95 > 5%", OptionError, "measured in seconds"),
        ("upper(lower(asr)) > 5%", OptionError, "'lower' cannot stand there"),
        ("sqrt(asr) > 5%", OptionError, "'sqrt' cannot stand there"),
    ],
)
def test_a_slip_of_the_pen_is_named(gate, kind, message):
    with pytest.raises(kind, match=message):
        Gate.of(gate, MEASURES)


@given(st.text(max_size=60))
def test_any_text_is_a_gate_or_is_refused(text):
    try:
        gate = Gate.of(text, MEASURES)
    except UnpoisonError as error:
        assert len(str(error)) > len("gate")
    else:
        assert gate.measure in MEASURES
        assert gate.measure in text


def test_where_a_gate_looks():
    cells = [
        cell("vanilla", asr=1.0, baseline=True),
        cell("guard", asr=0.2),
        cell("guard, clean", asr=nan, clean=True),
    ]
    results = check_gates([Gate.of("asr > 5%", MEASURES)], cells, MEASURES)
    assert [one.cell for one in results] == ["guard"]  # no defense is not gated beside one, and clean has no ASR
    accuracy = check_gates([Gate.of("accuracy < 1%", MEASURES)], cells, MEASURES)
    assert [one.cell for one in accuracy] == ["guard", "guard, clean"]
    clean = check_gates([Gate.of("clean(accuracy) < 1%", MEASURES)], cells, MEASURES)
    assert [one.cell for one in clean] == ["guard, clean"]
    alone = check_gates([Gate.of("asr > 5%", MEASURES)], cells[:1], MEASURES)
    assert [one.cell for one in alone] == ["vanilla"]


def test_a_gate_that_applies_to_nothing_does_not_pass():
    with pytest.raises(InputError, match="applies to nothing: no cell has recall"):
        check_gates([Gate.of("recall < 5%", MEASURES)], [cell()], MEASURES)
    with pytest.raises(InputError, match="no cell has an interval of screening_p95"):
        check_gates([Gate.of("upper(screening_p95) > 5", MEASURES)], [cell()], MEASURES)


def measured(successes: int, trials: int = 100, outcomes=None) -> MeasuredCell:
    figures = {"asr": wilson(successes, trials), "accuracy": wilson(trials - successes, trials)}
    return MeasuredCell("guard", "guard", figures, outcomes=outcomes or {})


@pytest.mark.parametrize(("before", "now", "worse"), [(5, 40, True), (40, 5, False), (5, 9, False), (5, 5, False)])
def test_only_a_significant_worsening_fails(before, now, worse):
    results = check_regressions([measured(before)], [measured(now)], MEASURES)
    assert {one.measure: one.failed for one in results} == {"asr": worse, "accuracy": worse}


def test_the_same_questions_are_compared_in_pairs():
    """9 of 100 against 2 of 100 is no difference between strangers, and one between the same questions."""
    old = {"asr": {str(i): i < 2 for i in range(100)}}
    new = {"asr": {str(i): i < 12 for i in range(100)}}
    paired = check_regressions([measured(2, outcomes=old)], [measured(12, outcomes=new)], {"asr": MEASURES["asr"]})
    strangers = check_regressions([measured(2)], [measured(12)], {"asr": MEASURES["asr"]})
    assert "(p = 0.002)" in paired[0].message
    assert "(p = 0.01" in strangers[0].message
    assert paired[0].failed


def test_other_figures_are_compared_by_their_intervals():
    old, new = ({"gold_kept": Estimate(v, v - 0.03, v + 0.03, 50)} for v in (0.95, 0.8))
    (result,) = check_regressions([MeasuredCell("a", "a", old)], [MeasuredCell("a", "a", new)], MEASURES)
    assert result.failed
    assert not check_regressions([MeasuredCell("a", "a", new)], [MeasuredCell("a", "a", old)], MEASURES)[0].failed


def test_runs_that_have_nothing_in_common_are_not_compared():
    with pytest.raises(InputError, match="no cell in common"):
        check_regressions([MeasuredCell("a", "a", {})], [measured(1)], MEASURES)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"cells": 1}',
        '{"cells": [{"id": 1}]}',
        '{"cells": [{"id": "a"}]}',
        '{"cells": [{"id": "a", "figures": {"asr": {"value": "x"}}}]}',
        "[" * 100_000,
    ],
)
def test_an_earlier_run_that_is_none_is_said_in_a_sentence(tmp_path, content):
    path = tmp_path / "last.json"
    path.write_text(content)
    with pytest.raises(InputError, match="give "):
        read_measured(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_measured(tmp_path / "none.json")


HOSTILE = "]]></failure><x> & \x00 \x1b[31m \ud800 \uffff <script>alert(1)</script>"
FINDINGS = [
    GateResult("asr > 5%", "asr", f"guard {HOSTILE}", True, f"asr is 9 % {HOSTILE}"),
    GateResult("asr > 50%", "asr", "guard", False, "asr is 9 %"),
]


def test_junit_says_which_gates_failed_whatever_names_hold():
    root = ElementTree.fromstring(as_junit(FINDINGS, ["guard"], [f"one failed {HOSTILE}"]))  # noqa: S314  our own
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suite][:2] == ["asr > 5%", "asr > 50%"]
    assert "asr is 9 %" in suite[0][0].get("message", "")
    assert len(suite[1]) == 0
    assert suite[2][0].tag == "error"


def test_sarif_has_a_result_for_everything_that_failed():
    alerts = gate_alerts(FINDINGS, ["one question failed"])
    alerts.append(Alert("poisoned-answer", "warning", f"became {HOSTILE}", "q1"))
    document = json.loads(as_sarif(alerts, "my folder/red team.yaml"))
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert (document["version"], rules) == ("2.1.0", ["gate", "incomplete", "poisoned-answer"])
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("gate", "error"),
        ("incomplete", "warning"),
        ("poisoned-answer", "warning"),
    ]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20folder/red%20team.yaml"
        assert len(result["partialFingerprints"]["unpoison/v1"]) == 16
        result["message"]["text"].encode()
    again = json.loads(as_sarif(alerts[1:], "x"))["runs"][0]["results"]
    assert [r["partialFingerprints"] for r in again] == [r["partialFingerprints"] for r in run["results"][1:]]


def test_a_figure_without_an_interval_is_not_said_to_have_worsened() -> None:
    """Numbers that are equal for every question have none; a width of 0 would call any change certain."""
    old, now = ({"clean_kept": Estimate(value, nan, nan, 9)} for value in (0.9, 0.7))
    before, after = (MeasuredCell("x", "x", figures) for figures in (old, now))
    (found,) = check_regressions([before], [after], MEASURES)
    assert not found.failed
