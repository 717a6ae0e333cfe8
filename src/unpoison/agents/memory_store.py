"""Where memories are kept: a SQLite file, the default, or anything that keeps texts by their keys.

A store keeps what it is given. What may be read, and what outranks what, is for `MemoryGate` to say.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, Self, get_args
from uuid import uuid4

from unpoison.beliefs.store import check_namespace
from unpoison.errors import InputError, clip
from unpoison.sources.trust import Level, trust
from unpoison.utils.sqlite import Connected, connect, explain_errors, transaction

__all__ = ["KeyValueMemories", "KeyValues", "Memory", "MemoryStore", "SqliteMemories", "State", "Stored"]

State = Literal["live", "released", "quarantined", "removed"]
"""Read; read since somebody put it back; set aside until somebody does; taken out by a rollback, and kept."""

MAX_JOURNAL = 100_000
"""Entries that a journal keeps, the newest."""

TRIM_EVERY = 1_000
"""Entries after which the oldest of a store of keys are dropped."""

APPLICATION = int.from_bytes(b"unpm")
"""SQLite's own mark of files with an agent's memories."""

BUSY = 10.0
"""Seconds to wait for another process that holds the file."""

LEVELS, STATES = get_args(Level), get_args(State)
COLUMNS = ("id", "key", "text", "level", "trust", "sources", "derived_from", "written", "state", "code")


@dataclass(frozen=True, slots=True)
class Memory:
    """One version of one memory; it never changes but for its state.

    Attributes:
        id: Its name.
        key: What it is a version of; equal to `id` where nobody named it.
        text: What it says.
        level, trust: Those of the least trusted text that it was made from.
        sources: Addresses and names of all that it was made from.
        derived_from: Ids of the memories that it was made from.
        written: Seconds since 1970; no two of a store are equal.
        state: Whether it may be read.
        code: Why it is set aside or taken out, as a reason's code; empty for what may be read.
    """

    id: str
    key: str
    text: str
    level: Level
    trust: float
    sources: tuple[str, ...]
    derived_from: tuple[str, ...]
    written: float
    state: State = "live"
    code: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote. A level that weighs less than the trust beside it is the one that holds.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            values = [fields[name] for name in COLUMNS]
            name, key, text, level, weight, sources, derived_from, written, state, code = values
            weight, written = float(weight), float(written)
            sources, derived_from = tuple(sources), tuple(derived_from)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(f"{clip(fields)} is no memory; restore it") from None
        texts = (name, key, text, level, state, code, *sources, *derived_from)
        if not all(isinstance(one, str) for one in texts) or level not in LEVELS or state not in STATES:
            raise InputError(f"{clip(fields)} is no memory; restore it")
        if not isfinite(written) or not 0 <= weight <= 1:
            raise InputError(f"{clip(fields)} is no memory: its numbers are out of their range; restore it")
        weight = weight if level == "seen" else min(weight, trust(level))
        return cls(name, key, text, level, weight, sources, derived_from, written, state, code)


class Stored(NamedTuple):
    """What a store holds: memories in the order in which they were written, and how many records are none."""

    memories: list[Memory]
    broken: int


class MemoryStore(Protocol):
    """What `MemoryGate` needs of a store."""

    def load(self) -> Stored:
        """Everything."""
        ...

    def commit(self, memories: Sequence[Memory], dropped: Sequence[str], entry: Mapping[str, Any]) -> None:
        """Write memories, in the place of those with their ids, drop others by id, and one entry of the journal."""
        ...

    def journal(self) -> list[dict[str, Any]]:
        """What was done, in its order; the newest `MAX_JOURNAL` entries."""
        ...


_Mark = tuple[sqlite3.Connection, int, int]


class SqliteMemories(Connected):
    """Memories in a SQLite file, made where there is none, for its owner alone. Shared by threads and processes.

    Args:
        path: The file; None for memory. Not on a network drive.
        namespace: Whose they are: another namespace of the file sees none of them.

    Raises:
        OptionError: A namespace that cannot be one.
        InputError: The file is damaged, holds something else, or was made by a newer version.
        StoreError: It cannot be opened.
    """

    def __init__(self, path: str | Path | None = None, *, namespace: str = "default") -> None:
        super().__init__()
        self.path = None if path is None else Path(path)
        self.in_memory = path is None
        self.namespace = check_namespace(namespace)
        self._loaded: tuple[_Mark, Stored] | None = None
        with self._open_connection():
            pass

    def load(self) -> Stored:
        """Everything; from memory where nobody has written to the file since."""
        with self._open_connection() as connection:
            mark = self._mark(connection)
            if self._loaded is None or self._loaded[0] != mark:
                rows = connection.execute(_SELECT, (self.namespace,)).fetchall()
                self._loaded = mark, _read(dict(zip(COLUMNS, row)) for row in rows)
            found = self._loaded[1]
        return Stored(found.memories[:], found.broken)

    def commit(self, memories: Sequence[Memory], dropped: Sequence[str], entry: Mapping[str, Any]) -> None:
        rows = [(self.namespace, *(_cell(value) for value in memory.to_dict().values())) for memory in memories]
        with self._open_connection() as connection:
            known = self._loaded if self._loaded is not None and self._loaded[0] == self._mark(connection) else None
            with transaction(connection):
                connection.executemany(_INSERT, rows)
                connection.executemany(
                    "DELETE FROM memories WHERE namespace = ? AND id = ?", [(self.namespace, name) for name in dropped]
                )
                number = connection.execute(
                    "INSERT INTO journal (namespace, entry) VALUES (?, ?)", (self.namespace, json.dumps(dict(entry)))
                ).lastrowid
                connection.execute("DELETE FROM journal WHERE number <= ?", ((number or 0) - MAX_JOURNAL,))
            if known is not None:
                mark = connection, known[0][1], connection.total_changes
                self._loaded = mark, _change(known[1], memories, dropped)

    def _mark(self, connection: sqlite3.Connection) -> _Mark:
        """What differs after every change, of this connection or of any other one."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        return connection, version, connection.total_changes

    def journal(self) -> list[dict[str, Any]]:
        with self._open_connection() as connection:
            rows = connection.execute(
                "SELECT entry FROM journal WHERE namespace = ? ORDER BY number", (self.namespace,)
            )
            return [json.loads(entry) for (entry,) in rows]

    def _connect(self) -> sqlite3.Connection:
        return connect(
            self.path, _MIGRATIONS, wait=BUSY, application=APPLICATION, name=self._address, kind="file of memories"
        )

    def _translate_errors(self) -> AbstractContextManager[None]:
        return explain_errors(f"the file of memories {self._address}")

    @property
    def _address(self) -> str:
        return "in memory" if self.path is None else clip(str(self.path), 200)

    def __repr__(self) -> str:
        return f"SqliteMemories({None if self.path is None else str(self.path)!r}, namespace={self.namespace!r})"


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE memories (namespace TEXT NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL,"
        " level TEXT NOT NULL, trust REAL NOT NULL, sources TEXT NOT NULL, derived_from TEXT NOT NULL,"
        " written REAL NOT NULL, state TEXT NOT NULL, code TEXT NOT NULL, PRIMARY KEY (namespace, id)) WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE journal (number INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, entry TEXT NOT NULL)"
    )


