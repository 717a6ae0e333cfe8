"""Where documents come from: files of rows, folders of text, Markdown, HTML, PDF and DOCX files, vector stores."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from unpoison.core.passages import Passage
from unpoison.errors import InputError, MissingExtraError, clip
from unpoison.io.file_rows import FileRow
from unpoison.io.files import open_source
from unpoison.scan.documents import Document, Failure, unique_name
from unpoison.scan.hidden_text import MIN_WORDS, read_page
from unpoison.scan.memories import is_memory_file, memory_rows
from unpoison.scan.stores import is_store, open_vector_store, refuse_unknown_prefix
from unpoison.utils.extras import require

__all__ = ["WordFile", "folder_documents", "open_documents", "read_documents", "read_word_file"]

MAX_CELL = 64 * 2**20
"""Characters of one cell of a CSV file."""


def read_documents(source: str, failed: Callable[[Failure], None], ignore: Sequence[str] = ()) -> Iterator[Document]:
    """The documents of a file, a folder or a store, each with a name of its own.

    Args:
        source: JSON Lines, `.csv`, `.tsv` or `.parquet` with one document a row; a folder of text, Markdown, HTML, PDF
            and DOCX files; a vector store, such as `chroma:FOLDER#COLLECTION` (`scan.stores`);
            a SQLite file of an agent's memories, or `sqlite-memory:FILE`; or `-` for JSON Lines from standard input.
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
    elif source != "-" and is_memory_file(source):
        yield (unique_name(Document.of_row(row), taken) for row in memory_rows(source))
    elif Path(source).suffix.lower() in (".csv", ".tsv"):
        yield _of_records(_table_rows(source), failed, taken)
    else:
        refuse_unknown_prefix(source)
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


TEXT_FILES = (".txt", ".text", ".md", ".markdown", ".rst")
HTML_FILES = (".html", ".htm", ".xhtml")

MAX_FILE_BYTES = 256 * 2**20
"""Bytes of one file."""

MAX_PAGES = 10_000
"""Pages of a PDF file that are read."""

MAX_PAGE_BYTES = 4 * 2**20
"""Bytes of drawing commands of one page, unpacked: a page of letters has some ten thousand."""

MAX_PDF_CHARS = 64 * 2**20
"""Characters of one PDF file that are read."""


