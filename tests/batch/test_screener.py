from __future__ import annotations

import copy
import pickle  # noqa: TID251  what engines do to a screener

import pytest

from batch.rows import GOOD, ODD
from unpoison.batch import BatchScreener
from unpoison.defenses.base import Defense
from unpoison.errors import ModelError, OptionError


def test_failures_are_rows_and_the_input_is_not_written_to():
    before = copy.deepcopy(ODD)
    rows_out = BatchScreener("grada")(ODD)
    assert before == ODD
    assert [("error" in row, "screening" in row) for row in rows_out] == [
        (False, True),
        (False, True),
        (True, False),
        (True, False),
        (True, False),
        (False, True),
        (True, False),
        (False, True),
    ]
    assert rows_out[3]["error"].startswith("passages[1] has no text")
    assert rows_out[7]["screening"]["defense"] == "grada"
    for row, given in zip(rows_out, ODD, strict=True):
        assert {name: row[name] for name in given if name not in ("screening", "error")} == {
            name: value for name, value in given.items() if name not in ("screening", "error")
        }


def test_it_travels_as_strings_and_numbers():
    screener = BatchScreener("grada", generator="extractive")
    first = screener([GOOD])
    parcel = pickle.dumps(screener)
    assert len(parcel) < 500
    assert b"Grada" not in parcel
    other = pickle.loads(parcel)  # noqa: S301
    assert other == screener
    assert other([GOOD]) == first


@pytest.mark.parametrize(
    ("screener", "says"),
    [
        (lambda: BatchScreener("radar"), "radar needs a generator"),
        (lambda: BatchScreener("vanilla", encoder="lexical"), "takes no --encoder"),
        (lambda: BatchScreener("radar:beliefs=memory", generator="extractive"), "need the order of time"),
        (lambda: BatchScreener(learn=True), "--learn writes into the history"),
    ],
)
def test_what_no_row_is_to_blame_for_is_raised(screener, says):
    with pytest.raises(OptionError, match=says):
        screener()([GOOD])


class TestModelsThatFail:
    def test_a_model_error_is_transient_and_a_bad_row_is_not(self, monkeypatch: pytest.MonkeyPatch):
        def fail(*_: object) -> None:
            raise ModelError("down for good")

        monkeypatch.setattr(Defense, "screen", fail)
        screener = BatchScreener("vanilla", generator="extractive")
        outcome = screener.outcome(GOOD)
        assert (outcome.error, outcome.transient) == ("down for good", True)
        assert outcome.results == {"error": "down for good"}
        assert not screener.outcome({"query": 7, "passages": []}).transient

    def test_a_bug_of_a_defense_costs_one_row(self, monkeypatch: pytest.MonkeyPatch):
        def fail(*_: object) -> None:
            raise ZeroDivisionError("x" * 10_000)

        monkeypatch.setattr(Defense, "screen", fail)
        outcome = BatchScreener("vanilla").outcome(GOOD)
        assert outcome.transient
        assert outcome.error is not None
        assert outcome.error.startswith("ZeroDivisionError: xxx")
        assert len(outcome.error) < 550


def test_workers_share_the_bound_on_model_calls():
    screener = BatchScreener(in_flight=9)
    assert [screener.shared_by(workers).in_flight for workers in (1, 2, 4, 100)] == [9, 4, 2, 1]
