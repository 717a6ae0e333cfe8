"""Finished parts as a Parquet file.

What was found has a fixed type: `screening` is a struct, so that `screening.kept` can be queried, `error` is text, and
the parameters of a reason are JSON text.
Fields of a Parquet input keep their types, for its columns are taken over untouched. Fields of a JSON Lines input get
the type that fits all their values; where there is none, because numbers and texts are mixed, say, the column holds
JSON text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unpoison.batch.parts import Finished, Part
from unpoison.errors import InputError
from unpoison.utils.extras import require

SURROGATE = re.compile("[\ud800-\udfff]")

__all__ = ["beside_input", "write_lines", "write_table"]

GROUP_ROWS = 4096
"""Rows of a row group, at most."""

MAX_FIELDS = 1000
"""Columns of a table, and fields of a struct; objects with more keys, such as identifiers, are written as text."""

GROUP_BYTES = 32 * 2**20
"""A row group ends after so many bytes."""


def write_table(path: Path, tables: Iterable[Any], schema: Any) -> None:
    """Write Arrow tables of one schema to a Parquet file, a bounded group of rows at a time."""
    arrow = require("pyarrow", "writing Parquet files")
    parquet = require("pyarrow.parquet", "writing Parquet files")
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        held, rows, size = list[Any](), 0, 0
        for table in tables:
            held.append(table)
            rows += table.num_rows
            size += table.nbytes
            if rows >= GROUP_ROWS or size >= GROUP_BYTES:
                writer.write_table(arrow.concat_tables(held), row_group_size=rows)
                held, rows, size = [], 0, 0
        if held and rows:
            writer.write_table(arrow.concat_tables(held), row_group_size=rows)


def beside_input(schema: Any, parts: Iterable[tuple[Part, Finished]], *, answers: bool) -> tuple[Any, Iterator[Any]]:
    """The input's columns with the results beside them: the schema, and a table for each part.

    A column of the input that has the name of a result is replaced.
    """
    arrow = require("pyarrow", "writing Parquet files")
    results = _result_types(arrow, answers=answers)
    names = [name for name in schema.names if name not in results]
    whole = arrow.schema([schema.field(schema.get_field_index(name)) for name in names], metadata=schema.metadata)
    for name, kind in results.items():
        whole = whole.append(arrow.field(name, kind))

    def table(part: Part, finished: Finished) -> Any:
        given, rows = part.table(), _rows(finished)
        columns = [given.column(name) for name in names]
        columns += [_column(arrow, name, [row.get(name) for row in rows], kind) for name, kind in results.items()]
        return arrow.Table.from_arrays(columns, schema=whole)

    return whole, (table(part, finished) for part, finished in parts)


def write_lines(path: Path, parts: Callable[[], Iterable[Finished]], *, answers: bool) -> None:
    """Write finished JSON rows to a Parquet file.

    Args:
        path: The file.
        parts: Reads them all, and is called at least twice: for the types that fit all rows, and for the rows.
        answers: Whether rows may have an answer.

    Raises:
        InputError: The rows have too many different fields for a table.
    """
    arrow = require("pyarrow", "writing Parquet files")
    results = _result_types(arrow, answers=answers)
    types: dict[str, Any] = {}
    for part in parts():
        for name, values in _columns(_rows(part)).items():
            if name not in results:
                types[name] = _common(arrow, types.get(name), values)
        if len(types) > MAX_FIELDS:
            raise InputError(f"the rows have more than {MAX_FIELDS:,} different fields; write JSON Lines instead")
    types = {name: _writable(arrow, kind) for name, kind in types.items()} | results

    def table(part: Finished) -> Any:
        rows = _rows(part)
        columns = [_column(arrow, name, [row.get(name) for row in rows], kind) for name, kind in types.items()]
        return arrow.Table.from_arrays(columns, names=list(types))

    while True:
        try:
            return write_table(path, map(table, parts()), arrow.schema(list(types.items())))
        except _UnfitError as unfit:  # numbers and texts mixed within a list, or whole numbers too large for fractions
            types[unfit.column] = arrow.string()


class _UnfitError(Exception):
    """A value that the type of its column cannot hold."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _result_types(arrow: Any, *, answers: bool) -> dict[str, Any]:
    text, whole = arrow.string(), arrow.int64()
    span = {"start": whole, "end": whole, "probability": arrow.float64(), "reason": text, "field": text}
    verdict = {"index": whole, "kept": arrow.bool_(), "score": arrow.float64(), "rank": whole, "reason": text}
    verdict |= {"code": text, "parameters": text}
    verdict |= {"spans": arrow.list_(_struct(arrow, span))}
    rival = {"answer": text, "passages": arrow.list_(whole), "voices": whole}
    contest = {"says": text, "rivals": arrow.list_(_struct(arrow, rival))}
    claim = {"text": text, "weight": arrow.float64(), "origins": arrow.list_(text)}
    claim |= {"passages": arrow.list_(whole), "quotes": arrow.list_(text)}
    call = {"kind": text, "model": text, "purpose": text, "items": whole, "attempts": whole}
    call |= {"prompt_tokens": whole, "completion_tokens": whole, "cached": arrow.bool_()}
    screening = {
        "defense": text,
        "kept": arrow.list_(whole),
        "texts": arrow.list_(text),
        "verdicts": arrow.list_(_struct(arrow, verdict)),
        "contested": arrow.list_(_struct(arrow, contest)),
        "claims": arrow.list_(_struct(arrow, claim)),
        "notes": arrow.list_(text),
        "threshold": arrow.float64(),
        "probability": arrow.list_(arrow.float64()),
        "calibration": text,
    }
    answer = {"text": text, "abstained": arrow.bool_(), "screened": arrow.bool_()}
    answer |= {"calls": arrow.list_(_struct(arrow, call)), "details": text, "status": text}
    answer |= {"guarantee": whole, "guarantee_unit": text, "proof": text, "promise": text}
    types = {"screening": _struct(arrow, screening)}
    if answers:
        types |= {"answer": _struct(arrow, answer), "generator": text}
    return types | {"error": text}


