"""The strings of a source file, in an order that only its bytes decide; nothing in it is run.

A recipe points at strings by their number, so what a reader gives is part of the recipes' format: a change of it needs
new recipes.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from unpoison.errors import InputError

__all__ = ["FORMS", "MAX_UNPACKED", "strings"]

MAX_UNPACKED = 64 << 20
"""Bytes of a packed file, unpacked; the largest source has 4 MiB packed."""

MAX_WHOLE = 1 << 18
"""Bytes of a JSON file that is also given as one string, on one line, after its own."""

MAX_MEMBERS = 1000
"""Files of one archive."""


_SOLID = re.compile(r"[^ \t\r\n]")


def _one_line(text: str) -> str:
    return " ".join(text.split())


FORMS: dict[str, Callable[[str], str]] = {
    "": lambda text: text,
    "line": _one_line,
    "link": lambda text: unquote(text).replace("_", " "),
    "lower": str.lower,
}
"""What may be done to a source's string before a part of it is taken: nothing; white space made single spaces; a link
made the title that it leads to; small letters."""


def strings(data: bytes, path: str) -> list[str]:
    """Every string of a file, in the order of its bytes.

    Args:
        data: The file.
        path: Its name; the suffix says how it is read: `.json` and `.jsonl` (keys and string values; a small
            file of one value also as a whole, on one line), `.csv` (cells),
            `.gz` and `.zip` (what is in them), anything else as one UTF-8 text whose broken bytes become U+FFFD.

    Raises:
        InputError: The file is not what its name says, or larger unpacked than `MAX_UNPACKED`.
    """
    try:
        return list(_strings(data, path))
    except (ValueError, RecursionError, csv.Error, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as what its name says ({error}); get it again") from None


def _strings(data: bytes, path: str) -> Iterator[str]:
    name = PurePosixPath(path)
    match name.suffix.lower():
        case ".gz":
            yield from _strings(_unpacked(data, path), str(name.with_suffix("")))
        case ".zip":
            yield from _members(data, path)
        case ".json" | ".jsonl" | ".ipynb":
            values = list(_values(data.decode("utf-8-sig")))
            for value in values:
                yield from _leaves(value)
            if len(values) == 1 and len(data) <= MAX_WHOLE:
                yield json.dumps(values[0], ensure_ascii=False)
        case ".csv":
            for row in csv.reader(io.StringIO(data.decode("utf-8-sig", "replace"), newline="")):
                yield from row
        case _:
            yield data.decode("utf-8", "replace")


def _values(text: str) -> Iterator[object]:
    """One JSON value, or several one behind the other: some files called `.json` are JSON Lines."""
    decoder, at = json.JSONDecoder(), 0
    while (begin := _SOLID.search(text, at)) is not None:
        value, at = decoder.raw_decode(text, begin.start())
        yield value


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)


def _unpacked(data: bytes, path: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    content = unpacker.decompress(data, MAX_UNPACKED)
    if unpacker.unconsumed_tail:
        raise InputError(f"{path} holds more than {MAX_UNPACKED:,} bytes unpacked; it is not the file that was pinned")
    if not unpacker.eof:
        raise InputError(f"{path} ends in the middle; get it again")
    return content


def _members(data: bytes, path: str) -> Iterator[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) > MAX_MEMBERS or sum(member.file_size for member in members) > MAX_UNPACKED:
            raise InputError(f"{path} holds more than {MAX_MEMBERS:,} files or {MAX_UNPACKED:,} bytes")
        for member in members:
            with archive.open(member) as stream:
                content = stream.read(member.file_size + 1)
            yield from _strings(content, member.filename)
