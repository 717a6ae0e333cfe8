from __future__ import annotations

import copy
import io
import json
import pickle  # noqa: TID251  what engines do to a screener

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.rows import GOOD, ODD, RAW
from needs import need
from unpoison.batch import BatchScreener
from unpoison.batch import screener as parts_module
from unpoison.batch.screener import cut
from unpoison.defenses.base import Defense
from unpoison.errors import ModelError, OptionError
from unpoison.io.files import JsonLinesSource, ParquetSource


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
    for row, odd in zip(rows_out, ODD, strict=True):
        assert {name: row[name] for name in odd if name not in ("screening", "error")} == {
            name: value for name, value in odd.items() if name not in ("screening", "error")
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


SURROGATE = b'{"a": "\\ud800", "b": 1.5e300}\n'
LINES = st.lists(
    st.one_of(
        st.sampled_from([*RAW, b"  \r\n", b"\xef\xbb\xbf\n", b'\xef\xbb\xbf{"a": 1}\n', SURROGATE]),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(
            lambda row: json.dumps(row).encode() + b"\n"
        ),
    ),
    max_size=30,
)


def source(data: bytes) -> JsonLinesSource:
    return JsonLinesSource(io.BytesIO(data), "", None)


def rows_of(records):
    return [(record.number, dict(record.fields), record.error) for record in records]


@given(LINES, st.integers(1, 7), st.none() | st.integers(1, 12), st.booleans())
def test_parts_hold_what_the_file_holds(lines: list[bytes], most: int, limit: int | None, torn: bool):
    data = b"".join([b'{"query": "a row, so that it is no other kind of file"}\n', *lines])
    data = data[:-1] if torn else data
    parts = list(cut(source(data), most=most, limit=limit))
    assert [one for part in parts for one in rows_of(part.rows())] == rows_of(source(data))[:limit]
    assert all(len(part.lines) == most for part in parts[:-1])
    assert [part.position for part in parts] == sorted(part.position for part in parts)


def test_large_rows_end_a_part(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts_module, "MAX_BYTES", 60)
    data = b"".join([b'{"a": "%s"}\n' % (b"x" * n) for n in (10, 10, 90, 10)])
    assert [len(part.lines) for part in cut(source(data))] == [2, 1, 1]


def test_the_key_says_rows_place_and_purpose():
    def keys(data: bytes, purpose: str = "p") -> list[str]:
        return [part.key(purpose) for part in cut(source(data), most=1)]

    one, two = keys(b'{"a": 1}\n{"a": 1}\n')
    assert one != two  # errors name the line
    assert keys(b'{"a": 1}\n{"a": 2}\n')[0] == one
    assert keys(b'{"a": 1}\n', "q") != [one]


@pytest.mark.parametrize(("rows", "most", "limit"), [(0, 3, None), (70, 64, None), (70, 9, 40)])
def test_parts_of_a_table_hold_its_rows(tmp_path, rows: int, most: int, limit: int | None):
    need("pyarrow")
    import pyarrow
    from pyarrow import parquet

    values = {"n": list(range(rows)), "text": [None if n % 3 else f"é{n}" for n in range(rows)]}
    parquet.write_table(pyarrow.table(values), tmp_path / "t.parquet", row_group_size=9)
    with ParquetSource(str(tmp_path / "t.parquet")) as table:
        parts = list(cut(table, most=most, limit=limit))
    with ParquetSource(str(tmp_path / "t.parquet")) as table:
        assert [one for part in parts for one in rows_of(part.rows())] == rows_of(table)[:limit]
