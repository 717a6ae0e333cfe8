"""Beliefs in this process, for tests, notebooks and streams that end with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from threading import Lock

from unpoison.beliefs.store import check_key, check_namespace, check_ttl, fresh_version, times
from unpoison.core.belief import Belief
from unpoison.utils.checks import at_least

__all__ = ["MemoryBeliefs"]


class MemoryBeliefs:
    """Beliefs in a dictionary. Not shared between processes.

    Args:
        namespace: Only told apart from other namespaces in an export.
        ttl: Seconds after which a belief that was not written again is forgotten; None never.
        limit: Beliefs held at most, of about 1 KB each; then the one written longest ago is forgotten. A store that
            must forget none is a file or a server.

    Raises:
        OptionError: An option out of its range.
    """

    def __init__(self, *, namespace: str = "default", ttl: float | None = None, limit: int = 100_000) -> None:
        self.limit = at_least("limit", limit, 1)
        self.namespace = check_namespace(namespace)
        self.ttl = check_ttl(ttl)
        self._beliefs: dict[str, Belief] = {}
        self._lock = Lock()

    def get(self, key: str) -> Belief | None:
        with self._lock:
            return self._alive(check_key(key))

    def put(self, key: str, belief: Belief, *, expected: str | None = None, keep_times: bool = False) -> bool:
        now = time.time()
        with self._lock:
            before = self._alive(check_key(key))
            if expected is not None and expected != ("" if before is None else before.version):
                return False
            stamps = times(belief, now, self.ttl, keep=keep_times)
            if before is not None and not keep_times:
                stamps["created"] = before.created
            self._beliefs.pop(key, None)  # so that the dictionary is in the order of writing
            self._beliefs[key] = replace(belief, version=fresh_version(), **stamps)
            self._let_expire(now)
            while len(self._beliefs) > self.limit:
                del self._beliefs[next(iter(self._beliefs))]
            return True

    def items(self) -> Iterator[tuple[str, Belief]]:
        with self._lock:
            alive = [(key, belief) for key in sorted(self._beliefs) if (belief := self._alive(key))]
        yield from alive

    def forget(self, key: str) -> bool:
        with self._lock:
            belief = self._alive(check_key(key))
            self._beliefs.pop(key, None)
            return belief is not None

    def forget_all(self) -> int:
        with self._lock:
            count = sum(self._alive(key) is not None for key in list(self._beliefs))
            self._beliefs.clear()
            return count

    def close(self) -> None:
        """Nothing is open; what is remembered stays."""

    def _let_expire(self, now: float) -> None:
        while self._beliefs and self._beliefs[oldest := next(iter(self._beliefs))].expired(now):
            del self._beliefs[oldest]

    def _alive(self, key: str) -> Belief | None:
        belief = self._beliefs.get(key)
        if belief is not None and belief.expired(time.time()):
            del self._beliefs[key]
            return None
        return belief

    def __repr__(self) -> str:
        return f"MemoryBeliefs(namespace={self.namespace!r}, {len(self._beliefs)} beliefs)"
