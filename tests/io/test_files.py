from __future__ import annotations

import gzip
import io
import json
from datetime import date, time
from decimal import Decimal
from pathlib import Path

import pytest

from unpoison.errors import InputError, OptionError
from unpoison.io import files
from unpoison.io.files import CsvSource, JsonLinesSource, JsonSource, ParquetSource, open_source, source_of
from unpoison.io.output import Writer


def read(data: bytes) -> list[tuple[int, object, str | None]]:
    records = JsonLinesSource(io.BytesIO(data), "here", None)
    return [(record.number, dict(record.fields), record.error) for record in records]


def test_blank_lines_and_other_line_ends_and_a_byte_order_mark():
    data = b'\xef\xbb\xbf{"a": 1}\r\n\n   \n{"a": 2}'
    assert read(data) == [(1, {"a": 1}, None), (4, {"a": 2}, None)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": \xff}', "no UTF-8 at byte 7"),
        (b'{"a": ', "no usable JSON"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1e999}', "larger than any float"),
        (b"[1, 2]", "a row must be a JSON object"),
        (b"7" * 5000, "no usable JSON"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_a_bad_line_is_a_record_and_does_not_stop_the_rest(line: bytes, message: str):
    first, second = read(line + b'\n{"a": 2}\n')
    assert first[:2] == (1, {})
    assert message in (first[2] or "")
    assert second == (2, {"a": 2}, None)


def test_a_line_without_end_is_refused_unread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "MAX_LINE", 100)
    data = b'{"a": "' + b"x" * 5_000_000 + b'"}\n{"a": 2}\n'
    source = JsonLinesSource(io.BytesIO(data), "here", len(data))
    first, second = source
    assert "longer than" in (first.error or "")
    assert (second.number, dict(second.fields), second.position) == (2, {"a": 2}, len(data))


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_may_be_as_long_as_is_said_and_no_byte_longer(monkeypatch: pytest.MonkeyPatch, end: bytes):
    monkeypatch.setattr(files, "MAX_LINE", 20)
    line = b'{"a": "' + b"x" * (11 - len(end)) + b'"}' + end
    assert [error for _, _, error in read(line)] == [None]
    assert len(read(line[:8] + b"x" + line[8:] + b'{"a": 2}' * bool(end))) == 1 + bool(end)
    assert "longer than" in (read(line[:8] + b"x" + line[8:])[0][2] or "")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", CsvSource),
        ("a.TSV", CsvSource),
        ("a.csv.gz", CsvSource),
        ("a.json", JsonSource),
        ("a.JSON.GZ", JsonSource),
        ("a.jsonl", JsonLinesSource),
        ("a", JsonLinesSource),
        ("a.parquet.gz", JsonLinesSource),
    ],
)
def test_the_suffix_says_what_a_file_holds(name: str, kind: type):
    assert type(source_of(io.BytesIO(), name, 0)) is kind


@pytest.mark.parametrize(("field", "most"), [("MAX_JSON", 18), ("MAX_JSON_VALUES", 70)])
def test_a_json_file_is_read_to_its_bound(monkeypatch: pytest.MonkeyPatch, field: str, most: int):
    whole = b'{"q": [1],"r": {}}'
    monkeypatch.setattr(files, field, most)
    assert len(list(JsonSource(io.BytesIO(whole), "a.json", None))) == 2
    monkeypatch.setattr(files, field, most - 1)
    with pytest.raises(InputError, match="save it as JSON Lines"):
        list(JsonSource(io.BytesIO(whole), "a.json", None))


def test_rows_by_id_are_rows_with_it(tmp_path: Path):
    path = tmp_path / "rows.json"
    path.write_text('{"a": {"question": "x"}, "b": {"id": "own", "question": "y"}, "c": {"text": 1}}')
    with open_source(str(path)) as source:
        assert [record.fields["id"] for record in source] == ["a", "own", "c"]
    for name in ("query", "question", "user_input", "passages", "contexts", "text"):
        path.write_text(json.dumps({name: "x", "other": {}}))
        with open_source(str(path)) as source:
            assert [dict(record.fields) for record in source] == [{name: "x", "other": {}}]
    path.write_text("7")
    with open_source(str(path)) as source, pytest.raises(InputError, match="must hold a list or an object"):
        list(source)


