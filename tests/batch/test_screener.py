from __future__ import annotations

import copy
import io
import json
import pickle  # noqa: TID251  what engines do to a screener

import pytest

from batch.rows import GOOD, ODD, RAW
from unpoison.batch import BatchScreener
from unpoison.batch.screener import cut
from unpoison.defenses.base import Defense
from unpoison.errors import ModelError, OptionError
from unpoison.io.files import JsonLinesSource


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
        assert screener.output({}, outcome) == {"error": "down for good"}
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


def test_a_part_has_its_lines_in_order_and_each_failure_with_its_number():
    rows = [json.dumps(row).encode() + b"\n" for row in ODD]
    done = [
        BatchScreener("vanilla").screen_part(part)
        for part in cut(JsonLinesSource(io.BytesIO(b"".join([*rows, *RAW[:1]])), "", None), most=4)
    ]
    screened = [json.loads(line) for one in done for line in one.lines.splitlines()]
    wrong = [number for number, row in enumerate(screened, 1) if "error" in row]
    assert [number for one in done for number, _ in one.failures] == wrong
    assert len(wrong) == 5
    assert [one.rows for one in done] == [4, 4, 1]
    assert [one.transient for one in done] == [0, 0, 0]
