"""Rebuilds an evaluation file from a recipe: rows without texts, and where each text stands in public files.

A recipe holds no passage and no question. Its rows have `null` where a text belongs; every text is a list of parts,
each a stretch of one string of a source file, with at most a few characters of ours between them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

MAX_UNPACKED = 64 << 20
"""Bytes of a packed source file, unpacked; the largest has 4 MiB packed."""

MAX_WHOLE = 1 << 18
"""Bytes of a JSON file that is also given as one string, after its own."""

FORMS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: " ".join(text.split()),
    lambda text: unquote(text).replace("_", " "),
    str.lower,
)
"""What is done to a source's string before a part of it is taken; a recipe names a form by its number."""


class SourceFile(NamedTuple):
    """One file of a public repository at a pinned commit, with its size and SHA-256."""

    repository: str
    commit: str
    path: str
    bytes: int
    sha256: str


class Recipe:
    """What a recipe's file holds.

    Attributes:
        sources: The files that the texts stand in.
        literals: Characters of ours.
    """

    def __init__(self, packed: bytes) -> None:
        self._content = json.loads(lzma.decompress(packed))
        commits = list(self._content["commits"].items())
        self.sources = [SourceFile(*commits[number], *rest) for number, *rest in self._content["files"]]
        self.literals: list[str] = self._content["literals"]

    def rebuild(self, strings: Sequence[Sequence[str]]) -> bytes:
        """The evaluation file as JSON Lines.

        Args:
            strings: For each of `sources`, what `strings_of` reads in it.
        """
        texts = iter(self._texts(strings))
        rows = (_with_ids(_filled(row, texts), self._content["ids"]) for row in self._content["rows"])
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()

    def _texts(self, strings: Sequence[Sequence[str]]) -> Iterator[str]:
        """The text of each `null`, in order."""
        content, made = self._content, list[str]()
        columns = (
            accumulate(content["sources"]),
            accumulate(content["numbers"]),
            content["forms"],
            content["starts"],
            content["stops"],
        )
        parts = (self._part(strings, *column) for column in zip(*columns, strict=True))
        lengths = iter(content["lengths"])
        for back in content["texts"]:  # 0 is the next new text, else how many texts back
            if not back:
                made.append("".join(next(parts) for _ in range(next(lengths))))
            yield made[-back] if back else made[-1]

    def _part(
        self, strings: Sequence[Sequence[str]], source: int, number: int, form: int, start: int, length: int
    ) -> str:
        if source < 0:
            return self.literals[number]
        text = FORMS[form](strings[source][number])
        return text[start : start + length if length else None]


def _filled(value: Any, texts: Iterator[str]) -> Any:
    if value is None:
        return next(texts)
    if isinstance(value, dict):
        return {key: _filled(inner, texts) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, texts) for inner in value]
    return value


def _with_ids(row: dict[str, Any], rule: dict[str, Any] | None) -> dict[str, Any]:
    """The row with the ids that follow from its texts, and `ID#0`, `ID#1`, ... of its passages."""
    if row.get("id") == "" and rule is not None:
        digest = hashlib.sha256("".join(row[field] for field in rule["of"]).encode()).hexdigest()
        row["id"] = f"{rule['prefix']}{digest[: rule['length']]}"
    for position, passage in enumerate(row.get("passages", ())):
        if passage.get("id") == "":
            passage["id"] = f"{row['id']}#{position}"
    return row


def strings_of(data: bytes, path: str) -> Iterator[str]:
    """Every string of a source file, in the order of its bytes; the suffix says how it is read, nothing is run.

    Raises:
        ValueError: The file is not what its name says, or too large unpacked.
    """
    name = PurePosixPath(path)
    match name.suffix.lower():
        case ".gz":
            unpacker = zlib.decompressobj(wbits=31)
            content = unpacker.decompress(data, MAX_UNPACKED)
            if unpacker.unconsumed_tail or not unpacker.eof:
                raise ValueError(f"{path} is cut or holds more than {MAX_UNPACKED:,} bytes; it is not the pinned file")
            yield from strings_of(content, str(name.with_suffix("")))
        case ".zip":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [member for member in archive.infolist() if not member.is_dir()]
                if sum(member.file_size for member in members) > MAX_UNPACKED:
                    raise ValueError(f"{path} holds more than {MAX_UNPACKED:,} bytes; it is not the pinned file")
                for member in members:
                    yield from strings_of(archive.read(member), member.filename)
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
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        else:
            value, at = decoder.raw_decode(text, at)
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
