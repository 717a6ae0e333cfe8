"""Reads tables, JSON, mail, notebooks and subtitles."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow, as_row, csv_rows, dialect
from unpoison.io.files import json_rows
from unpoison.scan.documents import TURNS
from unpoison.scan.parts import FOLDED, FileText, Part
from unpoison.scan.web_page import read_page
from unpoison.text.files import decode
from unpoison.text.markup import tags

__all__ = ["leaves", "read_mail", "read_notebook", "read_subtitles", "table_rows"]

MAX_ROW = 64 * 2**20
"""Maximum bytes of a row."""

MAX_CHARS = 64 * 2**20
"""Maximum characters of a table that is one text: each of its rows repeats the names of the columns."""

PART = 64
"""Characters that each part counts for besides its own: millions of short ones take gigabytes."""

LOOKED = 1_000
"""Rows of a JSON file of which one must have a text, or the file is one text."""

OWN = ("id", "text", "title", "source", "url")
"""Columns whose names are case-insensitive."""

TEXTS = ("text", "content", "page_content", "body", "passage", "document", "chunk", "answer")
"""Names of the text column, in order of preference."""


def table_rows(source: str) -> tuple[Iterator[FileRow] | FileText, tuple[str, ...]]:
    """The rows of a file with the text as `text`, and notes on its encoding; the question of an answer is its title.

    A table without a column of texts is one text, with a line for each row, and so is a JSON file without texts.

    Raises:
        InputError: An unclosed quote, or no JSON.
    """
    text, notes = decode(Path(source).read_bytes())
    raw = text.encode("utf-8", "surrogatepass")
    if source.lower().endswith(".json"):
        whole, records = json_rows(BytesIO(raw), source)
        looked = (record for record in records[:LOOKED] if isinstance(record, dict))
        if any(name in record for record in looked for name in ("text", "passages", *TURNS)):
            return (FileRow(number, *as_row(record), number) for number, record in enumerate(records, 1)), notes
        if isinstance(whole, dict):
            return _one_text((Part(line, key) for key, one in whole.items() for line in leaves(one, key)), notes), ()
        placed = ((f"row {n:,}", one) for n, one in enumerate(whole, 1))
        return _one_text((Part(line, place) for place, one in placed for line in leaves(one)), notes), ()
    first = next((line for line in raw.splitlines() if line.strip()), b"")
    heading = next(csv.reader([first.decode("utf-8", "replace")], delimiter=dialect(first)), [])
    plain = [name.strip().lower() for name in heading]
    column = "" if "passages" in plain else next((wanted for wanted in TEXTS if wanted in plain), None)
    rows = _rows(raw, source, column or "")
    if column is not None:
        return rows, notes
    unread = list[str]()

    def parts() -> Iterator[Part]:
        for row in rows:
            unread.extend([f"row {row.number:,}: {row.error}"] if row.error else [])
            yield Part(" | ".join(leaves(row.fields)), f"row {row.number:,}")

    whole_text = _one_text(parts(), notes)
    more = (f"its unread rows: {len(unread):,}, the first {unread[0]}",) if unread else ()
    return whole_text._replace(notes=(*whole_text.notes, *more)), ()


def _one_text(parts: Iterator[Part], notes: tuple[str, ...]) -> FileText:
    """As many parts as there is room for."""
    kept, left = list[Part](), MAX_CHARS
    for part in parts:
        kept.append(part)
        left -= len(part.text) + PART
        if left < 0:
            notes = (*notes, f"it is read to {part.place}: over {MAX_CHARS:,} characters, each part as {PART} more")
            break
    return FileText(tuple(kept), notes=notes)


def _rows(raw: bytes, source: str, column: str) -> Iterator[FileRow]:
    for number, read in enumerate(csv_rows(BytesIO(raw), source, MAX_ROW, any_columns=True), 1):
        if read is not None:
            fields, error = read
            yield FileRow(number, fields if error else _named(fields, column), error, number)


def _named(row: Mapping[str, Any], column: str) -> dict[str, Any]:
    """The cells under our field names."""
    plain = {name.strip().lower(): _joined(cell) for name, cell in row.items()}
    fields = {sys.intern(name): _joined(cell) for name, cell in row.items()} | {n: plain[n] for n in OWN if n in plain}
    if column in plain:
        fields["text"] = plain[column]
    if column == "answer" and "question" in plain:
        fields["title"] = plain["question"]
    return fields


def _joined(cell: Any) -> Any:
    """A cell as text; lists of answers are joined."""
    return " | ".join(map(str, cell)) if isinstance(cell, list) else cell


_HEADS = ("subject", "from", "to", "cc", "date", "reply-to", "organization", "comments", "keywords", "thread-topic",
          "content-description", "diagnostic-code")  # fmt: skip


def read_mail(path: Path) -> FileText:
    """Read a message (.eml): its head, its text and HTML parts, quoted replies and forwarded messages.

    Other attachments are named as unread.
    """
    message = message_from_bytes(path.read_bytes(), policy=default)
    parts, unread = list[Part](), list[str]()
    for inner in message.walk():
        heads = (f"{name.title()}: {inner[name]}" for name in _HEADS if inner[name])
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
        parts.append(Part(_multiline(cell.get("source") or cell.get("input")), f"cell {number:,}"))
        for output in cell.get("outputs") or ():
            parts += (Part(text, f"output of cell {number:,}") for text in _outputs(output))
        beside = leaves([cell.get("metadata"), cell.get("attachments")])
        parts += (Part(text, f"metadata of cell {number:,}", FOLDED) for text in beside)
    parts += (Part(text, "metadata", FOLDED) for text in leaves(book.get("metadata")))
    return FileText(tuple(parts))


def _outputs(output: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an output; pictures are skipped."""
    yield _multiline(output.get("text"))
    for kind, data in (output.get("data") or {}).items():
        if kind == "text/html":
            yield "\n".join(part.text for part in read_page(_multiline(data)).parts)
        elif not kind.startswith("image/"):
            yield _multiline(data)
    yield from (_multiline(output.get(name)) for name in ("evalue", "traceback"))


def _multiline(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text or "")


def leaves(value: Any, name: str = "") -> Iterator[str]:
    """The single values in a value of JSON, each behind the name of its field; the name of several stands by itself.

    Raises:
        RecursionError: It is nested too deeply.
    """
    if isinstance(value, dict):
        yield from [f"{name}:"] * bool(name)
        for key, inner in value.items():
            yield from leaves(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, name)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


_TIME = re.compile(r"(?<!\d)(\d{1,3}:[\d:.,]{1,20})\s{0,20}-->")


def read_subtitles(path: Path) -> FileText:
    """Read subtitles (.srt, .vtt); the place of a line is its time. Notes of WebVTT are hidden."""
    text, notes = decode(path.read_bytes())
    parts = list[Part]()
    for block in re.split(r"\r?\n\s*\r?\n", text):
        time = _TIME.search(block)
        lines = block.splitlines()
        said = "\n".join(line for line in lines if not _TIME.search(line) and not line.strip().isdecimal())
        hidden = "" if time or block.startswith(("\ufeffWEBVTT", "WEBVTT")) else FOLDED
        text, messages, _ = tags(said)  # colours are those of letters on a film
        where = f"at {time[1]}" if time else "note"
        parts += [Part(text, where, hidden), *(Part(message, where, FOLDED) for message in messages)]
    return FileText(tuple(parts), notes=notes)
