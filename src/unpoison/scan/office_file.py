"""Code shared by the readers of PDF, DOCX and XLSX files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from unpoison.errors import InputError
from unpoison.scan.hidden_text import MIN_WORDS

__all__ = ["MIN_POINTS", "OfficeFile", "check_unpacked", "hidden_lines", "lines_of"]

MIN_POINTS = 2.0
"""Smallest visible font size, in points."""


class OfficeFile(NamedTuple):
    """A document.

    Attributes:
        title: From its properties; None without one.
        author: The same.
        text: The visible text.
        hidden: Hidden lines of four words or more.
        notes: Warnings about skipped parts.
    """

    title: str | None
    author: str | None
    text: str
    hidden: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_unpacked(path: Path, most: int) -> None:
    """Refuse a zipped file that unpacks to more than `most` bytes.

    Raises:
        InputError: It is larger.
    """
    with ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > most:
        raise InputError(f"it unpacks to {size:,} bytes, more than {most // 2**20} MiB; split it")


def lines_of(text: str) -> list[str]:
    """The lines that are not empty, with single spaces."""
    return [line for line in (" ".join(line.split()) for line in text.split("\n")) if line]


def hidden_lines(texts: Iterable[str]) -> tuple[str, ...]:
    """The lines of `MIN_WORDS` words or more."""
    return tuple(line for text in texts for line in lines_of(text) if len(line.split()) >= MIN_WORDS)
