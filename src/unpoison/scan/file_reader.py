"""Reads files whose content can expand in a process with limits of time and memory.

A file that exceeds one is skipped, and the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, MissingExtraError
from unpoison.scan.office_package import read_slides, read_word_file
from unpoison.scan.parts import FileText, Part
from unpoison.scan.pdf_file import read_pdf_file
from unpoison.scan.spreadsheet import read_spreadsheet
from unpoison.scan.text_files import read_mail, read_notebook, read_subtitles
from unpoison.scan.web_page import read_page
from unpoison.text.files import decode
from unpoison.utils.assets import read_data
from unpoison.utils.confined import MAX_MEMORY, MAX_SECONDS, Confined

__all__ = ["READERS", "FileReader", "advice", "read_for_parent"]


def read_html(path: Path) -> FileText:
    """Read a web page.

    Raises:
        InputError: It has markup but no text.
    """
    text, notes = decode(path.read_bytes())
    file = read_page(text, xml=path.suffix.lower() == ".xhtml")._replace(notes=notes)
    if text.strip() and not any(part.text.strip() for part in file.parts):
        raise InputError("it has markup and no text; if a script writes its text, save the page from a browser")
    return file


HTML_FILES = (".html", ".htm", ".xhtml")

READERS = {
    ".pdf": read_pdf_file,
    ".docx": read_word_file,
    ".xlsx": read_spreadsheet,
    ".pptx": read_slides,
    ".eml": read_mail,
    ".ipynb": read_notebook,
    **dict.fromkeys((".srt", ".vtt"), read_subtitles),
    **dict.fromkeys(HTML_FILES, read_html),
}
"""File types whose content can expand."""

_UNREAD = read_data("unread.json")
"""What to do with files of other types."""

SHORT = 2**20
"""Bytes of a web page up to which it is read in this process: a tag takes a hundred times its size in memory."""


MAX_TEXT, MAX_RATIO = 2**22, 20
"""Maximum characters of a file, or multiple of its size if that is more; a scan takes a minute for them."""


class FileReader(Confined):
    """A process that reads one file after another."""

    def __init__(self, seconds: float = MAX_SECONDS, memory: int = MAX_MEMORY) -> None:
        super().__init__(read_for_parent, seconds, memory)

    def read(self, path: Path, kind: str) -> FileText:
        """Read a file.

        Args:
            path: The file.
            kind: Its type, one of `READERS`.

        Raises:
            InputError: It is damaged, or exceeds a limit.
            MissingExtraError: The library for its type is not installed.
        """
        if kind in HTML_FILES and path.stat().st_size <= SHORT:
            return READERS[kind](path)
        (reply,) = self.ask([str(path.absolute()), kind])
        title, author = reply["about"]
        return FileText(tuple(Part(*part) for part in reply["parts"]), title, author, tuple(reply["notes"]))


def read_for_parent(asked: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """In the process: read a file by its path and type."""
    path, kind = asked
    try:
        file = READERS[kind](Path(path))
    except (InputError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # a library raises whatever it likes on hostile files
        why = f"it is damaged, cut short, or no {kind} file ({str(error) or type(error).__name__}); save it anew"
        raise InputError(why) from None
    file = file.within(max(MAX_TEXT, MAX_RATIO * Path(path).stat().st_size))
    yield {"parts": file.parts, "about": (file.title, file.author), "notes": file.notes}


def advice(kind: str) -> str:
    """Why files of a type are not read, and what to do with them, in one sentence."""
    name = f"files of type {kind!r}" if kind else "files without a suffix"
    how = next((how for how, kinds in _UNREAD.items() if kind in kinds.split()), "save it as text")
    return f"{name} are not read; {how}, or skip it with --ignore"
