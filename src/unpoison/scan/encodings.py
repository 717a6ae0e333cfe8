"""Decodes files: by byte order mark, by declared encoding, or by a guess."""

from __future__ import annotations

import codecs
import re

from unpoison.utils.extras import require

__all__ = ["decode"]

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
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

    In this order: the byte order mark; a valid declared encoding; valid UTF-8 without control characters; the guess of
    `charset-normalizer`; UTF-8 with replacements.

    Raises:
        MissingExtraError: A guess is needed, and charset-normalizer is not installed.
    """
    for mark, encoding in MARKS:
        if raw.startswith(mark):
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


def _guess(raw: bytes) -> tuple[str, tuple[str, ...]]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not _CONTROL.search(text):
        return text, ()
    found = require("charset_normalizer", "reading a file that is not UTF-8").from_bytes(raw).best()
    if found is None:
        return _read(raw, "utf-8")
    return str(found), (f"its encoding was guessed: {found.encoding}",)


def _read(raw: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    text = raw.decode(encoding, "replace")
    lost = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
    return text, (f"bytes that are not {encoding} were replaced: {lost:,}",) if lost > 0 else ()
