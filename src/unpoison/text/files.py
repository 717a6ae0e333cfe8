"""Files as bytes, in base64, in hexadecimal digits or as a data URL, which programs and models decode.

A text is read in every encoding that a program may take it for. A picture, sound, film or PDF file is known by its
structure and by what it is said to be; any other file is unread. Text in pixels, in sounds and in packed parts is out
of reach.
"""

from __future__ import annotations

import codecs
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_plus, unquote_to_bytes

from unpoison.text.tokens import word_list
from unpoison.utils.extras import require

__all__ = ["BASE64", "MEDIA", "MIN_CHARS", "TEXT", "File", "decode", "file_of", "octets_of", "readings_of", "text_of"]

TEXT, SHOWN, PDF = (
    "text",
    "picture, sound or film, whose text is not read,",
    "PDF file, whose packed parts are not read,",
)
PACKED, UNKNOWN = "packed file", "file of an unknown type"

ENCODINGS = ("cp1252", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "cp037", "cp1251", "koi8-r", "cp1253",
             "cp1255", "cp1256", "iso2022_jp", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr")  # fmt: skip
"""What a text that is no UTF-8 is read as; cp037 is EBCDIC."""

MIN_CHARS, LONG = 64, 1_000
"""Characters from which base64 in any field is a file, and from which it is no text as it stands."""

MAX_TEXT, MAX_PRINTED = 4_000_000, 200_000
"""Bytes of a file that is read in other encodings than UTF-8; characters between binary data that are read."""

MEDIA, ANY = ("image", "audio", "video"), ("", "file", "application/octet-stream", "binary/octet-stream")

BASE64 = re.compile(r"\s*+(?:[A-Za-z0-9+/_-]{16,}+\s++)*+[A-Za-z0-9+/_-]*+\s*+={0,2}+\s*+")
"""In one line or wrapped."""

_URL = re.compile(
    r"\s*data:(?:([^,;]{0,100})[^,]{0,200}(;\s*base64)\s*,|([\w.+-]{1,60}/[\w.+-]{1,60}|)(?:;[^,]{0,200})?,)",
    re.IGNORECASE,
)
"""A data URL in base64, or in percents, until its content."""
_NOTES = re.compile(r";(?!\s*(?:charset=[\w-]{1,32}\s*[;,]|base64\s*,))[^;,]*", re.IGNORECASE)
"""Parameters of a data URL that do not say how to read it."""
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]+")
_HEXADECIMAL = re.compile(r"\s*+(?:0x)?(?:[0-9A-Fa-f]{2}\s*+)++")
_NOT_UTF8 = re.compile("[\ufffd\x01-\x08\x0e-\x1f]+")
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ue000-\uf8ff\ufffd]")
_SAID = re.compile(r"[\w\s\x20-\x7e\u2010-\u2026\u3000-\u301f\uff00-\uff20]+")
_PRINTED = re.compile(rb"[\t\n\r -~]{24,}")
"""A text between binary data."""

_EBCDIC = bytes(ord(said) if said.isascii() and (said.isalnum() or said in " .,;:!?'\"()-@/") else 0
                for said in bytes(range(256)).decode("cp037"))  # fmt: skip

_SHOWN = re.compile(
    rb"\x89PNG\r\n\x1a\n\0{3}\rIHDR.*IEND\xaeB`\x82|\xff\xd8\xff.*\xff\xd9|GIF8[79]a.*;\0{0,9}\Z|BM.{4}\0{4}|\0.{3}ftyp"
    rb"|RIFF.{4}(?:WEBPVP8|WAVE|AVI LIST)|ID3[\2-\4]|OggS\0|fLaC\0|FORM.{4}AIF|\x1aE\xdf\xa3.{1,40}(?:webm|matroska)",
    re.DOTALL,
)
_SHOWN_IF_SAID = re.compile(rb"II\*\0|MM\0\*|\0\0[\1\2]\0|\xff[\xe2\xe3\xf1-\xf3\xf9-\xfb]|\x1aE\xdf\xa3")
"""Beginnings that any file may have."""

_PACKED = re.compile(rb"PK\x03\x04|\x1f\x8b\x08|BZh[1-9]1AY|\xfd7zXZ\0|7z\xbc\xaf|\(\xb5/\xfd")
_PDF_END = re.compile(rb"startxref\s{1,9}\d{1,12}\s{1,9}%%EOF")


class File(NamedTuple):
    """A file in a result.

    Attributes:
        kind: What it is.
        texts: What a text says, in each encoding that it may have; of another file what is printed in it.
        unread: Whether it is said to be a file, and is neither read nor shown.
        plain: Whether it is also read as it stands.
        written: A text in the place of it: in its encoding, its base64 and its data URL.
        named: Whether it is a text that is said to be a file, so that only such a one can stand in its place.
    """

    kind: str
    texts: tuple[str, ...]
    unread: bool
    plain: bool
    written: Callable[[str], str]
    named: bool = False


