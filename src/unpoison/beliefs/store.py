"""The protocol of belief stores, helpers for all of them, and the store in memory."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from secrets import token_hex
from typing import Protocol, runtime_checkable

from unpoison.core.answers import Belief
from unpoison.errors import InputError, StoreError, clip
from unpoison.utils.checks import at_least
from unpoison.utils.processes import CopyableLock

__all__ = [
    "BeliefStore", "MemoryBeliefs", "belief_key", "check_key", "fresh_version", "update",
]  # fmt: skip

_KEY = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")


def belief_key(query: str) -> str:
    """32 hexadecimal digits of the normalised query.

    Normalised means: compatible characters unified (NFKC), case folded, white space as single spaces, and no full
    stops, question or exclamation marks at the end.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", query).casefold())
    line = " ".join(text.split()).rstrip(".?!\u3002 ")
    return blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def check_key(key: str) -> str:
    """Return the key if it is valid for every store.

    Raises:
        InputError: Empty, longer than 128 characters, or with white space or control characters.
    """
    if not isinstance(key, str) or not _KEY.fullmatch(key) or not key.isprintable():
        raise InputError(f"a key must be 1 to 128 visible characters, got {clip(key)}; belief_key(query) makes one")
    return key


ATTEMPTS = 10_000
"""Maximum attempts of `update`; some worker makes progress in each, so only a faulty store reaches it."""


@runtime_checkable
class BeliefStore(Protocol):
    """Beliefs by key. Safe for threads; all stores except the one in memory, also for processes and machines.

    Every method raises StoreError when the store cannot be reached, and InputError when it holds foreign data.
    """

    def get(self, key: str) -> Belief | None:
        """The belief with its `version` and times; None if missing."""

    def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
        """Write a belief, in one atomic step.

        Args:
            key: 1 to 128 visible characters.
            belief: Its version is ignored.
            expected: Write only if the stored version is this one; "" if there is none; None for always.

        Returns:
            Whether it was written; False if another worker was faster.
        """

    def close(self) -> None:
        """Close files and connections; the next use reopens them."""


def update(store: BeliefStore, key: str, change: Callable[[Belief | None], Belief]) -> Belief:
    """Read, change and write back; retried if another worker wrote in between. No update is lost.

    Args:
        store: The store.
        key: The key of the belief.
        change: Returns the new belief for the current one (None if missing); called once per attempt.

    Returns:
        The belief that was written.

    Raises:
        StoreError: The store cannot be reached, or did not agree in 10,000 attempts.
    """
    for _ in range(ATTEMPTS):
        before = store.get(key)
        after = change(before)
        if store.put(key, after, expected="" if before is None else before.version):
            return after
    raise StoreError(f"the belief {clip(key)} was changed by others {ATTEMPTS:,} times while it was being written")


def fresh_version() -> str:
    """A unique version, also across deletions."""
    return token_hex(8)


class MemoryBeliefs:
    """Beliefs in a dictionary, for tests and notebooks. Not shared between processes.

    Args:
        limit: Maximum number of beliefs, of about 1 KB each; beyond it the oldest write is dropped. Files and servers
            have no limit.

    Raises:
        OptionError: An option out of its range.
    """

    def __init__(self, *, limit: int = 100_000) -> None:
        self.limit = at_least("limit", limit, 1)
        self._beliefs: dict[str, Belief] = {}
        self._lock = CopyableLock()

    def get(self, key: str) -> Belief | None:
        with self._lock:
            return self._beliefs.get(check_key(key))

    def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
        now = time.time()
        with self._lock:
            before = self._beliefs.get(check_key(key))
            if expected is not None and expected != ("" if before is None else before.version):
                return False
            created = now if before is None else before.created
            self._beliefs.pop(key, None)  # keeps the dictionary in the order of writing
            self._beliefs[key] = replace(belief, version=fresh_version(), created=created, updated=now)
            while len(self._beliefs) > self.limit:
                del self._beliefs[next(iter(self._beliefs))]
            return True

    def close(self) -> None:
        """Nothing to close; the beliefs stay."""

    def __repr__(self) -> str:
        return f"MemoryBeliefs({len(self._beliefs)} beliefs)"
