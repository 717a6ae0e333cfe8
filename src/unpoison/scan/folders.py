"""A folder of files as documents: text, Markdown, HTML, PDF, DOCX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from unpoison.core.passages import Passage
from unpoison.errors import InputError, MissingExtraError, clip
from unpoison.scan.concealed import read_page
from unpoison.scan.documents import Document, Failure
from unpoison.scan.word_files import read_word_file
from unpoison.utils.extras import require

__all__ = ["folder_documents"]

TEXTS = (".txt", ".text", ".md", ".markdown", ".rst")
PAGES = (".html", ".htm", ".xhtml")

MAX_FILE_BYTES = 256 * 2**20
"""Bytes of one file."""

MAX_PAGES = 10_000
"""Pages of a PDF file that are read."""

MAX_PAGE_BYTES = 4 * 2**20
"""Bytes of drawing commands of one page, unpacked: a page of letters has some ten thousand."""

MAX_TEXT = 64 * 2**20
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
    if kind not in (*TEXTS, *PAGES, ".pdf", ".docx"):
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
    if kind in PAGES:
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
        if length > MAX_TEXT:
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
