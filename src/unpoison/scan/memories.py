"""A file of an agent's memories, as a scan reads it: what the agent may read today, with its origins and its time."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, clip
from unpoison.utils.sqlite import explain_errors

__all__ = ["APPLICATION", "PREFIX", "is_memory_file", "memory_rows"]

APPLICATION = int.from_bytes(b"unpm")
"""SQLite's own mark of files with an agent's memories."""

PREFIX = "sqlite-memory:"
"""In front of a path: the file holds memories, whatever it is called."""

DATABASE = b"SQLite format 3\0"
"""How a SQLite file begins."""


def is_memory_file(source: str) -> bool:
    """Whether a string names a file of memories: by its prefix, or a database, of which no other kind is scanned."""
    if source.startswith(PREFIX):
        return True
    try:
        with Path(source).open("rb") as file:
            return file.read(len(DATABASE)) == DATABASE
    except (OSError, ValueError):  # whoever reads it says so
        return False


def memory_rows(source: str) -> Iterator[Mapping[str, Any]]:
    """A row for each memory that is not set aside: id, text, source, time. The file is only read.

    Raises:
        InputError: There is no such file, or it holds no memories.
        StoreError: It cannot be read.
    """
    path = Path(source.removeprefix(PREFIX))
    if not path.is_file():
        raise InputError(f"there is no {path}; name the file that holds the memories")
    with explain_errors(f"the file of memories {clip(str(path), 200)}"):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
                raise InputError(f"{path} holds no memories of an agent; name the file that a MemoryGate writes")
            connection.execute("PRAGMA trusted_schema = OFF")
            rows = connection.execute(
                "SELECT namespace, id, text, sources, written FROM memories WHERE state IN ('live', 'released') "
                "ORDER BY namespace, written, id"
            )
            for namespace, name, text, sources, written in rows:
                row = {"id": name, "text": text, "added_at": written, "metadata": {"namespace": namespace}}
                yield {**row, "source": _first(sources)}
        finally:
            connection.close()


def _first(sources: str) -> str | None:
    try:
        read = json.loads(sources)
    except (ValueError, TypeError):
        return None
    return read[0] if isinstance(read, list) and read and isinstance(read[0], str) else None
