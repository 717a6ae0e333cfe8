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
    GateResult,
    MeasuredCell,
    Worse,
    as_junit,
    check_gates,
    gate_alerts,
    read_gate,
)
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.errors import InputError, OptionError, UnknownNameError, UnpoisonError
from unpoison.report.sarif import Alert, alerts_log


def cell(name="guard", asr=0.04, high=0.12, **more) -> MeasuredCell:
    figures = {"asr": Estimate(asr, 0.01, high, 100), "accuracy": Estimate(0.9, 0.8, 0.95, 100)}
    figures["screening_p95"] = Estimate(0.2, nan, nan, 100)
    return MeasuredCell(name, name, figures, **more)


def check(gate: str, *cells: MeasuredCell) -> list[GateResult]:
    return check_gates([read_gate(gate, MEASURES)], cells)


@pytest.mark.parametrize(
    ("gate", "failed"),
    [
        ("asr > 5%", False),
        ("asr>3%", True),
        ("asr >= 0.04", True),
        ("upper(asr) > 10%", True),
        ("lower(asr) > 1%", False),
        ("accuracy < 85%", False),
        ("attacked(upper(accuracy)) <= 95%", True),
        ("screening_p95 > 0.1", True),
    ],
)
def test_a_gate_names_what_must_not_be(gate, failed):
    (result,) = check(gate, cell())
    assert result.failed is failed
    assert "guard" in result.message


@pytest.mark.parametrize(
    ("gate", "kind", "message"),
    [
        ("asr", OptionError, "is no gate"),
        ("asr == 5%", OptionError, "is no gate"),
        ("asf > 5%", UnknownNameError, "did you mean 'asr'"),
        ("asr > 5", OptionError, "write 5% or 0.05"),
        ("seconds_p95 > 5%", OptionError, "measured in seconds"),
        ("upper(lower(asr)) > 5%", OptionError, "'lower' cannot stand there"),
        ("worse(none.json)", InputError, "cannot be read"),
    ],
)
def test_a_slip_of_the_pen_is_named(gate, kind, message):
    with pytest.raises(kind, match=message):
        read_gate(gate, MEASURES)


@given(st.text(max_size=60))
def test_any_text_is_a_gate_or_is_refused(text):
    try:
        gate = read_gate(text, MEASURES)
    except UnpoisonError as error:
        assert len(str(error)) > len("gate")
    else:
        assert gate.measure in MEASURES


def test_where_a_gate_looks():
    cells = [
        cell("vanilla", asr=1.0, baseline=True),
        cell("guard", asr=0.2),
        cell("guard, clean", asr=nan, clean=True),
    ]
    assert [one.cell for one in check("asr > 5%", *cells)] == ["guard"]  # the baseline is not gated, clean has no ASR
    assert [one.cell for one in check("accuracy < 1%", *cells)] == ["guard", "guard, clean"]
    assert [one.cell for one in check("clean(accuracy) < 1%", *cells)] == ["guard, clean"]
    assert [one.cell for one in check("asr > 5%", cells[0])] == ["vanilla"]
    with pytest.raises(InputError, match="applies to nothing"):
        check("recall < 5%", cell())
    with pytest.raises(InputError, match="applies to nothing"):
        check("upper(screening_p95) > 5", cell())


def worse(old: dict[str, Estimate], now: dict[str, Estimate]) -> dict[str, bool]:
    results = Worse("worse(x)", {"guard": old}, MEASURES).check([MeasuredCell("guard", "guard", now)])
    return {one.measure: one.failed for one in results}


@pytest.mark.parametrize(("before", "now", "failed"), [(5, 40, True), (40, 5, False), (5, 9, False), (5, 5, False)])
def test_only_a_significant_worsening_fails(before, now, failed):
    old, new = ({"asr": wilson(hits, 100), "accuracy": wilson(100 - hits, 100)} for hits in (before, now))
    assert worse(old, new) == {"asr": failed, "accuracy": failed}


def test_other_figures_are_compared_by_their_intervals():
    old, new = ({"gold_kept": Estimate(v, v - 0.03, v + 0.03, 50)} for v in (0.95, 0.8))
    assert worse(old, new) == {"gold_kept": True}
    assert worse(new, old) == {"gold_kept": False}
    without = ({"clean_kept": Estimate(value, nan, nan, 9)} for value in (0.9, 0.7))
    assert worse(*without) == {"clean_kept": False}  # without an interval nothing is known
    with pytest.raises(InputError, match="no cell in common"):
        worse({}, old)


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"cells": 1}', '{"cells": [{"id": "a"}]}', '{"cells": [{"id": "a", "figures": {"x": 1}}]}', "[" * 9999],
)
def test_an_earlier_run_that_is_none_is_said_in_a_sentence(tmp_path, content):
    path = tmp_path / "last.json"
    path.write_text(content)
    with pytest.raises(InputError, match="give "):
        read_gate(f"worse({path})", MEASURES)


HOSTILE = "]]></failure><x> & \x00 \x1b[31m \ud800 \uffff <script>alert(1)</script>"
FINDINGS = [
    GateResult("asr > 5%", "asr", f"guard {HOSTILE}", True, f"asr is 9 % {HOSTILE}"),
    GateResult("asr > 50%", "asr", "guard", False, "asr is 9 %"),
]


def test_junit_says_which_gates_failed_whatever_names_hold():
    root = ElementTree.fromstring(as_junit(FINDINGS, [f"one failed {HOSTILE}"]))  # noqa: S314  our own
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suite][:2] == ["asr > 5%", "asr > 50%"]
    assert "asr is 9 %" in suite[0][0].get("message", "")
    assert [len(case) for case in suite] == [1, 0, 1]


def test_sarif_has_a_result_for_everything_that_failed():
    alerts = gate_alerts(FINDINGS, ["one question failed"])
    alerts.append(Alert("poisoned-answer", "warning", f"became {HOSTILE}", "q1"))
    (run,) = json.loads(alerts_log(alerts, "my folder/red team.yaml"))["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("gate", "error"),
        ("incomplete", "warning"),
        ("poisoned-answer", "warning"),
    ]
    assert set(rules["poisoned-answer"]["properties"]["tags"]) == {
        "security",
        "OWASP-LLM-2026:LLM05",
        "OWASP-LLM-2026:LLM09",
        "MITRE-ATLAS:AML.T0070",
    }
    for result in run["results"]:
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20folder/red%20team.yaml"
        assert len(result["partialFingerprints"]["unpoison/v1"]) == 16
        result["message"]["text"].encode()
