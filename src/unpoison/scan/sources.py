"""Where documents come from: files of rows, a folder of files, a store with its own vectors."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow
from unpoison.io.files import open_source
from unpoison.scan.documents import Document, Failure, unique_name
from unpoison.scan.folders import folder_documents
from unpoison.scan.stores import is_store, open_vector_store

__all__ = ["open_documents", "read_documents"]

MAX_CELL = 64 * 2**20
"""Characters of one cell of a CSV file."""


def read_documents(source: str, failed: Callable[[Failure], None], ignore: Sequence[str] = ()) -> Iterator[Document]:
    """The documents of a file, a folder or a store, each with a name of its own.

    Args:
        source: JSON Lines, `.csv`, `.tsv` or `.parquet` with one document a row; a folder of text, Markdown, HTML, PDF
            and DOCX files; `faiss:INDEX,ROWS`, `qdrant:URL#COLLECTION`, `postgresql://...#TABLE` (`scan.stores`); or
            `-` for JSON Lines from standard input.
        failed: Called for every row and file that is not read; the others are not lost.
        ignore: Patterns of files in a folder that are no documents.

    Raises:
        InputError: No such source, or not what its name says.
        StoreError: The store cannot be reached, or went away meanwhile.
        OSError: The file cannot be read.
    """
    with open_documents(source, failed, ignore) as documents:
        yield from documents


@contextmanager
def open_documents(
    source: str, failed: Callable[[Failure], None], ignore: Sequence[str] = ()
) -> Iterator[Iterator[Document]]:
    """`read_documents` with the source open."""
    taken = dict[str, int]()
    if is_store(source):
        with open_vector_store(source) as store:
            yield (unique_name(Document.of_row(row), taken) for row in store.rows())
    elif source != "-" and Path(source).is_dir():
        yield (unique_name(document, taken) for document in folder_documents(Path(source), failed, ignore))
    elif Path(source).suffix.lower() in (".csv", ".tsv"):
        yield _of_records(_table_rows(source), failed, taken)
    else:
        with open_source(source) as rows:
            yield _of_records(rows, failed, taken)


def _of_records(
    records: Iterable[FileRow], failed: Callable[[Failure], None], taken: dict[str, int]
) -> Iterator[Document]:
    for record in records:
        location = f"row {record.number:,}"
        if record.error is not None:
            failed(Failure(location, record.error))
            continue
        if "passages" in record.fields and "text" not in record.fields:
            why = (
                "it has passages and no text: a scan takes one document a row; for rows of questions use unpoison batch"
            )
            failed(Failure(location, why))
            continue
        try:
            document = Document.of_row(record.fields)
        except InputError as error:
            failed(Failure(location, str(error)))
            continue
        yield unique_name(document, taken)


def _table_rows(source: str) -> Iterator[FileRow]:
    """The rows of a CSV or TSV file with a heading.

    Raises:
        InputError: No heading that names a text, or no UTF-8.
    """
    csv.field_size_limit(min(MAX_CELL, sys.maxsize))
    with Path(source).open(encoding="utf-8-sig", newline="") as stream:
        table = csv.DictReader(stream, delimiter="\t" if source.lower().endswith(".tsv") else ",")
        number = 0
        while True:
            try:
                row = next(table, None)
            except (csv.Error, UnicodeDecodeError) as error:
                raise InputError(f"{source} cannot be read past row {number:,}: {error}") from None
            if row is None:
                return
            number += 1
            fields = {str(name): value for name, value in row.items() if name is not None and value not in (None, "")}
            yield FileRow(number, fields, None, number)
