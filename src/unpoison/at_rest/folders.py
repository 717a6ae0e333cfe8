"""A folder of files as documents: text, Markdown, HTML, PDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpoison.at_rest.concealed import read_page
from unpoison.at_rest.documents import Document
from unpoison.errors import MissingExtraError
from unpoison.extras import require
from unpoison.passages import Passage

if TYPE_CHECKING:
    from unpoison.at_rest.sources import Failure

__all__ = ["folder_documents"]

TEXTS = (".txt", ".text", ".md", ".markdown", ".rst")
PAGES = (".html", ".htm", ".xhtml")

LARGEST = 256 * 2**20
"""Bytes of one file."""

MOST_PAGES = 10_000
"""Pages of a PDF file that are read."""


def folder_documents(folder: Path, failed: Callable[[Failure], None]) -> Iterator[Document]:
    """The files below a folder in the order of their names, each a document named by its path; links are not followed.

    Its time is the file's. What cannot be read is told of, and what is no text is passed over.
    """
    from unpoison.at_rest.sources import Failure

    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        kind = path.suffix.lower()
        if path.is_symlink() or not path.is_file() or kind not in (*TEXTS, *PAGES, ".pdf"):
            continue
        try:
            if path.stat().st_size > LARGEST:
                failed(Failure(name, f"it is larger than {LARGEST // 2**20} MiB; split it"))
                continue
            document = _document(path, name, kind)
        except MissingExtraError:
            raise
        except Exception as error:  # a PDF library raises whatever it likes on hostile files
            failed(Failure(name, f"it cannot be read: {' '.join(str(error).split())[:200] or type(error).__name__}"))
            continue
        yield document


def _document(path: Path, name: str, kind: str) -> Document:
    added_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if kind == ".pdf":
        title, text, author = _pdf(path)
        return Document(Passage(text, id=name, title=title, source=name), added_at, author)
    raw = path.read_bytes()
    text = raw.decode("utf-8-sig", "replace")
    notes = ("it is no UTF-8; what is not was replaced",) if "\ufffd" in text and b"\xef\xbf\xbd" not in raw else ()
    if kind in PAGES:
        page = read_page(text)
        passage = Passage(page.text, id=name, title=" ".join(page.title.split()) or None, source=name)
        return Document(passage, added_at, hidden=page.unseen, notes=notes)
    return Document(Passage(text, id=name, source=name), added_at, notes=notes)


def _pdf(path: Path) -> tuple[str | None, str, str | None]:
    library: Any = require("pypdf", "reading PDF files")
    reader = library.PdfReader(path)
    text = "\n\n".join(page.extract_text() for page in reader.pages[:MOST_PAGES])
    about = reader.metadata
    title = str(about.title) if about is not None and about.title else None
    author = str(about.author)[:200] if about is not None and about.author else None
    return title, text, author
