"""A belief store from the string that names it."""

from __future__ import annotations

from unpoison.beliefs.memory import MemoryBeliefs
from unpoison.beliefs.postgres import PostgresBeliefs
from unpoison.beliefs.redis import RedisBeliefs
from unpoison.beliefs.sqlite import SqliteBeliefs
from unpoison.beliefs.store import BeliefStore
from unpoison.errors import OptionError, clip

__all__ = ["open_beliefs"]

SERVERS = ("redis", "rediss", "unix", "postgresql", "postgres")


def open_beliefs(spec: str, *, namespace: str = "default", ttl: float | None = None) -> BeliefStore:
    """The store that a string names: `memory`, `sqlite:FILE` or a path, `redis://...`, `postgresql://...`.

    Raises:
        OptionError: An unknown kind of store.
        MissingExtraError: An extra that is not installed.
        StoreError: The store cannot be reached.
        InputError: The file is damaged or not a store of beliefs.
    """
    kind, colon, rest = spec.partition(":")
    if spec == "memory":
        return MemoryBeliefs(namespace=namespace, ttl=ttl)
    if kind in ("redis", "rediss", "unix") and rest.startswith("//"):
        return RedisBeliefs(spec, namespace=namespace, ttl=ttl)
    if kind in ("postgresql", "postgres") and rest.startswith("//"):
        return PostgresBeliefs(spec, namespace=namespace, ttl=ttl)
    if colon and kind in SERVERS:  # never repeated: what follows may be a password
        raise OptionError(f"a store in {kind} is written {kind}://HOST, with two slashes; a file is sqlite:FILE")
    path = rest if kind == "sqlite" and colon else spec
    if not path or "://" in path:
        raise OptionError(f"no belief store {clip(kind)}; use memory, sqlite:FILE, redis://HOST or postgresql://HOST")
    return SqliteBeliefs(path, namespace=namespace, ttl=ttl)
