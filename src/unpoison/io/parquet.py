"""The rows of Parquet files, and of Arrow tables, as JSON has them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from math import isfinite
from typing import IO, Any

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow
from unpoison.utils.extras import require

__all__ = ["ParquetSource", "arrow_rows"]


class ParquetSource:
    """The rows of a Parquet file, read in small batches."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        parquet = require("pyarrow.parquet", "reading Parquet files")
        try:
            self.file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=2**20)  # or it holds a whole group
        except (OSError, ValueError) as error:
            raise InputError(f"{name} is no Parquet file: {error}") from None
        self.name = name
        self.size: int | None = self.file.metadata.num_rows or None

    @property
    def schema(self) -> Any:
        """The file's Arrow schema."""
        return self.file.schema_arrow

    def __iter__(self) -> Iterator[FileRow]:
        number = 0
        for batch in self.batches():
            for fields in arrow_rows(batch):
                number += 1
                yield FileRow(number, fields, None, number)

    def batches(self) -> Iterator[Any]:
        """The rows as Arrow record batches of a few rows."""
        number = 0
        try:
            for batch in self.file.iter_batches(batch_size=32, use_threads=False):
                yield batch
                number += batch.num_rows
        except (OSError, ValueError) as error:
            raise InputError(f"{self.name} cannot be read past row {number}: {error}") from None


def arrow_rows(batch: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table or record batch, as JSON has them.

    Raises:
        InputError: A value that Python cannot hold, such as a year past 9999.
    """
    try:
        return [_json_ready(fields) for fields in batch.to_pylist()]
    except ValueError as error:
        raise InputError(f"a row cannot be read: {error}; write such values as text") from None


def _json_ready(value: Any) -> Any:
    """A Parquet value as JSON has it: moments as ISO text, NaN (pandas' missing value) as null, bytes as hex."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _json_ready(item) for name, item in value.items()}
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
