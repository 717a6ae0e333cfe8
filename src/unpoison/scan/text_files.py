"""Decodes text by byte order mark, declaration, or a guess; reads CSV and TSV files, mail, notebooks and subtitles."""

from __future__ import annotations

import codecs
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow, csv_lines, dialect, read_line
from unpoison.scan.parts import FOLDED, FileText, Part
from unpoison.scan.web_page import read_page
from unpoison.text.tokens import word_list
from unpoison.utils.extras import require

__all__ = ["decode", "read_mail", "read_notebook", "read_subtitles", "table_rows"]

MARKS = {
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
"""Longer marks first, because one begins with another."""

MAX_HEAD = 4_096
"""Maximum bytes in which a declaration is looked for."""

_DECLARED = re.compile(
    rb"<\?xml[^>]{1,200}encoding\s{0,9}=\s{0,9}[\"']([\w.:-]{1,40})"
    rb"|<meta[^>]{1,200}charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})"
    rb"|^content-type:[^\n]{1,200}charset\s{0,9}=\s{0,9}\"?([\w.:-]{1,40})",
    re.IGNORECASE | re.MULTILINE,
)
"""An XML declaration, `<meta charset>` or its older form, or a mail header."""

_AS_BROWSERS = {"iso8859-1": "cp1252", "ascii": "cp1252"}
"""Declared encodings that browsers read as another one."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, with notes about guessed or lost characters.

    In this order: the byte order mark; a valid declared encoding; the escapes of ISO-2022; valid UTF-8 without control
    characters; cp1252 or the guess of `charset-normalizer` (`_guess`); UTF-8 with replacements.

    Raises:
        MissingExtraError: A guess is needed, and charset-normalizer is not installed.
    """
    for encoding, marks in MARKS.items():
        if raw.startswith(marks):
            return _read(raw, encoding)
    declared = _DECLARED.search(raw[:MAX_HEAD])
    if declared is not None:
        name = next(filter(None, declared.groups())).decode("ascii")
        try:
            codec = codecs.lookup(name).name
            return raw.decode(_AS_BROWSERS.get(codec, codec)), ()
        except (LookupError, UnicodeError, ValueError):
            note = (f"it declares {name} wrongly",)
            text, more = _guess(raw)
            return text, (*note, *more)
    return _guess(raw)


_ESCAPED = ((b"\x1b$)C", "iso2022_kr"), (b"\x1b$", "iso2022_jp_2"), (b"\x1b(J", "iso2022_jp_2"))
"""Escapes that begin another character set, and the encoding that has them."""

FOREIGN_SHARE = 0.25
"""Share of bytes above ASCII among the letters from which a text is in another script than Latin."""

_WORDS = word_list("beyond_cp1252")
"""Frequent words of Latin script that cp1252 cannot write, in Polish, Czech, Slovak, Croatian, Romanian, Hungarian,
Lithuanian and Latvian."""


def _guess(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """UTF-8, an escaped encoding, or a guess.

    Guesses among the encodings of Latin script are poor: on a few accents every one of them fits. So such a text is in
    cp1252, the usual one by far, unless another guess gives frequent words of a language that cp1252 cannot write.
    """
    for escape, encoding in _ESCAPED:
        if escape in raw:
            return _read(raw, encoding)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not _CONTROL.search(text):
        return text, ()
    guess = require("charset_normalizer", "reading a file that is not UTF-8").from_bytes
    foreign = re.search(rb"[\x80-\xff]", raw)
    stretch = raw[max(foreign.start() - LEAD, 0) // 4 * 4 :] if foreign else raw
    found = guess(_sample(stretch)).best()
    high = sum(byte >= 0x80 for byte in stretch[:MAX_SAMPLE])
    letters = high + sum(byte | 0x20 in range(0x61, 0x7B) for byte in stretch[:MAX_SAMPLE])
    if b"\0" not in raw and high <= FOREIGN_SHARE * letters:
        words = set() if found is None else set(re.findall(r"[^\W\d_]+", str(found).lower()))
        if found is None or not any(word for word in words & _WORDS if not word.isascii()):
            with suppress(UnicodeDecodeError):
                return raw.decode("cp1252"), ("its encoding was guessed: cp1252",)
    if found is None:
        return _read(raw, "utf-8")
    text, notes = _read(raw, found.encoding)
    return text, (f"its encoding was guessed: {found.encoding}", *notes)


MAX_SAMPLE = 100_000
"""Bytes that are counted."""

MAX_GUESSED = 2**20
"""Bytes from which an encoding is guessed: that takes a hundred times as long as reading them."""


LEAD = 1_000
"""Bytes before the first one above ASCII from which a file is looked at."""


def _sample(stretch: bytes) -> bytes:
    """What an encoding is guessed from, cut where no character is."""
    if len(stretch) <= MAX_GUESSED:
        return stretch
    stretch = stretch[:MAX_GUESSED]
    end = 0 if b"\0" in stretch else max(stretch.rfind(b"\n"), stretch.rfind(b" "))
    return stretch[:end] if end > 0 else stretch


def _read(raw: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    text = raw.decode(encoding, "replace")
    lost = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
    return text, (f"bytes that are not {encoding} were replaced: {lost:,}",) if lost > 0 else ()


MAX_ROW = 64 * 2**20
"""Maximum bytes of a row."""

MAX_CHARS = 64 * 2**20
"""Maximum characters of a table that is one text: each of its rows repeats the names of the columns."""

OWN = ("id", "text", "title", "source", "url")
"""Columns whose names are case-insensitive."""

TEXTS = ("text", "content", "page_content", "body", "passage", "document", "chunk", "answer")
"""Names of the text column, in order of preference."""


def table_rows(source: str) -> tuple[Iterator[FileRow] | FileText, tuple[str, ...]]:
    """The rows of a file with the text as `text`, and notes on its encoding; the question of an answer is its title.

    A table without a column of texts is one text, with a line for each row.

    Raises:
        InputError: An unclosed quote.
    """
    text, notes = decode(Path(source).read_bytes())
    raw = text.encode("utf-8", "surrogatepass")
    first = next((line for line in raw.splitlines() if line.strip()), b"")
    heading = next(csv.reader([first.decode("utf-8", "replace")], delimiter=dialect(first)), [])
    plain = [name.strip().lower() for name in heading]
    column = "" if "passages" in plain else next((wanted for wanted in TEXTS if wanted in plain), None)
    rows = _rows(raw, source, column or "")
    if column is not None:
        return rows, notes
    parts, left = list[Part](), MAX_CHARS
    for row in rows:
        parts.append(_as_text(row))
        left -= len(parts[-1].text)
        if left < 0:
            notes = (*notes, f"it is read to row {row.number:,}, because it has over {MAX_CHARS:,} characters")
            break
    return FileText(tuple(parts), notes=notes), ()


def _as_text(row: FileRow) -> Part:
    """A row with the names of its columns; one that is unreadable is its error."""
    said = row.error or " | ".join(f"{name}: {_joined(cell)}" for name, cell in row.fields.items())
    return Part(said, f"row {row.number:,}")


def _rows(raw: bytes, source: str, column: str) -> Iterator[FileRow]:
    for number, line in enumerate(csv_lines(BytesIO(raw), source, MAX_ROW, any_columns=True), 1):
        row = read_line(number, line, number)
        if row is not None:
            yield row if row.error is not None else FileRow(number, _named(row.fields, column), None, number)


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
        parts.append(Part(_multiline(cell.get("source") or cell.get("input")), f"cell {number:,}"))
        for output in cell.get("outputs") or ():
            parts += (Part(text, f"output of cell {number:,}") for text in _outputs(output))
        parts += (Part(text, f"metadata of cell {number:,}", FOLDED) for text in _strings(cell.get("metadata")))
    return FileText(tuple(parts))


def _outputs(output: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an output; pictures are skipped."""
    yield _multiline(output.get("text"))
    for kind, data in (output.get("data") or {}).items():
        if kind == "text/html":
            yield "\n".join(part.text for part in read_page(_multiline(data)).parts)
        elif not kind.startswith("image/"):
            yield _multiline(data)
    yield _multiline(output.get("evalue"))


def _multiline(text: Any) -> str:
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
