from __future__ import annotations

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison.io.output import Writer
from unpoison.io.rows import Row, load_sample, moment_of, time_order


@pytest.mark.parametrize("name", ["query", "question"])
def test_either_name_of_the_question(name: str):
    row = Row.of({name: "who?", "passages": ["a", {"content": "b"}, {"page_content": "c", "score": 2}]})
    assert row.query.text == "who?"
    assert [p.text for p in row.passages] == ["a", "b", "c"]


def test_query_goes_before_question():
    assert Row.of({"question": "old", "query": "new", "passages": []}).query.text == "new"


def test_a_null_query_as_parquet_has_it_falls_back():
    assert Row.of({"query": None, "question": "who?", "passages": []}).query.text == "who?"


def test_embeddings_and_raw_fields_are_kept():
    raw = {"query": "q", "query_embedding": [3, 4], "passages": [{"text": "a", "embedding": [1, 0]}], "mine": {"x": 1}}
    row = Row.of(raw)
    assert row.raw is raw
    assert row.query.embedding is not None
    np.testing.assert_array_equal(row.query.embedding, np.float32([3, 4]))
    assert row.passages[0].original is raw["passages"][0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["query"], "a row must be an object"),
        ({"passages": []}, "'query' or 'question'"),
        ({"query": "q"}, "'passages'"),
        ({"query": 7, "passages": []}, "query must be a string, got 7"),
        ({"question": ["q"], "passages": []}, r"question must be a string"),
        ({"query": "q", "passages": "text"}, "passages must be a list"),
        ({"query": "q", "passages": ["a", None]}, r"passages\[1\] has no text"),
        ({"query": "q", "passages": [{"text": 5}]}, r"passages\[0\]\.text must be a string"),
        ({"query": "q", "passages": [], "query_embedding": "x"}, "query_embedding must be one vector"),
        ({"query": "q", "passages": [], "query_embedding": [1.0, float("nan")]}, r"query_embedding\[1\] is nan"),
    ],
)
def test_errors_name_the_field(value: object, message: str):
    with pytest.raises(InputError, match=message):
        Row.of(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["query", "question", "passages", "query_embedding", "x"]), json_values))
def test_any_json_is_a_row_or_an_input_error(value: dict[str, object]):
    try:
        row = Row.of(value)
    except InputError:
        return
    assert isinstance(row.query.text, str)
    assert row.raw is value


def test_the_sample_is_what_the_demo_needs():
    rows = load_sample()
    assert len(rows) >= 12
    for row in rows:
        labels = [passage["label"] for passage in row.raw["passages"]]
        assert labels.count("poison") >= 3
        assert len(labels) - labels.count("poison") >= 8
        assert labels == sorted(labels, key=lambda label: label == "poison"), "poisons stand last"
    assert len({row.query.text for row in rows}) == len(rows)


@pytest.mark.parametrize("terminal", [True, False])
def test_rows_on_a_terminal_hold_nothing_that_it_obeys(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    shown = io.BytesIO()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=shown, isatty=lambda: terminal))
    with Writer(None, "-", to_stdout=True) as writer:
        writer.write({"text": "a\u009b31m\u202eb"})
    assert json.loads(shown.getvalue()) == {"text": "a\u009b31m\u202eb"}
    assert shown.getvalue().isascii() is terminal


@pytest.mark.parametrize(
    "times",
    [
        ["999", "1905", "2024"],
        ["2024-01-09", "2024-01-10", "2024-02-01"],
        ["Tue, 09 Jan 2024 10:00:00 +0000", "2024-01-09T11:30:00+01:00", "2024-01-09T10:31:00"],
        ["step 2", "step 10"],
    ],
)
def test_times_are_in_order(times: list[str]) -> None:
    later_first = times[::-1]
    later_first.sort(key=time_order)
    assert later_first == times


def test_the_time_of_a_row_is_the_first_field_that_has_one() -> None:
    assert moment_of({"year": 1905, "date": "1904/05/01"}) == "1904-05-01"
    assert moment_of({"time": None, "year": 0}) == "0"
    assert moment_of({"text": "1904"}) is None
