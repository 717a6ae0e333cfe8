"""Which characters a file's bytes stand for: its byte order mark, what it declares, then a guess."""

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
"""The longer marks first: one begins with another."""

MAX_HEAD = 4_096
"""Bytes in which a declaration stands."""

_DECLARED = re.compile(
    rb"<\?xml[^>]{1,200}encoding\s{0,9}=\s{0,9}[\"']([\w.:-]{1,40})"
    rb"|<meta[^>]{1,200}charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})"
    rb"|^content-type:[^\n]{1,200}charset\s{0,9}=\s{0,9}\"?([\w.:-]{1,40})",
    re.IGNORECASE | re.MULTILINE,
)
"""An XML declaration, `<meta charset>` or its older form, the header of a mail."""

_AS_BROWSERS = {"iso8859-1": "cp1252", "ascii": "cp1252"}
"""What declares the one is written in the other."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def decode(raw: bytes) -> tuple[str, tuple[str, ...]]:
    """A file's text, and what was guessed or lost.

    In this order: the byte order mark; what the file declares, where its bytes fit; UTF-8, where they fit and hold no
    control characters; the guess of `charset-normalizer`; UTF-8 with replacements.

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
            note = (f"it declares {name}, which it is not",)
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
    found = require("charset_normalizer", "reading a file that is no UTF-8").from_bytes(raw).best()
    if found is None:
        return _read(raw, "utf-8")
    return str(found), (f"its encoding was guessed: {found.encoding}",)


def _read(raw: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    text = raw.decode(encoding, "replace")
    lost = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
    return text, (f"bytes that are no {encoding} were replaced: {lost:,}",) if lost > 0 else ()
