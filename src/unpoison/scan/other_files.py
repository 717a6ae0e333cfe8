"""Reads mail, notebooks and subtitles; the types that are not read, and what to do with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

from unpoison.errors import InputError
from unpoison.scan.parts import FOLDED, FileText, Part
from unpoison.scan.text_files import decode
from unpoison.scan.web_page import read_page

__all__ = ["advice", "read_mail", "read_notebook", "read_subtitles"]

_HEADS = ("subject", "from", "to", "cc", "date")


def read_mail(path: Path) -> FileText:
    """Read a message (.eml): its head, its text and HTML parts, quoted replies and forwarded messages.

    Other attachments are named as unread.
    """
    message = message_from_bytes(path.read_bytes(), policy=default)
    parts, unread = list[Part](), list[str]()
    for inner in message.walk():
        if inner is message or inner.get_content_maintype() == "message":
            heads = [f"{name.title()}: {inner[name]}" for name in _HEADS if inner[name]]
            parts.append(Part("\n".join(heads), "head of the message"))
        if inner.is_multipart():
            continue
        name, kind = inner.get_filename(), inner.get_content_type()
        where = f"attachment {name}" if name else "HTML part" if kind == "text/html" else "text part"
        if kind == "text/html":
            parts += [part._replace(place=where) for part in read_page(_content(inner)).parts]
        elif inner.get_content_maintype() == "text":
            parts.append(Part(_content(inner), where))
        else:
            unread.append(name or kind)
    notes = (f"its attachments are not read: {', '.join(unread[:5])}",) if unread else ()
    title, author = str(message["subject"] or "") or None, str(message["from"] or "")[:200] or None
    return FileText(tuple(parts), title, author, notes)


def _content(part: Any) -> str:
    """The text of a part, with any character set that it declares, or a guess."""
    try:
        return str(cast(EmailMessage, part).get_content())
    except (LookupError, UnicodeError, ValueError):
        return decode(part.get_payload(decode=True) or b"")[0]


def read_notebook(path: Path) -> FileText:
    """Read a notebook (.ipynb) by cells, with their outputs.

    Raises:
        InputError: It is no notebook.
    """
    try:
        book = json.loads(path.read_bytes())
        cells = book.get("cells") or [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError("it is no notebook: it has no cells in JSON") from None
    parts = list[Part]()
    for number, cell in enumerate(cells, 1):
        parts.append(Part(_joined(cell.get("source") or cell.get("input")), f"cell {number:,}"))
        for output in cell.get("outputs") or ():
            parts += (Part(text, f"output of cell {number:,}") for text in _outputs(output))
        parts += (Part(text, f"metadata of cell {number:,}", FOLDED) for text in _strings(cell.get("metadata")))
    return FileText(tuple(parts))


def _outputs(output: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an output; pictures are skipped."""
    yield _joined(output.get("text"))
    for kind, data in (output.get("data") or {}).items():
        if kind == "text/html":
            yield "\n".join(part.text for part in read_page(_joined(data)).parts)
        elif not kind.startswith("image/"):
            yield _joined(data)
    yield _joined(output.get("evalue"))


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _strings(value: Any) -> Iterator[str]:
    """All strings in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


_TIME = re.compile(r"(?<!\d)(\d{1,3}:[\d:.,]{1,20})\s{0,20}-->")


def read_subtitles(path: Path) -> FileText:
    """Read subtitles (.srt, .vtt); the place of a line is its time. Notes of WebVTT are hidden."""
    text, notes = decode(path.read_bytes())
    parts = list[Part]()
    for block in re.split(r"\r?\n\s*\r?\n", text):
        time = _TIME.search(block)
        lines = block.splitlines()
        said = [line for line in lines if not _TIME.search(line) and not line.strip().isdecimal()]
        hidden = "" if time or block.startswith(("\ufeffWEBVTT", "WEBVTT")) else FOLDED
        parts.append(Part("\n".join(said), f"at {time[1]}" if time else "note", hidden))
    return FileText(tuple(parts), notes=notes)


_KINDS = {
    "save it as DOCX or PDF": (".doc", ".rtf", ".odt", ".pages", ".docm", ".wpd", ".epub", ".mobi", ".tex"),
    "save it as XLSX or CSV": (".xls", ".xlsb", ".xlsm", ".ods", ".numbers"),
    "save it as PPTX or PDF": (".ppt", ".odp", ".key", ".pptm"),
    "save it as .eml": (".msg", ".mbox", ".pst"),
    "save it as .txt": (
        *(".xml", ".yaml", ".yml", ".log", ".json", ".toml", ".ini", ".conf", ".py", ".js", ".sql", ".adoc"),
    ),
    "pictures and sounds have no text that is read": (
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".tif", ".tiff", ".bmp"), *(".mp3", ".wav", ".mp4", ".mov"),
    ),
    "unpack it": (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar", ".bz2", ".xz"),
}  # fmt: skip


def advice(kind: str) -> str:
    """Why files of a type are not read, and what to do with them, in one sentence."""
    name = f"files of type {kind!r}" if kind else "files without a suffix"
    how = next((how for how, kinds in _KINDS.items() if kind in kinds), "save it as text")
    return f"{name} are not read; {how}, or skip it with --ignore"
