"""An index in one file: an uncompressed zip, readable by `numpy.load`, with vectors as npy and passages as JSON Lines.

    index.json       {"format": 1, "encoder": name}
    vectors.npy      float32, shape (n, d), rows of length 1 or 0, or as a dot-product encoder makes them
    passages.jsonl   one object for each row: id, text, and title and source where there are any

One file, because two could not be replaced in one step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import TextIOWrapper
from os import PathLike
from pathlib import Path
from typing import IO, Any
from uuid import uuid4
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from unpoison.core.passages import Passage
from unpoison.errors import InputError, clip

__all__ = ["read_index", "write_index"]

FORMAT = 1
"""Of the file; one of another format is refused."""
NAMES = ("index.json", "vectors.npy", "passages.jsonl")
MAX_HEADER_BYTES = 10_000
"""Bytes of `index.json`; it holds a format and a name."""

Matrix = NDArray[np.float32]


def write_index(path: str | PathLike[str], encoder: str, matrix: Matrix, passages: Iterable[Passage]) -> None:
    """Write an index beside its place, see it on the disk, and only then put it there.

    Equal indexes make equal bytes.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with ZipFile(file, "w", ZIP_STORED) as archive:
                header, vectors, texts = (ZipInfo(name) for name in NAMES)  # dated 1980, whenever they are made
                archive.writestr(header, json.dumps({"format": FORMAT, "encoder": encoder}))
                with archive.open(vectors, "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.ascontiguousarray(matrix), allow_pickle=False)
                with archive.open(texts, "w", force_zip64=True) as member:
                    member.writelines(_line(passage) for passage in passages)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def read_index(path: str | PathLike[str], *, unit: bool = True) -> tuple[str, Matrix, list[Passage]]:
    """The encoder's name, the vectors and the passages.

    The file is hostile: members must be stored as they are, so that none is larger than the file, and the vectors'
    header must agree with their size before memory is taken for them.

    Args:
        path: The file.
        unit: Whether every vector must have length 1 or 0; else it must only be finite.

    Raises:
        InputError: Damaged, or no such index.
        OSError: The file cannot be read.
    """
    with Path(path).open("rb") as file:
        try:
            return _members(file, unit)
        except (_UnusableError, InputError, BadZipFile, ValueError, KeyError, EOFError, RuntimeError, OSError) as error:
            problem = " ".join(str(error).split())
            raise InputError(
                f"{clip(str(path), 200)} is no saved index: {clip(problem, 200)}; index the passages anew"
            ) from None


def _members(file: IO[bytes], unit: bool) -> tuple[str, Matrix, list[Passage]]:
    with ZipFile(file) as archive:
        if sorted(archive.namelist()) != sorted(NAMES):
            raise _UnusableError(f"it holds {clip(archive.namelist())}")
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise _UnusableError("it is compressed")
        encoder = _header(archive)
        with archive.open(NAMES[1]) as member:
            matrix = _vectors(member, archive.getinfo(NAMES[1]).file_size, unit)
        with archive.open(NAMES[2]) as member:
            passages = list(_passages(member))
    if len(passages) != len(matrix):
        raise _UnusableError(f"it holds {len(matrix):,} vectors and {len(passages):,} passages")
    return encoder, matrix, passages


class _UnusableError(Exception):
    """What is wrong with the file."""


def _line(passage: Passage) -> bytes:
    fields = {name: getattr(passage, name) for name in ("id", "text", "title", "source")}
    fields["metadata"] = dict(passage.metadata) or None
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode("ascii") + b"\n"


def _header(archive: ZipFile) -> str:
    with archive.open(NAMES[0]) as member:
        header: Any = json.loads(member.read(MAX_HEADER_BYTES))
    if not isinstance(header, dict) or not isinstance(header.get("encoder"), str):
        raise _UnusableError("index.json names no encoder")
    if header.get("format") != FORMAT:
        raise _UnusableError(f"its format is {clip(header.get('format'))}, and this version knows {FORMAT}")
    return str(header["encoder"])


def _vectors(member: IO[bytes], size: int, unit: bool) -> Matrix:
    version = np.lib.format.read_magic(member)
    if version != (1, 0):
        raise _UnusableError(f"vectors.npy has version {version}")
    shape, by_column, kind = np.lib.format.read_array_header_1_0(member)
    if len(shape) != 2 or by_column or kind != np.dtype("<f4"):
        raise _UnusableError(f"vectors.npy holds {kind}, shape {shape}")
    if min(shape) < 0 or (shape[0] and not shape[1]):  # rows of nothing fit in no bytes and take memory all the same
        raise _UnusableError(f"vectors.npy has the shape {shape}")
    if shape[0] * shape[1] * kind.itemsize != size - member.tell():
        raise _UnusableError(f"vectors.npy has {size:,} bytes, which is not what shape {shape} takes")
    content = member.read()
    matrix = np.frombuffer(content, kind).reshape(shape)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(matrix, axis=1)
    if not unit and not np.isfinite(lengths).all():
        raise _UnusableError("its vectors are not finite")
    if unit and not (np.isclose(lengths, 1.0, atol=1e-3) | (lengths == 0)).all():
        raise _UnusableError("its vectors are not of length 1")
    return matrix.astype(np.float32, copy=False)


def _passages(member: IO[bytes]) -> Iterator[Passage]:
    seen = set[str]()
    for number, line in enumerate(TextIOWrapper(member, "ascii"), 1):
        row = json.loads(line)
        fields = row.keys() if isinstance(row, dict) else set()
        if not {"id", "text"} <= fields <= {"id", "text", "title", "source", "metadata"} or not isinstance(
            row["id"], str
        ):
            raise _UnusableError(f"line {number} of passages.jsonl is no passage")
        if row["id"] in seen:
            raise _UnusableError(f"line {number} of passages.jsonl has the id {clip(row['id'])} again")
        seen.add(row["id"])
        yield Passage(**row)