_MIGRATIONS = (_make_tables,)
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM memories WHERE namespace = ? ORDER BY written, id"  # noqa: S608
_INSERT = f"INSERT OR REPLACE INTO memories (namespace, {', '.join(COLUMNS)}) VALUES (?{', ?' * len(COLUMNS)})"  # noqa: S608


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else value


class KeyValues(Protocol):
    """Anything that keeps texts by their keys: four methods make it a store of memories.

    Over Redis, for instance:

        class RedisValues:
            def __init__(self, client):
                self.client = client

            def get(self, key):
                return self.client.get(key)

            def put(self, key, value):
                self.client.set(key, value)

            def delete(self, key):
                self.client.delete(key)

            def keys(self, prefix):
                return self.client.scan_iter(match=prefix + "*")

        gate = MemoryGate(KeyValueMemories(RedisValues(Redis(decode_responses=True))))
    """

    def get(self, key: str) -> str | None:
        """The text of a key; None where there is none."""
        ...

    def put(self, key: str, value: str) -> None:
        """Keep a text."""
        ...

    def delete(self, key: str) -> None:
        """Keep it no longer."""
        ...

    def keys(self, prefix: str) -> Iterable[str]:
        """All keys that begin so."""
        ...


class KeyValueMemories:
    """Memories in a store of keys and texts, each as JSON. The journal is written before what it speaks of.

    Args:
        values: The store.
        namespace: As for `SqliteMemories`.
    """

    def __init__(self, values: KeyValues, *, namespace: str = "default") -> None:
        self._values = values
        self.namespace = check_namespace(namespace)
        self._memories, self._journal = f"unpoison/{namespace}/memory/", f"unpoison/{namespace}/journal/"
        self._written = 0

    def load(self) -> Stored:
        found = _read(map(self._record, list(self._values.keys(self._memories))))
        found.memories.sort(key=lambda memory: (memory.written, memory.id))
        return found

    def commit(self, memories: Sequence[Memory], dropped: Sequence[str], entry: Mapping[str, Any]) -> None:
        self._values.put(f"{self._journal}{time.time_ns():020}-{uuid4().hex[:8]}", json.dumps(dict(entry)))
        for memory in memories:
            self._values.put(self._memories + memory.id, json.dumps(memory.to_dict()))
        for name in dropped:
            self._values.delete(self._memories + name)
        self._written += 1
        if self._written % TRIM_EVERY == 1:
            keys = sorted(self._values.keys(self._journal))
            for key in islice(keys, max(len(keys) - MAX_JOURNAL, 0)):
                self._values.delete(key)

    def journal(self) -> list[dict[str, Any]]:
        texts = [self._values.get(key) for key in sorted(self._values.keys(self._journal))]
        return [json.loads(text) for text in texts if text is not None]

    def _record(self, key: str) -> Mapping[str, Any]:
        """What stands at a key; nothing where it holds no memory of that name."""
        try:
            read = json.loads(self._values.get(key) or "")
        except (ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) and self._memories + str(read.get("id")) == key else {}


def _change(stored: Stored, memories: Sequence[Memory], dropped: Sequence[str]) -> Stored:
    held = {memory.id: memory for memory in stored.memories}
    held.update((memory.id, memory) for memory in memories)
    for name in dropped:
        held.pop(name, None)
    return Stored(sorted(held.values(), key=lambda memory: (memory.written, memory.id)), stored.broken)


def _read(records: Iterable[Mapping[str, Any]]) -> Stored:
    found, broken = list[Memory](), 0
    for record in records:
        try:
            lists = {name: _list(record.get(name)) for name in ("sources", "derived_from")}
            found.append(Memory.from_dict({**record, **lists}))
        except InputError:
            broken += 1
    return Stored(found, broken)


def _list(value: object) -> object:
    """A list as it is, or as a cell of a table holds it; what is none stays what no memory holds."""
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, list) else None
