"""Reads documents from files of rows, folders of text, web pages and office files, and vector stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unicodedata import normalize

from unpoison.core.passages import Passage
from unpoison.errors import InputError, MissingExtraError, clip
from unpoison.io.file_rows import FileRow
from unpoison.io.files import open_source
from unpoison.retrieval.store import is_store, open_vector_store
from unpoison.scan.documents import TURNS, UNNAMED, Document, UnreadDocument, documents_of
from unpoison.scan.file_reader import READERS, FileReader, advice
from unpoison.scan.parts import COVERT, FOLDED, FileReading, FileText, Part
from unpoison.scan.stores import refuse_unknown_prefix
from unpoison.scan.text_files import leaves, table_rows
from unpoison.text.files import decode
from unpoison.text.invisible import MESSAGE
from unpoison.utils.files import Spilled, path_names
from unpoison.utils.plain_text import count_noun, excerpt

__all__ = ["all_documents", "describe_source", "folder_documents", "is_document", "read_documents"]


def read_documents(
    source: str, failed: Callable[[UnreadDocument], None], ignore: Sequence[str] = ()
) -> Iterator[Document]:
    """The documents of a file, a folder or a store, with distinct names.

    Args:
        source: JSON Lines, `.csv`, `.tsv` or `.parquet` with one document a row; a text, Markdown, HTML, PDF, Office,
            mail, notebook or subtitle file, or a folder of files; a vector store (`retrieval.store.STORES`); or `-` for
            JSON Lines from standard input.
        failed: Called for every unreadable row or file; the others are read.
        ignore: Patterns of files in a folder to skip.

    Raises:
        InputError: A missing source, or a wrong format.
        StoreError: The store cannot be reached, or became unavailable.
        OSError: The file cannot be read.
    """
    if is_store(source):
        with open_vector_store(source) as store:
            yield from map(Document.of_row, store.rows())
    elif source != "-" and Path(source).is_dir():
        _refuse_store(Path(source))
        yield from documents_of(folder_documents(Path(source), failed, ignore))
    elif Path(source).suffix.lower() in TABLES or is_document(source):
        path = Path(source)
        path.stat()  # raises if it is missing
        yield from documents_of(_file_documents([path], path.parent, failed, alone=True))
    else:
        refuse_unknown_prefix(source)
        with open_source(source) as rows:
            yield from documents_of(_of_records(rows, failed))


def all_documents(
    source: str, say: Callable[[str], None], ignore: Sequence[str] = (), *, named: int = 5
) -> tuple[Sequence[Document], list[UnreadDocument]]:
    """The documents of a source and what was not read, of which `say` is told the first `named`.

    Raises:
        InputError: As `read_documents`, or there is no document, or none that can be read.
    """
    failures, name = list[UnreadDocument](), describe_source(source)

    def failed(failure: UnreadDocument) -> None:
        failures.append(failure)
        if len(failures) <= named:
            say(f"{name}: {failure.location}: {failure.error}")

    documents = Spilled(read_documents(source, failed, ignore))
    if len(failures) > named:
        say(f"{name}: and {len(failures) - named:,} more were not read")
    if not documents and failures:
        raise InputError(f"{name}: none of {count_noun(len(failures), 'document')} was read")
    if not documents:
        raise InputError(f"{name} holds no documents; give rows with 'text', or a folder with text files")
    return documents, failures


def describe_source(source: str) -> str:
    """The name of a source in messages, without the password of an address."""
    scheme, mark, rest = source.partition("://")
    secret, at, host = rest.rpartition("@")
    return clip(f"{scheme}://{host}" if mark and at and secret else source, 120)


def is_document(source: str) -> bool:
    """Whether a source is one file of a type for itself, and not rows."""
    kind = Path(source).suffix.lower()
    return kind not in (*ROW_FILES, ".gz", "") and ":" not in source and Path(source).exists()


def _of_records(
    records: Iterable[FileRow], failed: Callable[[UnreadDocument], None], file: str = "", source: str = ""
) -> Iterator[Document]:
    """The documents of rows.

    Args:
        records: The rows.
        failed: Called for every unreadable one.
        file: The name of their file in a folder, before their ids.
        source: Its path, the source of rows without one.
    """
    for record in records:
        error = record.error
        if error is None and "passages" in record.fields and "text" not in record.fields:
            error = "it has passages and no text: a scan reads one document per row; for questions use unpoison screen"
        location, document = f"row {record.number:,}", None
        try:
            document = None if error is not None else Document.of_row(record.fields)
        except InputError as problem:
            error = str(problem)
        if document is None:
            failed(UnreadDocument(f"{file}, {location}" if file else location, error or ""))
            continue
        document = replace(document, hidden=_beside(record.fields, document))
        if file:
            name = f"{file}#{record.fields.get('id') or record.number}"
            passage = replace(document.passage, id=name, source=document.passage.source or source)
            document = replace(document, passage=passage, notes=tuple(n for n in document.notes if n != UNNAMED))
        yield document


def _beside(fields: Mapping[str, Any], document: Document) -> FileReading:
    """The messages in the fields of a row that its text and title do not have."""
    text = f"{document.passage.text}\n{document.passage.title}"
    lines = ((name, line) for name in fields if name not in TURNS for line in leaves(fields[name]))
    said = ((name, line) for name, line in lines if any(one[0] not in text for one in MESSAGE.finditer(line)))
    return FileReading.of(Part(line, f"field {name}") for name, line in said)


TEXT_FILES = (".txt", ".text", ".md", ".markdown", ".rst")
TABLES = (".csv", ".tsv", ".json")
ROW_FILES = (*TABLES, ".jsonl", ".ndjson", ".parquet")

MAX_FILE_BYTES = 256 * 2**20
"""Maximum bytes of a file."""


def folder_documents(
    folder: Path, failed: Callable[[UnreadDocument], None], ignore: Sequence[str] = ()
) -> Iterator[Document]:
    """The files below a folder in the order of their names, each a document with the file's time.

    A document is named by the path below the folder; its source is the whole path, as loaders have it.

    Args:
        folder: The folder.
        failed: Called for every file that is not read: an unknown type, a link, too large, damaged, or of a type
            whose library is not installed. Hidden folders, such as `.git`, are skipped silently.
        ignore: Patterns (`fnmatch`) of names or paths of files to skip silently.
    """
    wanted = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder)
        if path.is_dir() and not path.is_symlink():
            continue
        if any(parent.name.startswith(".") for parent in parts.parents):
            continue
        names = [normalize("NFC", name) for name in (parts.as_posix(), path.name)]
        if not any(fnmatch(name, normalize("NFC", pattern)) for pattern in ignore for name in names):
            wanted.append(path)
    return _file_documents(wanted, folder, failed)


def _file_documents(
    paths: Sequence[Path], folder: Path, failed: Callable[[UnreadDocument], None], *, alone: bool = False
) -> Iterator[Document]:
    """The documents of files; `alone` for one that was named, whose rows have the names that they have."""
    root = path_names(folder)[0]
    with FileReader() as reader:
        for path in paths:
            name, kind = path.relative_to(folder).as_posix(), path.suffix.lower()
            source = path_names(path)[0] if alone else f"{root}/{name}"
            why = _unread(path, kind)
            try:
                if not why and path.stat().st_size > MAX_FILE_BYTES:
                    why = f"it is larger than {MAX_FILE_BYTES // 2**20} MiB; split it"
                if not why and kind in ROW_FILES:
                    yield from _rows_of(path, name, source, failed, alone=alone)
                elif not why:
                    yield _document(path, name, source, reader)
            except MissingExtraError as error:
                why = str(error)
            except Exception as error:  # a library raises whatever it likes on hostile files
                if alone and isinstance(error, InputError) and kind in ROW_FILES:
                    raise
                why = f"it cannot be read: {excerpt(str(error) or type(error).__name__, 200)}"
            if why:
                failed(UnreadDocument(name, why))


def _rows_of(
    path: Path, name: str, source: str, failed: Callable[[UnreadDocument], None], *, alone: bool
) -> Iterator[Document]:
    """The rows of a table with a column of texts as documents, and any other table as one."""
    file = "" if alone else name
    if path.suffix.lower() not in TABLES:
        with open_source(str(path)) as rows:
            yield from _of_records(rows, failed, file, source)
        return
    table, notes = table_rows(str(path))
    if isinstance(table, FileText):
        yield _of_file(table, name, source, datetime.fromtimestamp(path.stat().st_mtime, UTC))
        return
    for document in _of_records(table, failed, file, source):
        yield replace(document, notes=(*document.notes, *notes))


def _unread(path: Path, kind: str) -> str:
    """The reason to skip a file; "" if it is read."""
    if path.is_symlink():
        return "links are not followed; name the folder that it leads to"
    if not path.is_file():
        return "not a file"
    return "" if kind in (*TEXT_FILES, *READERS, *ROW_FILES) else advice(kind)


def _document(path: Path, name: str, source: str, reader: FileReader) -> Document:
    added_at, kind = datetime.fromtimestamp(path.stat().st_mtime, UTC), path.suffix.lower()
    if kind in READERS:
        return _of_file(reader.read(path, kind), name, source, added_at)
    text, notes = decode(path.read_bytes())
    return Document(Passage(text, id=name, source=source), added_at, notes=notes)


def _of_file(file: FileText, name: str, source: str, added_at: datetime) -> Document:
    seen, folded, covert = file.reading(), file.reading(FOLDED), file.reading(COVERT)
    passage = Passage(seen.text, id=name, title=file.title, source=source)
    return Document(passage, added_at, file.author, folded, covert, seen.places, file.notes)


def _refuse_store(folder: Path) -> None:
    """Refuse the folder of a vector store, with the string that names the store.

    Raises:
        InputError: It is the folder of a store.
    """
    if (folder / "chroma.sqlite3").is_file():
        raise InputError(f"{folder} is a Chroma store; write chroma:{folder}#COLLECTION")
    if (folder / "index.faiss").is_file():
        raise InputError(
            f"{folder} is a FAISS index with pickled texts, which are never opened; write its documents to a JSON "
            "Lines file, one object with id and text on each line"
        )
