"""Stores for RADAR's beliefs: memory, SQLite, Redis, PostgreSQL.

The names below are imported when they are first used; a store imports its library when it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.errors import OptionError, clip
from unpoison.utils.extras import lazy_names

if TYPE_CHECKING:
    from unpoison.beliefs.databases import PostgresBeliefs, RedisBeliefs, SqliteBeliefs
    from unpoison.beliefs.store import BeliefStore, MemoryBeliefs, belief_key, update
    from unpoison.core.answers import Belief, BeliefUpdate, Weights

_HOMES = {
    "databases": "PostgresBeliefs RedisBeliefs SqliteBeliefs",
    "store": "BeliefStore MemoryBeliefs belief_key update",
    "unpoison.core.answers": "Belief BeliefUpdate Weights",
}

__all__ = [
    "Belief", "BeliefStore", "BeliefUpdate", "MemoryBeliefs", "PostgresBeliefs", "RedisBeliefs", "SqliteBeliefs",
    "Weights", "belief_key", "open_beliefs", "update",
]  # fmt: skip

_SERVERS = ("redis", "rediss", "unix", "postgresql", "postgres")

__getattr__ = lazy_names(__name__, _HOMES)


def open_beliefs(spec: str) -> BeliefStore:
    """The store that a string names: `memory`, `sqlite:FILE` or a path, `redis://...`, `postgresql://...`.

    Raises:
        OptionError: An unknown kind of store.
        MissingExtraError: An extra that is not installed.
        StoreError: The store cannot be reached.
        InputError: The file is damaged or not a store of beliefs.
    """
    from unpoison.beliefs.databases import PostgresBeliefs, RedisBeliefs, SqliteBeliefs
    from unpoison.beliefs.store import MemoryBeliefs

    kind, colon, rest = spec.partition(":")
    if spec == "memory":
        return MemoryBeliefs()
    if kind in ("redis", "rediss", "unix") and rest.startswith("//"):
        return RedisBeliefs(spec)
    if kind in ("postgresql", "postgres") and rest.startswith("//"):
        return PostgresBeliefs(spec)
    if colon and kind in _SERVERS:  # never repeated: what follows may be a password
        raise OptionError(f"a store in {kind} is written {kind}://HOST, with two slashes; a file is sqlite:FILE")
    path = rest if kind == "sqlite" and colon else spec
    if not path or "://" in path:
        raise OptionError(f"no belief store {clip(kind)}; use memory, sqlite:FILE, redis://HOST or postgresql://HOST")
    return SqliteBeliefs(path)