def test_how_far_a_file_may_unpack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    row = b'{"a": "' + b"x" * 10_000 + b'"}\n'
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(row * 5))
    size = path.stat().st_size
    for name, most in (("MAX_UNPACKED", 5 * len(row)), ("MAX_RATIO", -(-5 * len(row) // size))):
        monkeypatch.setattr(files, "MAX_UNPACKED", 0)
        monkeypatch.setattr(files, "MAX_RATIO", 0)
        monkeypatch.setattr(files, name, most)
        with open_source(str(path)) as source:
            assert len(list(source)) == 5
        monkeypatch.setattr(files, name, most - 1)
        with open_source(str(path)) as source, pytest.raises(InputError, match="unpacks to more than"):
            list(source)


def test_the_bounds_of_files_are_those_that_the_page_tells():
    page = (Path(__file__).resolve().parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
    told = f"{files.MAX_JSON // 2**30} GiB and {files.MAX_JSON_VALUES:,} values; {files.MAX_LINE // 2**20} MiB"
    assert f"| JSON files, lines of JSON Lines | {told} |" in page
    assert f"| packed files (`.gz`) | {files.MAX_UNPACKED // 2**20} MiB, or {files.MAX_RATIO} times the file |" in page


def test_size_and_position_for_the_progress_bar(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 22}\n')
    with open_source(str(path)) as source:
        assert source.size == 19
        assert [record.position for record in source] == [9, 19]


@pytest.mark.needs("pyarrow")
def test_parquet_gives_the_rows_as_json_would(tmp_path: Path):
    from datetime import UTC, datetime

    import pyarrow
    from pyarrow import parquet

    rows = [
        {
            "query": "q",
            "passages": [{"text": "a", "score": float("nan")}],
            "at": datetime(2024, 1, 2, tzinfo=UTC),
            "raw": b"\xff",
        },
        {"query": "é", "passages": [], "at": None, "raw": None},
    ]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    with open_source(str(path)) as source:
        assert source.size == 2
        first, second = source
    assert first.fields == {
        "query": "q",
        "passages": [{"text": "a", "score": None}],
        "at": "2024-01-02T00:00:00+00:00",
        "raw": "ff",
    }
    assert second.fields["query"] == "é"
    assert (second.number, second.position) == (2, 2)


@pytest.mark.needs("pyarrow")
def test_many_rows_of_parquet_come_whole_in_their_order(tmp_path: Path):
    """Rows come in batches, which are cut where some of them are large."""
    import pyarrow
    from pyarrow import parquet

    rows = [{"text": "x" * (3_000_000 if 40 <= i < 44 else 10), "i": i, "deep": [{"a": {"b": i}}]} for i in range(80)]
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, compression=None, row_group_size=30)
    with open_source(str(path)) as source:
        found = list(source)
    assert [(row.number, dict(row.fields)) for row in found] == list(enumerate(rows, 1))
    with open_source(str(path)) as left:
        assert isinstance(left, ParquetSource)
        next(iter(left))
    assert list(left) == []  # closed with its file


def test_a_value_of_parquet_is_one_of_json():
    values = [1.5, float("inf"), date(2024, 1, 2), time(3, 4), b"\x01", {1: [None, True]}, Decimal("1.5"), 2**70]
    assert [files._json_ready(value) for value in values] == [
        1.5, None, "2024-01-02", "03:04:00", "01", {"1": [None, True]}, "1.5", 2**70,
    ]  # fmt: skip


@pytest.mark.needs("pyarrow")
def test_a_file_that_is_no_parquet(tmp_path: Path):
    path = tmp_path / "rows.parquet"
    path.write_bytes(b'{"query": "q"}')
    with pytest.raises(InputError, match="is no Parquet file"), open_source(str(path)):
        pass


def test_the_writer_refuses_its_input_and_other_formats(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text("precious")
    with pytest.raises(OptionError, match="is the input"):
        Writer(path, str(path), to_stdout=False)
    assert path.read_text() == "precious"
    with pytest.raises(OptionError, match="JSON Lines"):
        Writer(tmp_path / "a.parquet", "-", to_stdout=False)


def test_the_writer_keeps_text_readable_and_any_text_valid(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    with Writer(path, "-", to_stdout=False) as writer:
        writer.write({"a": "é漢"})
        writer.write({"a": "\ud800"})
    first, second = path.read_bytes().splitlines()
    assert first == '{"a": "é漢"}'.encode()
    assert json.loads(second) == {"a": "\ud800"}


def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Path):
    output = tmp_path / "out.jsonl"
    output.write_text("of before\n")
    with pytest.raises(KeyboardInterrupt), Writer(output, "-", to_stdout=False) as writer:
        writer.write({"row": 1})
        raise KeyboardInterrupt
    assert output.read_text() == "of before\n"
    assert output.with_name("out.jsonl.part").read_text() == '{"row": 1}\n', "what was paid for is not lost"
    with Writer(output, "-", to_stdout=False) as writer:
        writer.write({"row": 2})
    assert output.read_text() == '{"row": 2}\n'
    assert list(tmp_path.iterdir()) == [output]


PRETTY = """{
  "query": "where",
  "passages": [
    "a",
    "b"
  ]
}
"""


@pytest.mark.parametrize("text", [PRETTY, PRETTY * 2, "\n" + PRETTY, '{"query": "where",\n "passages": ["a"]}\n'])
def test_one_object_over_several_lines_is_said_once(tmp_path: Path, text: str):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with open_source(str(path)) as source, pytest.raises(InputError, match=r"over several lines.*name ends in \.json"):
        list(source)


def test_a_torn_first_row_is_one_row(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"query": "whe\n{"query": "where", "passages": []}\n{"query": 1\n')
    with open_source(str(path)) as source:
        assert [record.error is None for record in source] == [False, True, False]
    path.write_text('{"query": "whe\n')
    with open_source(str(path)) as source:
        assert [record.error is None for record in source] == [False]


def test_a_json_file_of_one_row_is_that_row(tmp_path: Path):
    path = tmp_path / "row.json"
    path.write_text(PRETTY)
    with open_source(str(path)) as source:
        assert [record.fields for record in source] == [{"query": "where", "passages": ["a", "b"]}]
    path.write_text('{"query": {"question": "a"}, "q2": 7}')  # rows by id, one of them none
    with open_source(str(path)) as source:
        assert [record.error is None for record in source] == [True, False]


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("rows", "size", "lengths"), [(70, 10, [32, 32, 6]), (9, 700, [3, 3, 3]), (8, 1100, [1] * 8), (3, 9000, [1] * 3)]
)
def test_rows_of_parquet_are_unpacked_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, size: int, lengths: list[int]
):
    """As many as are said, and no more than fit into the memory that is said, but one."""
    import pyarrow
    from pyarrow import parquet

    monkeypatch.setattr(files, "BATCH_BYTES", 2200)
    path = tmp_path / "rows.parquet"
    data = {"text": [f"{i:03}" + "x" * size for i in range(rows)]}
    parquet.write_table(pyarrow.table(data), path, compression=None, use_dictionary=False, write_statistics=False)
    count, *batches = files.parquet_rows(str(path))
    assert count == rows
    assert [len(batch) for batch in batches] == lengths
    assert [row["text"] for batch in batches for row in batch] == data["text"]


@pytest.mark.needs("pyarrow")
def test_a_parquet_file_is_closed_with_its_source(tmp_path: Path):
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"n": [1, 2]}), path)
    with open_source(str(path)) as source:
        assert isinstance(source, ParquetSource)
    assert list(source) == []


@pytest.mark.parametrize(("size", "positions"), [(7, [8, 16]), (None, [0, 0])])
def test_how_far_a_stream_is_read_is_said_where_its_length_is_known(size: int | None, positions: list[int]):
    assert [row.position for row in JsonLinesSource(io.BytesIO(b'{"a":1}\n' * 2), "here", size)] == positions


def test_how_far_a_packed_file_is_read_is_said_in_its_own_bytes(tmp_path: Path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 5))
    with open_source(str(path)) as source:
        assert {row.position for row in source} == {source.size} == {path.stat().st_size}


def test_a_torn_packed_file_says_what_to_do(tmp_path: Path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 5)[:-4])
    with open_source(str(path)) as source, pytest.raises(InputError, match=r"a\.jsonl\.gz is no whole gzip file: .*"):
        list(source)


def test_a_packed_json_file_is_read_whole_and_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "STEP", 7)
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(json.dumps([{"n": n} for n in range(9)]).encode()))
    with open_source(str(path)) as source:
        assert [row.fields["n"] for row in source] == list(range(9))
