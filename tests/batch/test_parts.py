from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.rows import RAW
from needs import need
from unpoison.batch import parts as parts_module
from unpoison.batch.parts import cut
from unpoison.io import files
from unpoison.io.files import JsonLinesSource, ParquetSource

LINES = st.lists(
    st.one_of(
        st.sampled_from([*RAW, b"  \r\n", b"\xef\xbb\xbf\n", b'\xef\xbb\xbf{"a": 1}\n']),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(
            lambda row: json.dumps(row).encode() + b"\n"
        ),
    ),
    max_size=30,
)


def rows_of(records):
    return [(record.number, dict(record.fields), record.error) for record in records]


@given(LINES, st.integers(1, 7), st.none() | st.integers(1, 12), st.booleans())
def test_parts_hold_what_the_file_holds(lines: list[bytes], most: int, limit: int | None, torn: bool):
    data = b"".join(lines)
    data = data[:-1] if torn else data
    whole = rows_of(JsonLinesSource(io.BytesIO(data), "", None))[:limit]
    parts = list(cut(JsonLinesSource(io.BytesIO(data), "", None), most=most, limit=limit))
    assert [one for part in parts for one in rows_of(part.records())] == whole
    assert all(part.rows == len(list(part.records())) <= most for part in parts)
    if limit is None:
        assert [part.position for part in parts][-1:] == [len(data)][: len(parts)]


def test_long_lines_and_large_parts_end_a_part(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "MAX_LINE", 50)
    monkeypatch.setattr(parts_module, "MAX_BYTES", 60)
    data = b"".join([b'{"a": "%s"}\n' % (b"x" * n) for n in (30, 30, 30, 90, 30)])
    parts = list(cut(JsonLinesSource(io.BytesIO(data), "", None)))
    assert [part.rows for part in parts] == [2, 3]
    assert [part.position for part in parts] == [80, len(data)]
    errors = [record.error for part in parts for record in part.records()]
    assert [error is not None for error in errors] == [False, False, False, True, False]


def test_the_key_says_rows_place_and_purpose():
    def keys(data: bytes, purpose: str = "p", most: int = 1) -> list[str]:
        return [part.key(purpose) for part in cut(JsonLinesSource(io.BytesIO(data), "", None), most=most)]

    one, two = keys(b'{"a": 1}\n{"a": 1}\n')
    assert one != two  # errors name the line
    assert keys(b'{"a": 1}\n{"a": 2}\n')[0] == one
    assert keys(b'{"a": 1}\n', "q") != [one]
    assert keys(b"\n\n", most=2) != keys(b"\n \n", most=2)


@pytest.fixture
def table(tmp_path):
    need("pyarrow")
    import pyarrow

    need("pyarrow")
    from pyarrow import parquet

    def table(rows: int, group: int) -> ParquetSource:
        arrow_table = pyarrow.table({"n": list(range(rows)), "text": [None if n % 3 else f"é{n}" for n in range(rows)]})
        parquet.write_table(arrow_table, tmp_path / "t.parquet", row_group_size=group)
        return ParquetSource((tmp_path / "t.parquet").open("rb"), "t")

    return table


@pytest.mark.parametrize(("rows", "group"), [(0, 10), (1, 10), (70, 1000), (70, 9)])
@pytest.mark.parametrize("most", [3, 64])
@pytest.mark.parametrize("limit", [None, 1, 40])
def test_parts_of_a_table_hold_its_rows(table, rows: int, group: int, most: int, limit: int | None):
    source = table(rows, group)
    parts = list(cut(source, most=most, limit=limit))
    assert [one for part in parts for one in rows_of(part.records())] == rows_of(source)[:limit]
    assert all(part.rows == part.table().num_rows <= most for part in parts)
    assert [part.key("p") for part in parts] == [part.key("p") for part in cut(source, most=most, limit=limit)]
    source.file.close(force=True)
