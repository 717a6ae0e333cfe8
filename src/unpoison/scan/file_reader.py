"""Reads files whose content can expand in a process of its own, with limits of time and memory.

A workbook of two kilobytes can describe a billion cells. What a library does with it is not known beforehand, so each
file has a deadline and the process a bound; a file that breaks one is unread, and the others are read.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import IO, Any, Self

from unpoison.errors import InputError, MissingExtraError
from unpoison.scan.office_package import read_slides, read_word_file
from unpoison.scan.other_files import read_mail, read_notebook, read_subtitles
from unpoison.scan.parts import FileText, Part
from unpoison.scan.pdf_file import read_pdf_file
from unpoison.scan.spreadsheet import read_spreadsheet
from unpoison.scan.text_files import decode
from unpoison.scan.web_page import read_page

__all__ = ["READERS", "FileReader", "serve"]


def read_html(path: Path) -> FileText:
    """Read a web page.

    Raises:
        InputError: It has markup and no text.
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
    ".srt": read_subtitles,
    ".vtt": read_subtitles,
    **dict.fromkeys(HTML_FILES, read_html),
}
"""File types whose content can expand."""

SHORT = 2**20
"""Bytes of a web page up to which it is read without another process: a tag takes a hundred times its size."""

MAX_SECONDS = 60.0
"""Maximum time of a file."""

MAX_MEMORY = 1_536 * 2**20
"""Maximum bytes that the process may need for a file, where the system can limit them."""

MAX_REPLY = 256 * 2**20
"""Maximum bytes of what a file says, as JSON."""

_START = "import sys; sys.path[:] = {path!r}; from unpoison.scan.file_reader import serve; serve({memory})"


class FileReader:
    """A process that reads one file after another; it is started for the first one, and again after one that failed."""

    def __init__(self, seconds: float = MAX_SECONDS, memory: int = MAX_MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._end()

    def read(self, path: Path, kind: str) -> FileText:
        """Read a file.

        Args:
            path: The file.
            kind: Its type, one of `READERS`.

        Raises:
            InputError: It is damaged, or breaks a limit.
            MissingExtraError: The library for its type is not installed.
        """
        if kind in HTML_FILES and path.stat().st_size <= SHORT:
            return READERS[kind](path)
        process = self._process or self._start()
        too_late = Timer(self._seconds, process.kill)
        too_late.start()
        line = b""
        with suppress(OSError):
            pipe(process.stdin).write(json.dumps([str(path.absolute()), kind]).encode() + b"\n")
            pipe(process.stdin).flush()
            line = pipe(process.stdout).readline(MAX_REPLY)
        late = not too_late.is_alive()
        too_late.cancel()
        if not line.endswith(b"\n"):
            self._end()
            raise InputError(f"reading it takes more than {self._seconds:g} seconds" if late else TOO_LARGE)
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise (MissingExtraError if reply["missing"] else InputError)(reply["error"])
        title, author = reply["about"]
        return FileText(tuple(Part(*part) for part in reply["parts"]), title, author, tuple(reply["notes"]))

    def _start(self) -> subprocess.Popen[bytes]:
        code = _START.format(path=sys.path, memory=self._memory)
        self._process = subprocess.Popen(  # noqa: S603 (our own code)
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):
                self._process.communicate()
            self._process = None


TOO_LARGE = "reading it needs too much memory"


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """A stream of a process that was started with pipes."""
    if stream is None:
        raise ValueError("the process was started without a pipe")
    return stream


def serve(memory: int) -> None:
    """The loop of the process: a line of JSON with a path and its type, and a line of JSON with what the file says."""
    replies = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints is no reply
    _limit_memory(memory)
    for line in sys.stdin.buffer:
        path, kind = json.loads(line)
        replies.write(json.dumps(_reply(Path(path), kind)).encode() + b"\n")
        replies.flush()


def _reply(path: Path, kind: str) -> dict[str, Any]:
    try:
        file = READERS[kind](path)
    except MissingExtraError as error:
        return {"error": str(error), "missing": True}
    except MemoryError:
        return {"error": TOO_LARGE, "missing": False}
    except InputError as error:
        return {"error": str(error), "missing": False}
    except Exception as error:  # a library raises whatever it likes on hostile files
        why = f"it is damaged, cut short, or no {kind} file ({str(error) or type(error).__name__}); save it anew"
        return {"error": why, "missing": False}
    return {"parts": file.parts, "about": (file.title, file.author), "notes": file.notes}


def _limit_memory(most: int) -> None:
    """Limit the memory beyond what is in use; only Linux can count it."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + most, used + most))
