"""Caches of embeddings and replies, in memory or in a SQLite file.

A file may be shared by threads and processes, survives a killed process, and contains float32 bytes and JSON, never
code. It holds nothing that cannot be made again: a damaged file is set aside for a fresh one, and what a full disk does
not take is not kept; a warning says so.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.errors import InputError, OptionError, StoreError, clip
from unpoison.models import protocols
from unpoison.models.prompts import Prompt
from unpoison.utils.checks import at_least
from unpoison.utils.lru_cache import LRUCache
from unpoison.utils.processes import Remade
from unpoison.utils.sqlite import connect, explain_errors, transaction
from unpoison.utils.threads import on_thread

__all__ = ["CachedEncoder", "CachedGenerator"]


T = TypeVar("T")


class CachedEncoder(Remade):
    """An encoder that encodes each text once.

    Args:
        encoder: Any encoder whose vectors do not depend on the other texts of a call.
        path: A SQLite file, created if missing; None keeps the vectors in memory.
        limit: Maximum number of vectors, in memory also 256 MiB. In memory the least recently used are evicted, in a
            file the oldest.

    Raises:
        OptionError: The encoder sets `per_set`, or the limit is not positive.
        InputError: The file is not such a cache.
    """

    encode_queries: Callable[[Sequence[str]], NDArray[np.float32]]

    def __init__(self, encoder: protocols.Encoder, *, path: str | Path | None = None, limit: int = 100_000) -> None:
        if getattr(encoder, "per_set", False):
            raise OptionError(
                f"the vectors of the encoder {clip(encoder.name)} depend on the other texts of a call and cannot be "
                "cached; use it without a cache"
            )
        self.name = encoder.name
        self.remote = getattr(encoder, "remote", False)
        self.longest = getattr(encoder, "longest", None)
        self.similarity = getattr(encoder, "similarity", "cosine")
        self._encoder = encoder
        self._store = _store("vectors", path, limit)
        if isinstance(encoder, protocols.TwoTowers):  # on the instance, so that the cache has two towers if it has
            self.encode_queries = self._encode_queries

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Shape (n, d), as returned by the wrapped encoder.

        Raises:
            InputError: The cache file is damaged, or has vectors of another size.
        """
        return self._encode(texts, self._encoder.encode, self.name)

    def _encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        towers: Any = self._encoder
        return self._encode(texts, towers.encode_queries, f"{self.name}, questions")

    def _encode(
        self, texts: Sequence[str], encode: Callable[[list[str]], NDArray[np.float32]], name: str
    ) -> NDArray[np.float32]:
        if not texts:
            return encode([])
        keys = [_key(name, text) for text in texts]
        rows = {key: self._row(value) for key, value in self._store.get(set(keys)).items()}
        missing = {key: text for key, text in zip(keys, texts) if key not in rows}
        if missing:
            encoded = np.ascontiguousarray(encode(list(missing.values())), np.float32)
            self._store.put({key: row.tobytes() for key, row in zip(missing, encoded)})
            rows.update(zip(missing, encoded))
        if len({row.size for row in rows.values()}) != 1:
            raise self._unusable("vectors of another size")
        return np.stack([rows[key] for key in keys])

    def _row(self, value: bytes) -> NDArray[np.float32]:
        if len(value) % 4 or not value:
            raise self._unusable("truncated vectors")
        row = np.frombuffer(value, np.float32)
        if not np.isfinite(row).all():
            raise self._unusable("vectors that are not finite")
        return row

    def _unusable(self, content: str) -> InputError:
        return InputError(f"the cache {self._store} has {content} as {clip(self.name)}; delete it or give another path")

    def __repr__(self) -> str:
        return f"CachedEncoder({self._encoder!r}, {self._store})"