def _struct(arrow: Any, fields: dict[str, Any]) -> Any:
    return arrow.struct(list(fields.items()))


def _rows(finished: Finished) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in finished.lines.splitlines()]
    for row in rows:
        screening = row.get("screening")
        verdicts = screening.get("verdicts") if isinstance(screening, dict) else None
        for verdict in verdicts if isinstance(verdicts, list) else ():
            if isinstance(verdict, dict) and "parameters" in verdict:  # every code has others
                verdict["parameters"] = json.dumps(verdict["parameters"])
        answer = row.get("answer")
        if isinstance(answer, dict) and "details" in answer:  # and so has every defense
            answer["details"] = json.dumps(answer["details"])
    return rows


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _common(arrow: Any, earlier: Any, values: list[Any]) -> Any:
    """The type that fits these values and those before; text where none does."""
    try:
        inferred = arrow.infer_type(_readable(values))
        both = [arrow.schema([("", kind)]) for kind in (earlier, inferred) if kind is not None]
        kind = arrow.unify_schemas(both, promote_options="permissive").field(0).type
        return kind if _width(kind) <= MAX_FIELDS else arrow.string()
    except (arrow.ArrowException, OverflowError):
        return arrow.string()


def _width(kind: Any) -> int:
    """How many fields are in it, at all depths."""
    return sum(1 + _width(kind.field(i).type) for i in range(kind.num_fields))


def _writable(arrow: Any, kind: Any) -> Any:
    """The type, or text where Parquet has no such type: structs without fields."""
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    empty = arrow.types.is_struct(kind) and not inner
    return arrow.string() if empty or any(_writable(arrow, field) != field for field in inner) else kind


def _column(arrow: Any, name: str, values: list[Any], kind: Any) -> Any:
    values = _readable(values)
    if kind == arrow.string():
        values = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    try:
        return arrow.array(values, kind)
    except (arrow.ArrowException, OverflowError):
        raise _UnfitError(name) from None


def _readable(value: Any) -> Any:
    """Half a surrogate pair, which JSON can say and Parquet cannot, as the replacement character."""
    if isinstance(value, str):
        return value if value.isascii() else SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {_readable(name): _readable(item) for name, item in value.items()}
    return value