def file_of(value: str | bytes, said: str | None) -> File | None:
    """The file that a value is; None if it is none.

    Args:
        value: Bytes, or a text.
        said: The MIME type that is said of it, or one of `MEDIA`; "" if it is said to be a file; None if nothing is.

    Complexity: O(n) time for n characters.
    """
    if isinstance(value, bytes):
        return _made(value, said or "", said is not None, bytes.decode)._replace(written=str)
    url = _URL.match(value)
    body, head = (value[url.end() :], _NOTES.sub("", url[0])) if url else (value, "")
    notes = tuple(filter(None, [unquote_plus("".join(_NOTES.findall(url[0])))])) if url else ()
    said = (url[1] or url[3] or "").strip().lower() if url and said not in MEDIA else said
    if url and not url[2]:
        found = _made(unquote_to_bytes(body), said or "", True, lambda data: head + quote_from_bytes(data))
        return found._replace(plain=True, texts=found.texts + notes)
    exact = BASE64.fullmatch(body) is not None
    if said is None and (len(value) < MIN_CHARS or not (exact or _HEXADECIMAL.fullmatch(body))):
        return None
    found = _made(octets_of(body), said or "", said is not None, lambda data: head + b64encode(data).decode())
    if not head and len(body) >= MIN_CHARS and _HEXADECIMAL.fullmatch(body):
        inner = _made(bytes.fromhex(body.strip().removeprefix("0x")), said or "", False, bytes.hex)
        if inner.kind == TEXT:
            found = inner._replace(texts=inner.texts + (found.texts if found.kind == TEXT else ()))
    if said is None and found.kind != TEXT and len(value) < LONG:
        return None
    named = said is not None and found.kind == TEXT
    plain = not exact or (said is None and len(value) < LONG)
    return found._replace(plain=plain, named=named, texts=found.texts + notes)


def octets_of(encoded: str) -> bytes:
    """The octets of base64; what is not of the alphabet is left out, and what is too short at the end."""
    body = _NOT_BASE64.sub("", encoded.replace("-", "+").replace("_", "/"))
    body = body[: len(body) - (len(body) % 4 == 1)]
    return b64decode(body + "=" * (-len(body) % 4))


def readings_of(data: bytes) -> list[str]:
    """What bytes say in each encoding that they may have; nothing if they are no text."""
    return [text for _, text in _readings(data, _kind(data, ""))]


def text_of(data: bytes) -> str | None:
    """Bytes as UTF-8 without NULs, even if some are invalid; None if over a third are, as in images and archives."""
    text = data.replace(b"\0", b"").decode(errors="replace")
    return None if 3 * len(_NOT_UTF8.sub("", text)) < 2 * len(text) else text


def _made(data: bytes, said: str, sure: bool, write: Callable[[bytes], str]) -> File:
    kind = _kind(data, said)
    readings = dict(_readings(data, kind))
    if readings and kind not in (SHOWN, PDF):
        name = next(iter(readings)) if len(readings) == 1 else "utf-8"
        return File(TEXT, tuple(readings.values()), False, False, lambda text: write(text.encode(name, "replace")))
    if not readings and not (said in MEDIA and kind == SHOWN):
        readings = {"ascii": _printed(data.replace(b"\0", b"")), "cp037": _printed(data.translate(_EBCDIC))}
    return File(kind, tuple(filter(None, readings.values())), sure and kind in (PACKED, UNKNOWN), False, str)


def _printed(data: bytes) -> str:
    """The texts between binary data, of which some hosts show everything."""
    return b"\n".join(_PRINTED.findall(data)).decode("ascii")[:MAX_PRINTED]


def _kind(data: bytes, said: str) -> str:
    """What a binary file is; one that is said to be something else is unknown, for a host may believe that."""
    media = said.startswith(MEDIA) or said in ("application/ogg", "application/mp4")
    if (media or said in ANY) and (_SHOWN.match(data) or (media and _SHOWN_IF_SAID.match(data))):
        return SHOWN
    if data.startswith(b"%PDF-") and ("pdf" in said or said in ANY) and b" obj" in data:
        return PDF if _PDF_END.search(data[-4_096:]) else UNKNOWN
    return PACKED if _PACKED.match(data) else UNKNOWN


def _readings(data: bytes, kind: str) -> Iterator[tuple[str, str]]:
    """Each encoding that bytes may have, and the text; none if they are no text."""
    plain, bare = text_of(data), data.replace(b"\0", b"")
    if plain is not None:
        yield "utf-8", plain
        if "\ufffd" not in plain and b"\x1b" not in data:
            return
        bare = b"\n".join(line for line in bare.split(b"\n") if not line.isascii() or b"\x1b" in line)
    if kind in (SHOWN, PDF) or len(data) > MAX_TEXT:
        return
    found = set[str]()
    for name in ENCODINGS:
        with suppress(UnicodeDecodeError):
            text = (data if name.startswith("utf") else bare).decode(name)
            if 33 * len(_CONTROL.findall(text)) <= len(text) and 10 * len(_SAID.sub("", text)) <= len(text):
                found.add(name[:3])
                yield name, text
    if "utf" not in found and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        yield "utf-16", data.decode("utf-16", "replace")
    if (found or plain is not None) and "cp0" not in found and (printed := _printed(data.translate(_EBCDIC))):
        yield "printed", printed


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

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


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
    if not _CONTROLS.search(text):
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