class CachedGenerator(Remade):
    """A generator with a cache of replies by prompt. Failures are not cached.

    It has `agenerate`, `generate_batch` and `next_token` if the wrapped generator has. The key consists of the model's
    name, the rendered prompt and its `max_tokens`; use a separate file for each server that uses the same name for
    another model.

    Args:
        generator: Any generator.
        path: A SQLite file, created if missing; None keeps the replies in memory.
        limit: Maximum number of replies, in memory also 256 MiB. In memory the least recently used are evicted, in a
            file the oldest.

    Raises:
        OptionError: The limit is not positive.
        InputError: The file is not such a cache.
    """

    agenerate: Callable[..., Coroutine[Any, Any, Reply]]
    astream: Callable[..., AsyncIterator[str | Reply]]
    generate_batch: Callable[..., list[Reply]]

    def __init__(self, generator: protocols.Generator, *, path: str | Path | None = None, limit: int = 10_000) -> None:
        self.name = generator.name
        self._generator: Any = generator
        self._store = _store("replies", path, limit)
        # On the instance, so that isinstance(..., AsyncGenerator) is the same for the cache and the wrapped generator.
        if isinstance(generator, protocols.AsyncGenerator):
            self.agenerate = self._agenerate
        if isinstance(generator, protocols.StreamingGenerator):
            self.astream = self._astream
        if isinstance(generator, protocols.BatchGenerator):
            self.generate_batch = self._generate_batch
            self.isolated = bool(getattr(generator, "isolated", False))
        if hasattr(generator, "read") and hasattr(generator, "relations"):  # a reader, which has its own cache
            self.read, self.relations = generator.read, generator.relations
        if isinstance(generator, protocols.TokenByToken):  # distributions are too large to cache
            self.ends, self.tokens, self.text = generator.ends, generator.tokens, generator.text
            self.next_token = generator.next_token
            if hasattr(generator, "token_id"):
                self.token_id = generator.token_id

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The cached reply, marked `cached`, or a fresh one."""
        (reply,) = self._through([prompt], lambda some: [self._generator.generate(some[0], timeout=timeout)])
        return reply

    async def _agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        key = self._key(prompt)
        stored = await on_thread(lambda: self._find([key]))
        if not stored:
            stored = {key: await self._generator.agenerate(prompt, timeout=timeout)}
            await on_thread(lambda: self._keep(stored))
        return stored[key]

    async def _astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> AsyncIterator[str | Reply]:
        """A cached reply is one piece; a streamed reply is cached when complete."""
        key = self._key(prompt)
        stored = await on_thread(lambda: self._find([key]))
        if stored:
            yield stored[key].text
            yield stored[key]
            return
        async for piece in self._generator.astream(prompt, timeout=timeout):
            if isinstance(piece, Reply):
                await on_thread(lambda reply=piece: self._keep({key: reply}))  # type: ignore[misc]
            yield piece

    def _generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]:
        return self._through(prompts, lambda some: self._generator.generate_batch(some, timeout=timeout))

    def _through(self, prompts: Sequence[Prompt], ask: Callable[[list[Prompt]], list[Reply]]) -> list[Reply]:
        """Ask only for the replies that are not stored."""
        keys = [self._key(prompt) for prompt in prompts]
        replies = self._find(keys)
        missing = {key: prompt for key, prompt in zip(keys, prompts) if key not in replies}
        if missing:
            fresh = dict(zip(missing, ask(list(missing.values())), strict=True))
            self._keep(fresh)
            replies |= fresh
        return [replies[key] for key in keys]

    def _key(self, prompt: Prompt) -> bytes:
        return _key(self.name, json.dumps([prompt.max_tokens, prompt.messages()]))

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        stored = self._store.get(set(keys))
        try:
            return {key: _reply(value) for key, value in stored.items()}
        except (ValueError, TypeError) as error:
            raise InputError(f"the cache {self._store} has an unreadable reply; delete it") from error

    def _keep(self, replies: Mapping[bytes, Reply]) -> None:
        self._store.put({key: _bytes(reply) for key, reply in replies.items()})

    def __repr__(self) -> str:
        return f"CachedGenerator({self._generator!r}, {self._store})"


def _key(name: str, content: str) -> bytes:
    return blake2b(f"{name}\0{content}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _bytes(reply: Reply) -> bytes:
    return json.dumps([reply.text, reply.prompt_tokens, reply.completion_tokens, reply.finish]).encode()


def _reply(value: bytes) -> Reply:
    text, prompt_tokens, completion_tokens, finish = json.loads(value)
    if not isinstance(text, str) or not isinstance(finish, str):
        raise TypeError("text and finish are strings")
    return Reply(text, prompt_tokens, completion_tokens, finish, cached=True)


def _store(holds: str, path: str | Path | None, limit: int) -> _Memory | _File:
    at_least("limit", limit, 1)
    return _Memory(limit) if path is None else _File(holds, Path(path), limit)


class _Memory:
    BYTES = 256 * 2**20
    """Enough for 100,000 vectors of 600 dimensions; the length of replies is not bounded."""

    def __init__(self, limit: int) -> None:
        self._values: LRUCache[bytes, bytes] = LRUCache(lambda k, v: 200 + len(k) + len(v), self.BYTES, limit)

    def get(self, keys: set[bytes]) -> dict[bytes, bytes]:
        return {key: value for key in keys if (value := self._values.get(key)) is not None}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        for key, value in values.items():
            self._values.put(key, value)

    def __str__(self) -> str:
        return "in memory"


_log = logging.getLogger("unpoison")


class _File:
    """One table of a SQLite file; every operation opens its own connection, so that threads and forks share none."""

    APPLICATIONS: ClassVar = {"vectors": int.from_bytes(b"unpv"), "replies": int.from_bytes(b"unpr")}
    """SQLite's application ids of the files."""

    BUSY = 30.0  # seconds to wait for another process

    def __init__(self, holds: str, path: Path, limit: int) -> None:
        self._holds, self._path, self._limit = holds, path, limit
        self._full = False
        self._whole(self._check)

    def _whole(self, work: Callable[[], T]) -> T:
        """Do something with the file; if it is damaged, once more with a fresh one."""
        try:
            return work()
        except InputError as error:
            if not isinstance(error.__cause__, sqlite3.Error) or not self._set_aside():
                raise
            _log.warning("the cache %s was damaged; a fresh one is used, and the old one is %s", self, self._damaged)
            return work()

    @property
    def _damaged(self) -> Path:
        return self._path.with_name(f"{self._path.name}.damaged")

    def _set_aside(self) -> bool:
        """Rename a cache of ours, known by the head of the file, with what SQLite keeps beside it; whether it was."""
        with suppress(OSError):
            with self._path.open("rb") as file:
                head = file.read(100)
            ours = self.APPLICATIONS[self._holds].to_bytes(4)
            if head.startswith(b"SQLite format 3\0") and head[68:72] == ours:
                self._path.replace(self._damaged)
                for end in ("-wal", "-shm"):
                    self._path.with_name(f"{self._path.name}{end}").unlink(missing_ok=True)
                return True
        return False

    def _check(self) -> None:
        with self._open() as connection:
            # Triggers and views of a foreign file would run on every write.
            if connection.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
                raise InputError(f"{self} contains more than a cache of {self._holds}; delete it or give another path")

    def get(self, keys: set[bytes]) -> dict[bytes, bytes]:
        return self._whole(lambda: self._get(keys))

    def put(self, values: Mapping[bytes, bytes]) -> None:
        try:
            self._whole(lambda: self._put(values))
        except StoreError as error:
            if not self._full:
                _log.warning("%s; what is computed now is not kept", error)
            self._full = True
        else:
            self._full = False

    def _get(self, keys: set[bytes]) -> dict[bytes, bytes]:
        with self._open() as connection:
            query = "SELECT value FROM entries WHERE key = ?"
            rows = [(key, connection.execute(query, (key,)).fetchone()) for key in keys]
        return {key: row[0] for key, row in rows if row is not None and isinstance(row[0], bytes)}

    def _put(self, values: Mapping[bytes, bytes]) -> None:
        with self._open() as connection, transaction(connection):
            connection.executemany("INSERT OR REPLACE INTO entries (key, value) VALUES (?, ?)", values.items())
            # Ids are increasing, so the newest `limit` ids are the newest entries, without counting.
            connection.execute("DELETE FROM entries WHERE id <= (SELECT max(id) FROM entries) - ?", (self._limit,))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        kind, application = f"cache of {self._holds}", self.APPLICATIONS[self._holds]
        with (
            explain_errors(f"the cache {self}"),
            closing(
                connect(self._path, _make_table, wait=self.BUSY, app_id=application, name=str(self), kind=kind)
            ) as connection,
        ):
            yield connection

    def __str__(self) -> str:
        return f"file {clip(str(self._path), 200)}"


def _make_table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, key BLOB UNIQUE, value BLOB NOT NULL)")
