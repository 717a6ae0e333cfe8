from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch.rows import RAW
from needs import need
from unpoison.batch import screener as parts_module
from unpoison.batch.screener import cut
from unpoison.io.files import JsonLinesSource, ParquetSource

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
