"""A LanceDB table as a store."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, UnpoisonError, clip
from unpoison.retrieval.store import TEXT_FIELDS, VectorStore, refuse, textless, unreachable
from unpoison.utils.extras import require

__all__ = ["LanceStore"]

PAGE = 256
"""Rows that are read at once."""


class LanceStore(VectorStore):
    """The rows of a table with `id`, a text (`text`, `content`, `page_content` or `document`) and a vector column.

    A row that is moved is kept as Arrow has it, so that it comes back with the types that it had.

    Args:
        address: A folder, or another place that `lancedb.connect` takes, such as `s3://bucket/folder`.
        table: Its name.
        new: Make the table, when documents are put, if it is not there.

    Raises:
        InputError: There is no such table and `new` is not set, or it has no ids or no texts.
        MissingExtraError: lancedb is not installed.
        StoreError: It cannot be reached.
    """

    def __init__(self, address: str, table: str, *, new: bool = False) -> None:
        library = require("lancedb", "using LanceDB")
        self.arrow = require("pyarrow", "using LanceDB", extra="lancedb")
        self.table, self.name = table, f"the LanceDB table {table!r}"
        if not new and "://" not in address and not Path(address).is_dir():  # connect() would make it
            raise InputError(f"there is no folder {address!r}; name the one that holds the LanceDB tables")
        with self.translate_errors():
            self.database = library.connect(address)
        if not new and self._opened() is None:
            raise InputError(f"{self.name} is not there; name one that is, or make it")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        table, count = self._opened(), 0
        if table is None:
            return
        text, vector = self._columns(table.schema)
        with self.translate_errors():
            batches = iter(table.search().to_batches(batch_size=PAGE))
        while True:
            with self.translate_errors(count):
                batch = next(batches, None)
            if batch is None:
                return
            count += batch.num_rows
            yield from (self._row(row, text, vector) for row in batch.to_pylist())

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        table = self._opened()
        if table is None or not count:
            return []
        text, column = self._columns(table.schema)
        if not column:
            raise InputError(f"{self.name} has no column of vectors; nothing can be searched in it")
        with self.translate_errors():
            indexes = [index.name for index in table.list_indices() if column in index.columns]
            statistics = table.index_stats(indexes[0]) if indexes else None
            metric = str((statistics and statistics.distance_type) or "cosine").lower()
            query = table.search(list(vector), vector_column_name=column).distance_type(metric).limit(count)
            found = query.to_list()
        whole = 0.0 if metric == "l2" else 1.0
        return [
            {**self._row({n: v for n, v in row.items() if n != "_distance"}, text, column),
             "score": whole - float(row["_distance"])}
            for row in found
        ]  # fmt: skip

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        table = self._opened()
        if table is None or not ids:
            return {}
        text, _ = self._columns(table.schema)
        with self.translate_errors():
            found = table.search().where(_among(ids)).to_arrow().combine_chunks()
        raw = dict[str, Mapping[str, Any]]()
        for number in range(found.num_rows):
            one = found.take([number])
            name = str(one["id"][0].as_py())
            if name in raw:
                raise InputError(f"{self.name} has several rows named {clip(name)}; give each an id of its own")
            raw[name] = {"id": name, "text": one[text][0].as_py(), "arrow": self._pack(one)}
        return raw

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        arrow, table = self.arrow, self._opened()
        if table is None:
            size = len(fields["embedding"])
            strings = [arrow.field(name, arrow.string()) for name in ("id", "text", "title", "source")]
            schema = arrow.schema([*strings, arrow.field("vector", arrow.list_(arrow.float32(), size))])
            text, vector = "text", "vector"
        else:
            schema = table.schema
            text, vector = self._columns(schema)
        values = {
            **fields.get("metadata", {}), **fields, text: fields["text"], vector: list(fields["embedding"]),
        }  # fmt: skip
        row = {name: values.get(name) for name in schema.names}
        with self.translate_errors():
            return {**fields, "arrow": self._pack(arrow.Table.from_pylist([row], schema=schema))}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        if any("arrow" not in row for row in raw.values()):
            raise InputError(f"{self.name} takes rows of LanceDB; move documents to a store of their kind")
        if not raw:
            return
        with self.translate_errors():
            rows = self.arrow.concat_tables([self._unpack(row["arrow"]) for row in raw.values()])
            table = self._opened()
            if table is None:
                self.database.create_table(self.table, rows)
            else:
                table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def take(self, ids: Collection[str]) -> None:
        table = self._opened()
        if table is not None and ids:
            with self.translate_errors():
                table.delete(_among(ids))

    def _opened(self) -> Any:
        """The table as it is now; None where there is none."""
        with self.translate_errors():
            return self.database.open_table(self.table) if self.table in self.database else None

    def _columns(self, schema: Any) -> tuple[str, str]:
        """The columns of the texts and of the vectors, the latter "" where there is none."""
        text = next((name for name in TEXT_FIELDS if name in schema.names), None)
        if text is None or "id" not in schema.names:
            raise InputError(
                f"{self.name} has the columns {clip(', '.join(schema.names))}; it needs id and one of "
                f"{', '.join(TEXT_FIELDS)}"
            )
        types = self.arrow.types
        vectors = (field.name for field in schema if types.is_fixed_size_list(field.type))
        return text, next((n for n in vectors if types.is_floating(schema.field(n).type.value_type)), "")

    def _row(self, row: Mapping[str, Any], text: str, vector: str) -> Mapping[str, Any]:
        if not isinstance(row[text], str):
            raise textless(self.name, row["id"])
        others = {name: value for name, value in row.items() if name not in (text, vector)}
        return {**others, "id": str(row["id"]), "text": row[text], "embedding": row.get(vector)}

    def _pack(self, table: Any) -> str:
        """One row with its schema, as text."""
        sink = self.arrow.BufferOutputStream()
        bare = table.replace_schema_metadata(None)
        with self.arrow.ipc.new_stream(sink, bare.schema) as stream:
            stream.write_table(bare)
        return b64encode(sink.getvalue().to_pybytes()).decode("ascii")

    def _unpack(self, packed: str) -> Any:
        return self.arrow.ipc.open_stream(b64decode(packed)).read_all()

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """What the library raises, as our own errors.

        Args:
            documents: How many were read before.
        """
        try:
            yield
        except UnpoisonError:
            raise
        except OSError as error:
            raise unreachable(self.name, error, documents) from error
        except (ValueError, TypeError, RuntimeError, self.arrow.ArrowException) as error:
            raise refuse(self.name, error, "its columns, and the vectors' size") from error


def _among(ids: Collection[str]) -> str:
    """A condition for rows of these ids, which are quoted as SQL has it."""
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in ids)
    return f"CAST(id AS STRING) IN ({quoted})"
