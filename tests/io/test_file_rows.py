"""CSV, gzip and JSON lists as rows, and files of another kind, which are named once."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison.io import files
from unpoison.io.file_rows import (
    CHUNK,
    CONTAINER,
    KEY,
    TEXT,
    count_values,
    csv_rows,
    json_line,
    looks_like_csv,
    read_line,
)
from unpoison.io.files import CsvSource, JsonLinesSource, JsonSource, open_source
from unpoison.io.rows import Row
from unpoison_lab.evaluation.datasets import load, load_passages


def rows(text: str | bytes) -> list[tuple[int, dict[str, object], str | None]]:
    data = text.encode() if isinstance(text, str) else text
    source = CsvSource(io.BytesIO(data), "a.csv", len(data))
    return [(record.number, dict(record.fields), record.error) for record in source]


def test_cells_become_the_values_of_a_row():
    text = (
        "\ufeffId,Question,correct_answers,incorrect_answer,passage_2,passage 1,mine\r\n"
        '7,"Where, and why?",Paris | the capital,"[""Lyon""]",second,"first ""one""\nin two lines",\r\n'
    )
    ((number, fields, error),) = rows(text)
    assert (number, error) == (2, None)
    assert fields == {
        "id": "7",
        "question": "Where, and why?",
        "correct_answers": ["Paris", "the capital"],
        "incorrect_answer": ["Lyon"],
        "passages": ['first "one"\nin two lines', "second"],
    }
    assert [p.text for p in Row.of(fields).passages] == fields["passages"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_that_of_the_heading(delimiter: str):
    assert rows(f"question{delimiter}answer\na{delimiter}b\n")[0][1] == {"question": "a", "answer": ["b"]}


def test_passages_as_json_in_a_cell_keep_their_labels():
    passages = [{"text": "a", "label": "poison"}, "b"]
    stream = io.StringIO()
    csv.writer(stream).writerows([["question", "passages"], ["q", json.dumps(passages)], ["r", "only one"]])
    assert [fields["passages"] for _, fields, _ in rows(stream.getvalue())] == [passages, ["only one"]]


def test_a_bad_row_is_one_row():
    written = rows(b'question,passages\na,b,"c"\n\nd,[1\ne,\xff\nf,g\n')
    assert [number for number, _, _ in written] == [2, 4, 5, 6]
    assert "3 cells and the heading 2" in (written[0][2] or "")
    assert "no JSON list" in (written[1][2] or "")
    assert "no UTF-8 in the column 'passages'" in (written[2][2] or "")
    assert written[3][1:] == ({"question": "f", "passages": ["g"]}, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b\n1,2\n", "names no column that we know"),
        ("question,question\n1,2\n", "twice"),
        ('question,answer\n"a,b\nc,d\n', "cannot be read as CSV|never closed"),
        ("question\na\0b\n", "zero byte"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_once(text: str, message: str):
    with pytest.raises(InputError, match=message):
        rows(text)


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("unpoison.io.files.MAX_LINE", 1000)
    with pytest.raises(InputError, match="never closed"):
        rows('question\n"' + "x\n" * 5000)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=30)


@given(st.lists(st.tuples(texts.filter(lambda t: bool(t.strip())), texts, texts), max_size=5))
def test_what_a_spreadsheet_writes_is_what_is_read(table: list[tuple[str, str, str]]):
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("question", "mine", "passage_1"), *table])
    written = rows(stream.getvalue())
    assert [fields.get("question") for _, fields, _ in written] == [question for question, _, _ in table]
    assert [fields.get("mine", "") for _, fields, _ in written] == [m if m.strip() else "" for _, m, _ in table]


@given(st.binary(max_size=300))
def test_any_bytes_are_rows_or_an_input_error(data: bytes):
    for kind in (CsvSource, JsonSource, JsonLinesSource):
        try:
            for record in kind(io.BytesIO(data), "hostile", None):
                assert (record.error is None) or not record.fields
        except InputError:
            pass


def lines(*texts: bytes) -> list[object]:
    data = b"\n".join(texts)
    return [record.error for record in JsonLinesSource(io.BytesIO(data), "rows.jsonl", None)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((b"question,answer", b"a,b"), "looks like CSV"),
        ((b"", b"id;Question", b"a;b"), "looks like CSV"),
        ((b"[", b'{"question": "a"}', b"]"), "looks like one JSON list"),
        ((b"\x1f\x8b\x08",), "looks like gzip"),
        ((b"PK\x03\x04",), "looks like a spreadsheet"),
        ((b"PAR1",), "looks like Parquet"),
        (("{".encode("utf-16"),), "looks like UTF-16"),
    ],
)
def test_a_file_of_another_kind_is_named_once(data: tuple[bytes, ...], message: str):
    with pytest.raises(InputError, match=message):
        lines(*data, *[b"a,b"] * 10_000)


def test_one_bad_row_in_front_is_no_other_kind():
    assert [bool(error) for error in lines(b"", b"oh, no", b"", b'{"question": "a"}', b"again, no")] == [1, 0, 1]
    assert [bool(error) for error in lines(b"oh, no")] == [1]
    assert [bool(error) for error in lines(b"oh", b"no, no", b"no")] == [1, 1, 1]


def test_gzip_is_unpacked_as_it_is_read(tmp_path: Path):
    for name, text in (("a.jsonl.gz", '{"question": "a"}\n{"question": "b"}\n'), ("a.csv.gz", "question\na\nb\n")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()))
        with open_source(str(path)) as source:
            rows_found = list(source)
        assert [record.fields["question"] for record in rows_found] == ["a", "b"]
        assert rows_found[-1].position == path.stat().st_size == source.size


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-12], lambda data: data[:15] + b"\xff\xff" + data[17:], lambda data: b"no"]
)
def test_damaged_gzip_is_a_sentence(tmp_path: Path, damage):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(damage(gzip.compress(b'{"question": "a"}\n' * 50)))
    with open_source(str(path)) as source, pytest.raises(InputError, match="no whole gzip file"):
        list(source)


@pytest.mark.needs("pyarrow")
def test_data_sets_and_corpora_are_read_from_every_kind(tmp_path: Path):
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    fields = {"question": "Where?", "correct_answers": ["Paris"], "incorrect_answers": ["Lyon"]}
    (tmp_path / "a.json").write_text(json.dumps([fields]))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(fields).encode()))
    (tmp_path / "a.tsv").write_text("question\tcorrect_answers\tincorrect_answers\nWhere?\tParis\tLyon\n")
    parquet.write_table(arrow.Table.from_pylist([fields]), tmp_path / "a.parquet")
    for name, line in (("a.json", 1), ("a.jsonl.gz", 1), ("a.tsv", 2), ("a.parquet", 1)):
        (example,) = load(tmp_path / name)
        assert (example.question, example.correct_answers, example.incorrect_answers) == (
            "Where?",
            ("Paris",),
            ("Lyon",),
        )
        assert example.id == f"a-{line}"
    (tmp_path / "corpus.csv").write_text("id,title,text\n1,T,body\n")
    (passage,) = load_passages(tmp_path / "corpus.csv")
    assert (passage.id, passage.title, passage.text) == ("1", "T", "body")


def test_what_is_huge_when_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("unpoison_lab.evaluation.datasets.MAX_BYTES", 10_000)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"question": "a"}\n' * 100_000))
    with pytest.raises(InputError, match="holds more than 10,000 bytes"):
        load(path)


VALUES = st.recursive(
    st.none() | st.integers() | st.text('a,"\\[{:}]\u00e9'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('k",\\:{'), inner),
)


def counted(value: Any) -> int:
    """The count that is meant, of a value that was parsed."""
    if isinstance(value, (list, dict)):
        keys = KEY * len(value) if isinstance(value, dict) else 0
        inner = value.values() if isinstance(value, dict) else value
        return CONTAINER + keys + sum(map(counted, inner)) + (not value)
    return TEXT if isinstance(value, str) else 1


@settings(max_examples=40)
@given(VALUES, st.integers(0, 9))
def test_values_are_counted_and_what_stands_in_strings_is_not(value: Any, before: int) -> None:
    written = json.dumps(["x" * (CHUNK - before), value], ensure_ascii=False).encode()
    containers = json.dumps(value).count("[") + json.dumps(value).count("{")
    assert abs(count_values(written) - counted(["x", value])) <= containers + 1


def test_what_unpacks_to_too_much_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED", 2**20)
    row = b'{"question": "' + b"a " * 50_000 + b'"}\n'
    for name, text in (
        ("a.jsonl.gz", row * 40),
        ("a.csv.gz", b"question\n" + (b"a " * 50_000 + b"\n") * 40),
        ("a.json.gz", b" " * 2**22),
    ):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text))
        with (
            open_source(str(path)) as source,
            pytest.raises(InputError, match="more than 1 MiB and 100 times its size"),
        ):
            assert all(record.error is None for record in source)


def test_a_list_of_too_many_values_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_JSON_VALUES", 1_000)
    whole = b"[" + b"[]," * 100 + b"{}]"
    with pytest.raises(InputError, match=r"about 1,7\d\d values"):
        list(JsonSource(io.BytesIO(whole), "a.json", None))


@pytest.mark.parametrize("heading", [",".join(f"c{i}" for i in range(20_000)), "question," + "n" * 2_000])
def test_a_heading_that_every_row_repeats_is_bounded(heading: str) -> None:
    with pytest.raises(InputError, match="at most 10,000 columns in 1,000 characters each"):
        rows(heading + "\na,b\n")


@pytest.mark.needs("pyarrow")
def test_a_parquet_file_is_read_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    from pyarrow import parquet

    monkeypatch.setattr(files, "MAX_UNPACKED", 2**20)
    words = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 5_000), pyarrow.array(["word " * 20_000]))
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": words}), path, compression="zstd")
    found = list[int]()
    with (
        open_source(str(path)) as source,
        pytest.raises(InputError, match="past row 0: it unpacks to more than 1 MiB"),
    ):
        found.extend(record.number for record in source)
    assert not found


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"1", 1),
        (b"9" * 299, 1),
        (b"9" * 300, 51),  # the time to read it grows with its square
        (b"9" * 599, 51),
        (b"9" * 600, 101),
        (b"[]", 17),
        (b"[1,2]", 18),
        (b'{"a":1}', 27),
        (b'"a"', 2),
        (b'"a,b:[{"', 2),
        (b'"\\\\","\\""', 4),
    ],
)
def test_a_text_counts_two_a_key_ten_and_what_holds_others_sixteen(text: bytes, count: int) -> None:
    assert count_values(text) == count


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        (b"question,answer", True),
        (b'"Question";"mine"', True),
        (b"passage_12\tmine", True),
        (b"passage 1, x", True),
        (b"question", False),  # one column is a text
        (b"oh, no", False),
        (b"passage_12345,mine", False),
        (b"page_content,x", True),
        (b"x" * 10_001 + b",question", False),
    ],
)
def test_a_heading_is_known_by_a_column(line: bytes, is_one: bool) -> None:
    assert looks_like_csv(line) is is_one


def test_a_row_may_be_as_long_as_is_said_and_no_byte_longer() -> None:
    heading, row = b"question\n", b"x" * 19 + b"\n"
    assert list(csv_rows(io.BytesIO(heading + row * 2), "a.csv", 20))[2] == ({"question": "x" * 19}, None)
    with pytest.raises(InputError, match="line 2 has over 0 MiB"):
        list(csv_rows(io.BytesIO(heading + b"x" + row), "a.csv", 20))
    halves = b'"' + b"x" * 8 + b"\n" + b"y" * 8 + b'"\n'
    assert len(halves) == 20
    assert len(list(csv_rows(io.BytesIO(heading + halves + halves), "a.csv", 20))) == 3
    with pytest.raises(InputError, match="line 3 has over"):
        list(csv_rows(io.BytesIO(heading + b'"x' + halves[1:]), "a.csv", 20))


def test_what_a_spreadsheet_adds_is_no_column_and_a_quote_against_formulas_no_text() -> None:
    written = rows("\nquestion,mine,,\na,'=1+1,,\n,,,\nb,'tis,,x\n'-c,'\tx, ,\n")
    assert written[0] == (3, {"question": "a", "mine": "=1+1"}, None)
    assert written[1][0] == 5
    assert "4 cells and the heading 2" in (written[1][2] or "")
    assert written[2] == (6, {"question": "-c", "mine": "\tx"}, None)
    assert rows("question\n'tis\n")[0][1] == {"question": "'tis"}


def test_numbered_passages_stand_behind_the_list_and_in_their_order() -> None:
    ((_, fields, _),) = rows('question,passage_10,passages,passage_9\nq,c,"[""a""]",b\n')
    assert fields == {"question": "q", "passages": ["a", "b", "c"]}
    assert rows('question,query_embedding\nq,"[1, 2]"\n')[0][1]["query_embedding"] == [1, 2]


def test_a_heading_may_have_as_many_columns_and_characters_as_the_page_tells() -> None:
    widest = ["question", *(f"c{i}" for i in range(9_998)), "n" * 1_000]
    assert rows(",".join(widest) + "\na\n")[0][1] == {"question": "a"}
    for heading in ([*widest, "one more"], [*widest[:-1], "n" * 1_001]):
        with pytest.raises(InputError, match="at most 10,000 columns in 1,000 characters"):
            rows(",".join(heading) + "\na\n")


def test_a_line_that_is_too_long_or_blank() -> None:
    assert read_line(None) == ({}, "the line is longer than 256 MiB")
    assert read_line(b"\xef\xbb\xbf \n") is None


def test_a_record_is_one_line_in_its_own_letters_or_in_ascii() -> None:
    record = {"a": "\u7d05 \u2028", "b": [1, None]}
    assert json_line(record).decode() == '{"a": "\u7d05 \u2028", "b": [1, null]}\n'
    assert json_line(record, plain=True) == b'{"a": "\\u7d05 \\u2028", "b": [1, null]}\n'
    assert json_line({"a": "\ud800"}) == b'{"a": "\\ud800"}\n'
    for plain in (False, True):
        with pytest.raises(ValueError, match="JSON"):
            json_line({"a": float("nan")}, plain=plain)


def test_an_export_may_name_a_column_twice_or_not_at_all() -> None:
    table = b"Key,Comment,Comment,\nA-1,first,second,third\n\nA-2,,only,\n"
    read = list(csv_rows(io.BytesIO(table), "a.csv", 1_000, any_columns=True))
    first = {"Key": "A-1", "Comment": "first", "Comment column 3": "second", "column 4": "third"}
    assert read == [None, (first, None), None, ({"Key": "A-2", "Comment column 3": "only"}, None)]
    with pytest.raises(InputError, match="has the column 'b' twice"):
        list(csv_rows(io.BytesIO(b"question,b,b\n1,2,3\n"), "a.csv", 1_000))
    with pytest.raises(InputError, match="names no column that we know"):
        list(csv_rows(io.BytesIO(b"a,b\n1,2\n"), "a.csv", 1_000))
    assert list(csv_rows(io.BytesIO(b"a,b\n1,2\n"), "a.csv", 1_000, any_columns=True))[1] == (
        {"a": "1", "b": "2"},
        None,
    )
