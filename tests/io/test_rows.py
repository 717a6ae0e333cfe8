from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison import Sources
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import InputError
from unpoison.io.output import Writer
from unpoison.io.rows import (
    Row,
    answer_fields,
    load_sample,
    moment_of,
    open_stream,
    read_time,
    steps_of,
    time_order,
    with_results,
)  # fmt: skip


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


def test_a_row_may_have_as_many_passages_as_a_request() -> None:
    assert len(Row.of({"query": "q", "passages": ["a"] * 1000}).passages) == 1000
    with pytest.raises(InputError, match="the row has 1,001 passages, more than 1,000"):
        Row.of({"query": "q", "passages": ["a"] * 1001})


@pytest.mark.parametrize("name", ["passages", "contexts", "retrieved_contexts"])
def test_either_name_of_the_passages(name: str) -> None:
    assert [p.text for p in Row.of({"user_input": "q", "passages": None, name: ["a"]}).passages] == ["a"]
    assert Row.of({"query": "q", name: []}).passages == ()


def test_what_is_null_and_what_is_a_document_is_said() -> None:
    with pytest.raises(InputError, match=r"^question is null; give the question's text$"):
        Row.of({"question": None, "passages": []})
    with pytest.raises(InputError, match=r"this is a document: 'unpoison check' and 'scan' read documents$"):
        Row.of({"text": "a"})
    with pytest.raises(InputError, match=r"got the fields \['x'\]$"):
        Row.of({"x": "a"})


def test_the_results_of_an_earlier_run_are_replaced() -> None:
    row = {"query": "q", "screening": 1, "error": "old", "mine": 2}
    assert with_results(row, screening=3) == {"query": "q", "mine": 2, "screening": 3}
    assert with_results(row, error="new") == {"query": "q", "mine": 2, "error": "new"}


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


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (" 2024-01-09T10:00:00 ", datetime(2024, 1, 9, 10)),  # noqa: DTZ001  as it was written
        ("Tue, 09 Jan 2024 10:00:00 +0000", datetime(2024, 1, 9, 10, tzinfo=UTC)),
        ("step 2", None),
        ("", None),
    ],
)
def test_a_time_is_read_as_it_is_written(text: str, time: datetime | None) -> None:
    assert read_time(text) == time


def test_times_compare_by_value_and_zone() -> None:
    assert time_order("2024-01-09T11:00:00+01:00") == time_order("Tue, 09 Jan 2024 10:00:00 +0000")
    assert time_order("0999") == time_order("999") < time_order("1905")
    assert time_order("Step") == time_order("step") != time_order("stop")
    assert time_order("7" * 400) > time_order("8" * 299)


def test_the_years_of_a_row_are_steps_in_their_order() -> None:
    docs = [{"title": "t", "content": "c"}, {"content": "d"}]
    steps = steps_of({"id": 7, "question": "q", "yearly_contexts": {"1905": {"docs": docs}, "999": {"docs": []}}})
    assert [(step["id"], step["time"], step["question"]) for step in steps] == [
        ("7@999", "999", "q"),
        ("7@1905", "1905", "q"),
    ]
    assert steps[1]["passages"] == [{"title": "t", "text": "c"}, {"title": None, "text": "d"}]
    assert steps_of({"query": "q", "timestamp": "1904/05"}) == [
        {"query": "q", "timestamp": "1904/05", "time": "1904-05"}
    ]
    for wrong in ([], {}, {"1905": {}}, {"1905": {"docs": [{}]}}, {"1905": {"docs": 7}}, 7):
        with pytest.raises(InputError, match="yearly_contexts must map years"):
            steps_of({"yearly_contexts": wrong})
    with pytest.raises(InputError, match="time is missing; a row of a stream has one of time, date, year, timestamp"):
        steps_of({"query": "q"})


def test_the_steps_of_one_question_are_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [("a", "1905"), ("b", "1904"), (" A ", "1904"), ("a", "1905"), ("A", "1906"), ("b", None)]
    path.write_text(
        "".join(json.dumps({"question": q, "passages": [], "time": time}) + "\n" for q, time in rows) + "{\n"
    )
    with open_stream(str(path)) as source:
        assert source.size == path.stat().st_size
        found = list(source)
    assert [(record.number, record.error is None) for record in found] == [
        (1, True), (2, True), (3, False), (4, True), (5, True), (6, False), (7, False),
    ]  # fmt: skip
    assert "time '1904' lies before '1905'" in str(found[2].error)
    assert "time is missing" in str(found[5].error)
    assert [record.position for record in found] == sorted(record.position for record in found)


def test_the_timeline_is_built_in_unless_a_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_stream("timeline") as source:
        assert source.name == "timeline"
        assert all(record.error is None for record in source)
    Path("timeline").write_text('{"question": "own", "passages": [], "year": 1}\n')
    with open_stream("timeline") as source:
        assert [record.fields["question"] for record in source] == ["own"]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "who", "contexts": ["Ada.", "Jo."], "answer": "Ada"},
        {"user_input": "who", "retrieved_contexts": ["Ada.", "Jo."]},
    ],
)
def test_rows_with_contexts(row: dict[str, object]):
    read = Row.of(row)
    assert (read.query.text, [passage.text for passage in read.passages]) == ("who", ["Ada.", "Jo."])
    assert Sources().learn([row]).history.rows() == []


def test_a_row_shows_neither_its_texts_twice_nor_differs_by_what_is_beside_them():
    row = Row.of({"query": "who?", "passages": ["a"], "mine": "beside"})
    assert "beside" not in repr(row)
    assert row == Row.of({"query": "who?", "passages": ["a"], "mine": "other"})
    assert row.raw["mine"] == "beside"


def test_an_answered_row_has_its_screening_its_answer_and_who_answered() -> None:
    answer = Vanilla(generator="extractive").answer("Where is the hull?", ["The hull is in Stockholm."])
    found = answer_fields(answer, "extractive")
    assert list(found) == ["screening", "answer", "generator"]
    assert (found["screening"]["kept"], found["answer"]["text"]) == ([0], answer.text)
    assert found["generator"] == "extractive"
