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
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.errors import ModelError, OptionError
from unpoison.io.file_rows import FileRow
from unpoison.io.files import JsonLinesSource, ParquetSource
from unpoison.runtime.driver import Limits


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


@pytest.mark.parametrize(("spare", "lengths"), [(0, [2, 2, 1]), (1, [3, 2])])
def test_a_part_ends_with_the_row_that_reaches_its_size(
    monkeypatch: pytest.MonkeyPatch, spare: int, lengths: list[int]
):
    data = b'{"a": 1}\n' * 5
    (two,) = cut(source(data), limit=2)
    assert two.size == sum(len(line) for line in two.lines)
    monkeypatch.setattr(parts_module, "MAX_BYTES", two.size + spare)
    assert [len(part.lines) for part in cut(source(data))] == lengths


def test_a_row_that_is_nested_too_deeply_is_a_failure_of_its_own():
    deep: dict[str, object] = {}
    for _ in range(200_000):
        deep = {"a": deep}
    rows = [FileRow(1, deep, None, 5), FileRow(2, {"query": "a", "passages": []}, None, 9)]
    (part,) = cut(rows)  # type: ignore[arg-type]
    while deep:  # not by recursion, as the interpreter would take it apart
        deep = deep.pop("a", {})  # type: ignore[assignment]
    done = BatchScreener("grada").screen_part(part)
    assert done.failures == [(1, "no usable JSON: nested too deeply")]
    assert json.loads(done.lines.splitlines()[0]) == {"line": 1, "error": "no usable JSON: nested too deeply"}


def test_only_a_row_without_fields_is_named_by_its_line():
    (part,) = cut(source(json.dumps(GOOD).encode() + b'\nnonsense\n{"query": 1}\n'))
    screened, unread, unusable = map(json.loads, BatchScreener("grada").screen_part(part).lines.splitlines())
    assert unread.pop("error")
    assert unread == {"line": 2}
    assert "line" not in screened | unusable
    assert unusable["query"] == 1


def test_a_result_that_is_no_json_is_a_failure_of_its_row(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Screening, "summary", lambda self: {"scores": {1, 2}})
    (part,) = cut(source(json.dumps(GOOD).encode() + b"\n"))
    done = BatchScreener("grada").screen_part(part)
    (written,) = map(json.loads, done.lines.splitlines())
    assert written == {"line": 1, "error": done.failures[0][1]}
    assert done.failures[0][1].startswith("the result cannot be written as JSON: ")


def test_the_purpose_says_everything_that_decides_an_output(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("known: [a.example]\n")
    options = [
        {}, {"encoder": "lexical"}, {"generator": "lexical"}, {"nli": "lexical"},
        {"sources": str(policy)}, {"sources": str(policy), "learn": True},
    ]  # fmt: skip
    purposes = [BatchScreener("guard", **given).purpose for given in options]  # type: ignore[arg-type]
    policy.write_text("known: [b.example]\n")
    purposes.append(BatchScreener("guard", sources=str(policy)).purpose)
    assert len({*purposes}) == len(options) + 1
    assert BatchScreener("guard", in_flight=1, retries=9).purpose == purposes[0]


def test_a_policy_reaches_the_defense(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("blocked: ['**']\n")
    row = {"query": "Where is the hull?", "passages": [{"text": "The hull is in Stockholm.", "source": "a.example"}]}
    plain, blocked = (BatchScreener("guard", sources=given)([row])[0] for given in (None, str(policy)))
    assert [one["screening"]["kept"] for one in (plain, blocked)] == [[0], []]


def test_limits_of_calls_reach_the_defense():
    screener = BatchScreener("grada", in_flight=3, deadline=7.0, retries=1)
    assert screener.loaded.limits == Limits(in_flight=3, deadline=7.0, retries=1)
