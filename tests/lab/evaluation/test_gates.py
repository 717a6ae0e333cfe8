"""Gates: what they read, where they apply, and when they fail."""

from __future__ import annotations

from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.errors import InputError, OptionError, UnknownNameError, UnpoisonError
from unpoison_lab.evaluation.gates import Gate, GateResult, MeasuredCell, check_gates
from unpoison_lab.evaluation.measures import MEASURES


def cell(name="guard", asr=0.04, high=0.12, **more) -> MeasuredCell:
    figures = {"asr": Estimate(asr, 0.01, high, 100), "accuracy": Estimate(0.9, 0.8, 0.95, 100)}
    figures["screening_p95"] = Estimate(0.2, nan, nan, 100)
    return MeasuredCell(name, figures, **more)


def check(gate: str, *cells: MeasuredCell) -> list[GateResult]:
    return check_gates([Gate.of(gate, MEASURES)], cells)


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
    ("gate", "estimate", "hint"),
    [
        ("upper(asr) > 15%", wilson(0, 10), "no result of 10 questions can pass, it takes 22 at least"),
        ("lower(accuracy) < 90%", wilson(20, 20), "no result of 20 questions can pass, it takes 35 at least"),
        ("upper(asr) > 15%", wilson(9, 30), ""),
        ("upper(asr) > 0%", wilson(0, 10), ""),
        ("asr >= 0%", wilson(0, 10), ""),
    ],
)
def test_a_gate_that_no_result_can_pass_says_how_many_questions_it_takes(gate, estimate, hint):
    (result,) = check(gate, MeasuredCell("guard", {"asr": estimate, "accuracy": estimate}))
    assert result.failed
    assert not hint or result.message.endswith(f"; {hint}")
    assert ("can pass" in result.message) is bool(hint)


@pytest.mark.parametrize(
    ("gate", "kind", "message"),
    [
        ("asr", OptionError, "is no gate"),
        ("asr == 5%", OptionError, "is no gate"),
        ("asf > 5%", UnknownNameError, "did you mean 'asr'"),
        ("asr > 5", OptionError, "write 5% or 0.05"),
        ("seconds_p95 > 5%", OptionError, "measured in seconds"),
        ("upper(lower(asr)) > 5%", OptionError, "'lower' cannot stand there"),
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


def test_where_a_gate_looks():
    cells = [
        cell("vanilla", asr=1.0, baseline=True),
        cell("guard", asr=0.2),
        cell("guard, clean", asr=nan, clean=True),
    ]
    assert [one.message.partition(":")[0] for one in check("asr > 5%", *cells)] == [
        "guard"
    ]  # the baseline is not gated, clean has no ASR
    assert [one.message.partition(":")[0] for one in check("accuracy < 1%", *cells)] == ["guard", "guard, clean"]
    assert [one.message.partition(":")[0] for one in check("clean(accuracy) < 1%", *cells)] == ["guard, clean"]
    assert [one.message.partition(":")[0] for one in check("asr > 5%", cells[0])] == ["vanilla"]
    with pytest.raises(InputError, match="applies to nothing"):
        check("recall < 5%", cell())
    with pytest.raises(InputError, match="applies to nothing"):
        check("upper(screening_p95) > 5", cell())