def folder_documents(folder: Path, failed: Callable[[Failure], None], ignore: Sequence[str] = ()) -> Iterator[Document]:
    """The files below a folder in the order of their names, each a document named by its path. Its time is the file's.

    Args:
        folder: Where they are.
        failed: Called for every file that is not read: of another kind, a link, too large, broken.
        ignore: Patterns of names or paths, as `fnmatch` reads them, of files that are no documents: nothing is said.

    Raises:
        MissingExtraError: A library is missing for one of the files.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        kind = path.suffix.lower()
        if path.is_dir() and not path.is_symlink():
            continue
        if any(fnmatch(name, pattern) or fnmatch(path.name, pattern) for pattern in ignore):
            continue
        if why := _unread(path, kind):
            failed(Failure(name, why))
            continue
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                failed(Failure(name, f"it is larger than {MAX_FILE_BYTES // 2**20} MiB; split it"))
                continue
            document = _document(path, name, kind)
        except MissingExtraError:
            raise
        except Exception as error:  # a PDF library raises whatever it likes on hostile files
            failed(Failure(name, f"it cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"))
            continue
        yield document


def _unread(path: Path, kind: str) -> str:
    """Why a file is not even tried; "" if it is."""
    if path.is_symlink():
        return "it is a link, and links are not followed; name the folder that it leads to"
    if not path.is_file():
        return "it is no file"
    if kind not in (*TEXT_FILES, *HTML_FILES, ".pdf", ".docx"):
        return f"a file of the kind {clip(kind)} is not read; save it as text, or leave it out with --ignore"
    return ""


def _document(path: Path, name: str, kind: str) -> Document:
    added_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if kind == ".pdf":
        title, text, author, notes = _pdf(path)
        return Document(Passage(text, id=name, title=title, source=name), added_at, author, notes=notes)
    if kind == ".docx":
        word = read_word_file(path)
        passage = Passage(word.text, id=name, title=word.title, source=name)
        return Document(passage, added_at, word.author, hidden=word.hidden)
    raw = path.read_bytes()
    text = raw.decode("utf-8-sig", "replace")
    notes = ("it is no UTF-8; what is not was replaced",) if "\ufffd" in text and b"\xef\xbf\xbd" not in raw else ()
    if kind in HTML_FILES:
        page = read_page(text)
        passage = Passage(page.text, id=name, title=" ".join(page.title.split()) or None, source=name)
        return Document(passage, added_at, hidden=page.unseen, notes=notes)
    return Document(Passage(text, id=name, source=name), added_at, notes=notes)


def _pdf(path: Path) -> tuple[str | None, str, str | None, tuple[str, ...]]:
    """Title, text, author, and what was left out."""
    library: Any = require("pypdf", "reading PDF files")
    reader = library.PdfReader(path)
    texts, left_out, length = list[str](), list[int](), 0
    for number, page in enumerate(reader.pages[:MAX_PAGES], 1):
        if length > MAX_PDF_CHARS:
            left_out.append(number)
            continue
        try:
            contents = page.get_contents()
            small = contents is None or len(contents.get_data()) <= MAX_PAGE_BYTES
            texts.append(page.extract_text() if small else "")
        except Exception:  # the library raises whatever it likes on hostile pages; the others are read
            small = False
        length += len(texts[-1]) if small else 0
        left_out += [] if small else [number]
    text = "\n\n".join(texts)
    if len(left_out) == len(reader.pages):
        raise InputError("none of its pages can be read")
    notes = [
        f"{len(left_out):,} of its pages cannot be read or are too large, the first of them page {left_out[0]:,}"
    ] * bool(left_out)
    if len(reader.pages) > MAX_PAGES:
        notes.append(f"only the first {MAX_PAGES:,} of its {len(reader.pages):,} pages are read")
    about = reader.metadata
    title = str(about.title) if about is not None and about.title else None
    author = str(about.author)[:200] if about is not None and about.author else None
    return title, text, author, tuple(notes)


MAX_UNPACKED_BYTES = 256 * 2**20
"""Bytes of all its parts, pictures among them."""

MIN_POINTS = 2.0
"""Points; smaller letters are read by nobody."""

_TEXT_PARTS = re.compile(r"/word/(header|footer|footnotes|endnotes|comments)\d*\.xml")
"""Parts beside the document itself that hold text."""

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"


class WordFile(NamedTuple):
    """A document.

    Attributes:
        title: As its properties say; None without one.
        author: The same.
        text: What a reader sees, a line for each paragraph; headers, footers, notes and comments at the end.
        hidden: Paragraphs of four words and more of hidden, white or tiny letters.
    """

    title: str | None
    author: str | None
    text: str
    hidden: tuple[str, ...]


def read_word_file(path: Path) -> WordFile:
    """Read a DOCX file. Deleted text is left out, inserted text is read.

    Raises:
        InputError: It unpacks to too much.
        Exception: Whatever the libraries raise on a broken file.
        MissingExtraError: python-docx is not installed.
    """
    library: Any = require("docx", "reading DOCX files")
    with ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > MAX_UNPACKED_BYTES:
        raise InputError(f"it unpacks to {size:,} bytes, more than {MAX_UNPACKED_BYTES // 2**20} MiB; split it")
    document = library.Document(str(path))
    shown, unseen = list[str](), list[str]()
    for root in _roots(library, document):
        for text, hidden in _texts(library, root):
            (unseen if hidden else shown).append(text)
            if text == "\n":
                unseen.append(text)
    about = document.core_properties
    hidden_lines = tuple(line for line in _lines(unseen) if len(line.split()) >= MIN_WORDS)
    return WordFile(about.title or None, str(about.author)[:200] or None, "\n".join(_lines(shown)), hidden_lines)


def _roots(library: Any, document: Any) -> Iterator[Any]:
    yield document.element.body
    for part in document.part.package.iter_parts():
        if _TEXT_PARTS.fullmatch(str(part.partname)):
            yield part.element if hasattr(part, "element") else library.oxml.parse_xml(part.blob)


def _texts(library: Any, root: Any) -> Iterator[tuple[str, bool]]:
    """Every piece of text in order, and whether it is hidden; a line end before each paragraph."""
    for element in root.iter(f"{_WORD}p", f"{_WORD}r"):
        if next(element.iterancestors(_FALLBACK), None) is not None:  # the same once more, for old programs
            continue
        if element.tag == f"{_WORD}p":
            yield "\n", False
            continue
        run = library.text.run.Run(element, None)
        font = run.font
        white = font.color is not None and str(font.color.rgb) == "FFFFFF"
        yield run.text, bool(font.hidden) or white or (font.size is not None and font.size.pt <= MIN_POINTS)


def _lines(parts: list[str]) -> list[str]:
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return [line for line in lines if line]
